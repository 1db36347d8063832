"""v3's keys, names, datatypes and values of specs, from the catalog's attributes (v3-rest.md §3.5, graphql.md §10.5).

v3's own keys are on record in data/spec_keys.txt, one a line, as v3's clients and recordings use them. An attribute
without a key on record has its name in lower case with words joined by _. Requests may use either spelling.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from proxy.sandbox.catalog import records

# Every spec key that v3 is known to have had. Parts have values for some of them.
KEYS = frozenset((Path(__file__).parent / "data" / "spec_keys.txt").read_text("ascii").split())

# v3's key by the catalog's shortname, where it is not the attribute's name.
_OWN = {
    "casecode_metric_": "case_package_si",
    "dcresistance_dcr_": "dc_resistance",
    "diameter": "size_diameter",
    "dielectric": "dielectric_characteristic",
    "elv": "elv_compliant",
    "height": "size_height",
    "leadfree": "lead_free_status",
    "length": "size_length",
    "maxoperatingtemperature": "operating_temperature",
    "militarystandard": "mil_spec",
    "minoperatingtemperature": "operating_temperature",
    "mount": "mounting_style",
    "numberofpins": "pin_count",
    "operatingsupplycurrent": "supply_current",
    "pitch": "pin_pitch",
    "propagationdelay": "propagation_delay_max",
    "reachsvhc": "reach_svhc_compliance",
    "rohs": "rohs_status",
    "termination": "termination_style",
    "thickness": "size_thickness",
    "width": "size_width",
    "wire_cablegauge": "wire_gauge",
}
# v3's names by its keys: those that recordings of 2017 and 2018 show, and that of the spec which is two attributes.
_NAMES = {
    "lead_free_status": "Lead-Free Status",
    "mounting_style": "Mounting Style",
    "operating_temperature": "Operating Temperature",
    "reach_svhc_compliance": "REACH SVHC Compliance",
}
# Attributes whose value is a list, which the catalog joins with commas.
_LISTS = frozenset({"color", "features", "illuminationcolor", "interface", "lenscolor"})
# v3 had a tolerance for each of these quantities and wrote it as text, `±5%`; the catalog has one number for all.
QUANTITIES = ("resistance", "capacitance", "inductance")
_TOLERANCE = "tolerance"
_TOLERANCES = frozenset({_TOLERANCE, *(f"{quantity}{_TOLERANCE}" for quantity in QUANTITIES)})
# Specs that are a range only: the catalog has an attribute for each end, v3 one spec without a value.
_RANGES = ("operatingtemperature",)
# The ends of other specs stand in attributes called after the spec, but for this one.
_STEMS = {"operatingsupplyvoltage": "supplyvoltage"}


class Source(NamedTuple):
    """An attribute whose values a spec has, in parts that have the attribute `beside` ("": in all)."""

    attribute: records.Attribute
    beside: str = ""


class Meant(NamedTuple):
    """A spec as a request names it: v3's key, the attributes with its values (of several the first that a part has),
    and the attribute that says its name and unit. Both are empty where parts have no values."""

    key: str
    sources: tuple[Source, ...] = ()
    about: records.Attribute | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether v3 had numbers for it."""
        return self.about is not None and datatype(self.about) != "string"

    def spec_of(self, part: records.Part) -> records.Spec | None:
        """The part's spec with the value."""
        by_name = _by_shortname(part)
        fitting = (each.attribute.shortname for each in self.sources if not each.beside or each.beside in by_name)
        return next((by_name[name] for name in fitting if name in by_name), None)


class SpecNames:
    """The specs of one catalog by the keys that requests may use."""

    def __init__(self, attributes: Iterable[records.Attribute]) -> None:
        self._attributes = {each.shortname: each for each in attributes}
        own = [(name, _alone(each)) for each in self._attributes.values() for name in (each.shortname, _spelled(each))]
        v3s = [(meant.key, meant) for _, meant in own if meant.key not in _ranged()]
        self._meant = {**dict(own), **dict(v3s), **self._tolerances(), **self._ranges()}

    def meant(self, key: str, field: str = "value") -> Meant | None:
        """The spec of a key, or of its min_value or max_value; None for a key that v3 did not have."""
        found = self._meant.get(key) or (Meant(key) if key in KEYS else None)
        end = {"min_value": "min", "max_value": "max"}.get(field)
        if found is None or field == "value":
            return found
        attribute = self._attributes.get(f"{end}{_stem(found)}") if end else None
        return found._replace(sources=() if attribute is None else (Source(attribute, _beside(found)),))

    def shown_as(self, key: str) -> frozenset[str]:
        """v3's keys under which parts show what a request calls so."""
        found = self._meant.get(key)
        if found is None:
            return frozenset({key})
        several = (f"{quantity}_{_TOLERANCE}" for quantity in QUANTITIES) if found.key == _TOLERANCE else ()
        return frozenset({found.key, *several})

    def _tolerances(self) -> dict[str, Meant]:
        found = {f"{quantity}_{_TOLERANCE}": self._tolerance(quantity) for quantity in QUANTITIES}
        return {key: Meant(key, each, each[0].attribute) for key, each in found.items() if each}

    def _tolerance(self, quantity: str) -> tuple[Source, ...]:
        beside = {f"{quantity}{_TOLERANCE}": "", _TOLERANCE: quantity}
        return tuple(Source(self._attributes[name], beside[name]) for name in beside if name in self._attributes)

    def _ranges(self) -> dict[str, Meant]:
        ends = [self._attributes.get(f"{end}{stem}") for stem in _RANGES for end in ("min", "max")]
        return {key(each): Meant(key(each), (), each) for each in ends if each is not None}


def of_part(part: records.Part) -> dict[str, list[records.Spec]]:
    """A part's specs by v3's keys. A key has several specs where the catalog has an attribute for each end."""
    by_name = _by_shortname(part)
    found: dict[str, list[records.Spec]] = {}
    for name, spec in by_name.items():
        if name != _TOLERANCE:
            found.setdefault(key(spec.attribute), []).append(spec)
    if _TOLERANCE in by_name:
        keys = [f"{quantity}_{_TOLERANCE}" for quantity in QUANTITIES if quantity in by_name]
        for each in keys or [_TOLERANCE]:
            found.setdefault(each, [by_name[_TOLERANCE]])
    return found


def limits(specs: list[records.Spec], part: records.Part) -> tuple[str | None, str | None]:
    """The least and the largest value of a part's spec, where the catalog has them as specs of their own."""
    by_name = _by_shortname(part)
    stem = _stem(_alone(specs[0].attribute))
    low, high = (by_name.get(f"{end}{stem}") for end in ("min", "max"))
    return (None if low is None else str(float(low.si_value))), (None if high is None else str(float(high.si_value)))


def key(attribute: records.Attribute) -> str:
    """v3's key; of a tolerance the one that stands for no quantity."""
    return _OWN.get(attribute.shortname, _spelled(attribute))


def datatype(attribute: records.Attribute) -> str:
    """string, integer or decimal. What counts things is an integer, every other number a decimal."""
    if attribute.value_type != "number" or attribute.shortname in _TOLERANCES:
        return "string"
    return "integer" if attribute.name.startswith("Number of ") else "decimal"


def values(spec: records.Spec) -> list[str]:
    """v3's list of texts."""
    if spec.attribute.value_type == "number":
        return [number(spec.attribute, float(spec.si_value))]
    return spec.value.split(", ") if spec.attribute.shortname in _LISTS else [spec.value]


def displayed(specs: list[records.Spec]) -> str:
    """v3's display_value: the catalog's, of a range both ends, least first."""
    if specs[0].attribute.shortname in _TOLERANCES:
        return values(specs[0])[0]
    ascending = sorted(specs, key=lambda each: not each.attribute.shortname.startswith("min"))
    return " to ".join(each.display_value for each in ascending)


def number(attribute: records.Attribute, value: float) -> str:
    """A number in SI base units as v3 wrote it: 14 of things that are counted, ±5% of tolerances, else 22000.0."""
    if attribute.shortname in _TOLERANCES:
        return f"±{value:g}%"
    whole = datatype(attribute) == "integer" and value == int(value)
    return str(int(value)) if whole else str(float(value))


def metadata(spec_key: str, attribute: records.Attribute) -> dict[str, object]:
    """A SpecMetadata. `spec_key` is v3's."""
    unit = {"symbol": attribute.units_symbol, "__class__": "UnitOfMeasurement", "name": attribute.units_name}
    return {
        "name": _NAMES.get(spec_key, attribute.name),
        "key": spec_key,
        "unit": unit if attribute.units_name and datatype(attribute) != "string" else None,
        "datatype": datatype(attribute),
        "__class__": "SpecMetadata",
    }


def is_end(attribute: records.Attribute) -> bool:
    """Whether the attribute is one end of a spec that is a range only."""
    return attribute.shortname[3:] in _RANGES and attribute.shortname[:3] in ("min", "max")


def _alone(attribute: records.Attribute) -> Meant:
    return Meant(key(attribute), (Source(attribute),), attribute)


def _ranged() -> frozenset[str]:
    return frozenset(_OWN[f"max{stem}"] for stem in _RANGES)


def _stem(meant: Meant) -> str:
    """What the attributes of the ends are called, behind min and max."""
    if meant.about is None:
        return ""
    shortname = meant.about.shortname
    return shortname[3:] if is_end(meant.about) else _STEMS.get(shortname, shortname)


def _beside(meant: Meant) -> str:
    """The attribute that a part must have for its ends to be shown."""
    return "" if meant.about is None or is_end(meant.about) else meant.about.shortname


def _spelled(attribute: records.Attribute) -> str:
    return re.sub("[^a-z0-9]+", "_", attribute.name.lower()).strip("_")


def _by_shortname(part: records.Part) -> Mapping[str, records.Spec]:
    return {each.attribute.shortname: each for each in part.specs}
