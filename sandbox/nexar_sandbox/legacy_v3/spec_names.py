"""v3's keys, names, datatypes and values of specs, from the catalog's attributes (v3-rest.md §3.5, graphql.md §10.5).

v3's own keys are on record in data/spec_keys.txt, one a line, as v3's clients and recordings use them. An attribute
without a key on record has its name in lower case with words joined by _. Requests may use either spelling.
"""

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nexar_sandbox.catalog import records

_DATA = Path(__file__).parent / "data"
# Every spec key that v3 is known to have had. Parts have values for some of them.
KEYS = frozenset((_DATA / "spec_keys.txt").read_text("ascii").split())
_SPECS = tomllib.loads((_DATA / "specs.toml").read_text("utf-8"))
_OWN, _NAMES = _SPECS["keys"], _SPECS["names"]
# Attributes whose value is a list, which the catalog joins with commas.
_LISTS = frozenset({"color", "features", "illuminationcolor", "interface", "lenscolor"})
# v3 had a tolerance for each of these quantities and wrote it as text, `±5%`; the catalog has one number for all.
QUANTITIES = ("resistance", "capacitance", "inductance")
_TOLERANCE = "tolerance"
_TOLERANCES = frozenset({_TOLERANCE, *(f"{quantity}{_TOLERANCE}" for quantity in QUANTITIES)})


class SpecRange(NamedTuple):
    """The catalog's attributes of a spec that was one in v3: its value (none where it is ""), and its ends."""

    value: str
    low: str
    high: str


# v3's clients read both of these, the ends as min_value and max_value. Of other specs no ends are on record.
_RANGES = {
    "operating_temperature": SpecRange("", "minoperatingtemperature", "maxoperatingtemperature"),
    "supply_voltage_dc": SpecRange("operatingsupplyvoltage", "minsupplyvoltage", "maxsupplyvoltage"),
}
_ENDS = {name for each in _RANGES.values() for name in each[1:]}


class SpecSource(NamedTuple):
    """An attribute whose values a spec has, in parts that have the attribute `beside` ("": in all)."""

    attribute: records.CatalogAttribute
    beside: str = ""


class SpecDefinition(NamedTuple):
    """A spec by its requested name: v3's key, the attributes with its values (of several the first that a part has, of
    a range all), and the attribute with its name and unit. Both are empty for keys without values."""

    key: str
    sources: tuple[SpecSource, ...] = ()
    about: records.CatalogAttribute | None = None
    range: SpecRange | None = None

    def sorted_by(self, part: records.Part, downwards: bool) -> records.CatalogSpec | None:
        """Return the part's spec that orders it: of a range the lower end upwards, the upper end downwards."""
        if self.range is None:
            return self.spec_of(part)
        return _by_shortname(part).get(self.range.high if downwards else self.range.low)

    @property
    def is_numeric(self) -> bool:
        """True if v3 had numbers for it."""
        return self.about is not None and datatype(self.about) != "string"

    def spec_of(self, part: records.Part) -> records.CatalogSpec | None:
        """Return the part's spec with the value; of a range the first that the part has."""
        by_name = _by_shortname(part)
        fitting = (each.attribute.shortname for each in self.sources if not each.beside or each.beside in by_name)
        return next((by_name[name] for name in fitting if name in by_name), None)


class SpecNames:
    """The specs of one catalog by the keys that requests may use."""

    def __init__(self, attributes: Iterable[records.CatalogAttribute]) -> None:
        self._attributes = {each.shortname: each for each in attributes}
        own = [
            (name, SpecDefinition(key(each), (SpecSource(each),), each))
            for each in self._attributes.values()
            for name in (each.shortname, _spelled(each.name))
        ]
        v3s = [(meant.key, meant) for _, meant in own if meant.key not in _RANGES]
        self._definitions = {**dict(own), **dict(v3s), **self._tolerances(), **self._ranges()}

    def definition(self, key: str, field: str = "value") -> SpecDefinition | None:
        """Return the spec of a key, or of its min_value or max_value; None for a key that v3 did not have."""
        definition = self._definitions.get(key) or (SpecDefinition(key) if key in KEYS else None)
        if definition is None or field == "value":
            return definition
        end = (
            "" if definition.range is None else definition.range.low if field == "min_value" else definition.range.high
        )
        attribute = self._attributes.get(end)
        return definition._replace(sources=() if attribute is None else (SpecSource(attribute),), range=None)

    def shown_as(self, key: str) -> frozenset[str]:
        """v3's keys under which parts show the spec of a requested key."""
        definition = self._definitions.get(key)
        if definition is None:
            return frozenset({key})
        several = (f"{quantity}_{_TOLERANCE}" for quantity in QUANTITIES) if definition.key == _TOLERANCE else ()
        return frozenset({definition.key, *several})

    def _tolerances(self) -> dict[str, SpecDefinition]:
        tolerances = {f"{quantity}_{_TOLERANCE}": self._tolerance(quantity) for quantity in QUANTITIES}
        return {key: SpecDefinition(key, each, each[0].attribute) for key, each in tolerances.items() if each}

    def _tolerance(self, quantity: str) -> tuple[SpecSource, ...]:
        beside = {f"{quantity}{_TOLERANCE}": "", _TOLERANCE: quantity}
        return tuple(SpecSource(self._attributes[name], beside[name]) for name in beside if name in self._attributes)

    def _ranges(self) -> dict[str, SpecDefinition]:
        ranges: dict[str, SpecDefinition] = {}
        for name, each in _RANGES.items():
            attributes = [self._attributes[shortname] for shortname in each if shortname in self._attributes]
            if attributes:
                ranges[name] = SpecDefinition(name, tuple(map(SpecSource, attributes)), attributes[0], each)
        return ranges


def of_part(part: records.Part) -> dict[str, list[records.CatalogSpec]]:
    """Return a part's specs by v3's keys. A range has several specs: its value before its lower and its upper end."""
    by_name = _by_shortname(part)
    specs_by_key: dict[str, list[records.CatalogSpec]] = {}
    for name, spec in by_name.items():
        if name != _TOLERANCE:
            specs_by_key.setdefault(key(spec.attribute), []).append(spec)
    if _TOLERANCE in by_name:
        keys = [f"{quantity}_{_TOLERANCE}" for quantity in QUANTITIES if quantity in by_name]
        for each in keys or [_TOLERANCE]:
            specs_by_key.setdefault(each, [by_name[_TOLERANCE]])
    for name in specs_by_key.keys() & _RANGES.keys():
        specs_by_key[name].sort(key=lambda spec: _RANGES[key(spec.attribute)].index(spec.attribute.shortname))
    return specs_by_key


def of_most(parts: Iterable[records.Part], number: int) -> list[str]:
    """v3's keys of the attributes that most of the parts have, `number` of these: each the key that most show it by."""
    totals: Counter[str] = Counter()
    keys: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for part in parts:
        totals.update(spec.attribute.shortname for spec in part.specs)
        for key, specs in of_part(part).items():
            for spec in specs:
                keys[spec.attribute.shortname][key] += 1
    most = (keys[name].most_common(1) for name, _ in totals.most_common(number))
    return list(dict.fromkeys(key for pairs in most for key, _ in pairs))


def limits(specs: list[records.CatalogSpec]) -> tuple[str | None, str | None]:
    """Return the lower and the upper end of a part's spec, of ranges alone."""
    by_name = {each.attribute.shortname: each for each in specs}
    ends = _RANGES.get(key(specs[0].attribute), SpecRange("", "", ""))[1:]
    low, high = (str(float(by_name[end].si_value)) if end in by_name else None for end in ends)
    return low, high


def key(attribute: records.CatalogAttribute) -> str:
    """v3's key; for a tolerance the key without a quantity."""
    return _OWN.get(attribute.shortname) or _spelled(attribute.name)


def datatype(attribute: records.CatalogAttribute) -> str:
    """Return string, integer or decimal. Counts are integers, all other numbers decimals."""
    if attribute.value_type != "number" or attribute.shortname in _TOLERANCES:
        return "string"
    return "integer" if attribute.name.startswith("Number of ") else "decimal"


def values(spec: records.CatalogSpec) -> list[str]:
    if spec.attribute.value_type == "number":
        return [number(spec.attribute, float(spec.si_value))]
    return spec.value.split(", ") if spec.attribute.shortname in _LISTS else [spec.value]


def displayed(specs: list[records.CatalogSpec]) -> str:
    """v3's display_value: the catalog's, of a range without a value both ends, and of one end which it is."""
    first = specs[0].attribute
    if first.shortname in _TOLERANCES:
        return values(specs[0])[0]
    if not is_end(first):
        return specs[0].display_value
    if len(specs) == 1:
        return f"{specs[0].display_value} ({first.shortname[:3]})"
    return " to ".join(each.display_value for each in specs)


def asked_value(attribute: records.CatalogAttribute, value: str) -> str:
    """Return a value of a filter as the catalog has it: of tolerances ±5%, 5% and 5.0 are the number 5."""
    if attribute.shortname not in _TOLERANCES:
        return value
    bare = value.strip().removeprefix("±").removesuffix("%").rstrip()
    return value if as_number(bare) is None else bare


def as_number(text: str) -> float | None:
    """Return the finite number that a text is; None for others."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def number(attribute: records.CatalogAttribute, value: float) -> str:
    """Return a number in SI base units in v3's format: 14 for counts, ±5% for tolerances, else 22000.0."""
    if attribute.shortname in _TOLERANCES:
        return f"±{value:g}%"
    is_whole = datatype(attribute) == "integer" and value == int(value)
    return str(int(value)) if is_whole else str(float(value))


def metadata(spec_key: str, attribute: records.CatalogAttribute) -> dict[str, object]:
    """Return a SpecMetadata. `spec_key` is v3's."""
    unit = {"symbol": attribute.units_symbol, "__class__": "UnitOfMeasurement", "name": attribute.units_name}
    return {
        "name": _NAMES.get(spec_key, attribute.name),
        "key": spec_key,
        "unit": unit if attribute.units_name and datatype(attribute) != "string" else None,
        "datatype": datatype(attribute),
        "__class__": "SpecMetadata",
    }


def is_end(attribute: records.CatalogAttribute) -> bool:
    return attribute.shortname in _ENDS


def _spelled(name: str) -> str:
    return re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")


def _by_shortname(part: records.Part) -> Mapping[str, records.CatalogSpec]:
    return {each.attribute.shortname: each for each in part.specs}
