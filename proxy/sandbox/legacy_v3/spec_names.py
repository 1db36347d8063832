"""v3's names, datatypes and values of specs, from the catalog's attributes (v3-rest.md §3.5, graphql.md §10.5).

v3's key is the attribute's name in lower case with words joined by _, but for those in `_OWN`. What counts things is
an integer, every other number a decimal.
"""

import re
from collections.abc import Iterable

from proxy.sandbox.catalog import records

_OWN = {
    "dcresistance_dcr_": "dc_resistance",
    "dielectric": "dielectric_characteristic",
    "leadfree": "lead_free_status",
    "mount": "mounting_style",
    "numberofpins": "pin_count",
    "reachsvhc": "reach_svhc_compliance",
    "rohs": "rohs_status",
}
# Other keys by which clients ask for the same (§1.1).
_ALSO = {"resistance_tolerance": "tolerance", "capacitance_tolerance": "tolerance"}
# Attributes whose value is a list, which the catalog joins with commas.
_LISTS = frozenset({"color", "features", "illuminationcolor", "interface", "lenscolor"})


class SpecNames:
    """Attributes by v3's keys."""

    def __init__(self, attributes: Iterable[records.Attribute]) -> None:
        found = tuple(attributes)
        self._by_key = {each.shortname: each for each in found} | {key(each): each for each in found}
        self._by_key |= {also: self._by_key[name] for also, name in _ALSO.items() if name in self._by_key}

    def attribute(self, asked: str) -> records.Attribute | None:
        """The attribute of v3's key, or of the catalog's own."""
        return self._by_key.get(asked)


def key(attribute: records.Attribute) -> str:
    """v3's key."""
    spelled = re.sub("[^a-z0-9]+", "_", attribute.name.lower()).strip("_")
    return _OWN.get(attribute.shortname, spelled)


def datatype(attribute: records.Attribute) -> str:
    """string, integer or decimal."""
    if attribute.value_type != "number":
        return "string"
    return "integer" if attribute.name.startswith("Number of ") else "decimal"


def values(spec: records.Spec) -> list[str]:
    """v3's list of texts."""
    if spec.attribute.value_type == "number":
        return [number(spec.attribute, float(spec.si_value))]
    return spec.value.split(", ") if spec.attribute.shortname in _LISTS else [spec.value]


def number(attribute: records.Attribute, value: float) -> str:
    """A number in SI base units as v3 wrote it: 14 of things that are counted, else 22000.0."""
    whole = datatype(attribute) == "integer" and value == int(value)
    return str(int(value)) if whole else str(float(value))


def metadata(attribute: records.Attribute) -> dict[str, object]:
    """The fields of a SpecMetadata."""
    unit = {"symbol": attribute.units_symbol, "__class__": "UnitOfMeasurement", "name": attribute.units_name}
    return {
        "name": attribute.name,
        "key": key(attribute),
        "unit": unit if attribute.units_name else None,
        "datatype": datatype(attribute),
    }
