"""v3's keys, names, datatypes and values of specs, from the catalog's attributes (v3-rest.md §3.5, graphql.md §10.5).

v3's own keys are on record in data/spec_keys.txt, one a line, as v3's clients and recordings use them. An attribute
without a key on record has its name in lower case with words joined by _. Requests may use either spelling.
"""

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nexar_sandbox.catalog import records
from nexar_sandbox.legacy_v3 import criteria, query_string

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
_TOLERANCES_BY_KEY = {f"{quantity}_{_TOLERANCE}": (f"{quantity}{_TOLERANCE}", _TOLERANCE) for quantity in QUANTITIES}
_TOLERANCES = frozenset({_TOLERANCE, *(own for own, _ in _TOLERANCES_BY_KEY.values())})


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


class SpecDefinition(NamedTuple):
    """A spec by its requested name: v3's key, a reader of its values in a part, which are several of a range, and the
    attribute with its name and unit, None for keys without values."""

    key: str
    of: Callable[[records.Part], list[records.CatalogSpec]]
    about: records.CatalogAttribute | None = None
    range: SpecRange | None = None

    @property
    def is_numeric(self) -> bool:
        """True if v3 had numbers for it."""
        return self.about is not None and datatype(self.about) != "string"

    def counted(self, part: records.Part) -> list[tuple[int, tuple[str, ...]]]:
        """Return the values of a part that facets count, with the place of their attribute in a range: numbers as v3
        wrote them, and several texts at once."""
        places = self.range or ()
        specs = [(spec.attribute.shortname, tuple(_choices(spec))) for spec in self.of(part)]
        return [(places.index(name) if name in places else 0, texts) for name, texts in specs]

    def numbers(self, part: records.Part) -> list[float]:
        return [float(spec.si_value) for spec in self.of(part) if spec.attribute.value_type == "number"]

    def sort_value(self, part: records.Part, downwards: bool) -> float | str | None:
        """Return what orders the part: of a range the lower end upwards, the upper end downwards."""
        specs = self.of(part)
        if self.range is not None:
            end = self.range.high if downwards else self.range.low
            specs = [spec for spec in specs if spec.attribute.shortname == end]
        if not specs:
            return None
        return float(specs[0].si_value) if specs[0].attribute.value_type == "number" else specs[0].value

    def meets(self, criterion: criteria.Criterion) -> Callable[[records.Part], bool]:
        """Return whether parts meet a criterion. One without a wildcard compares numbers."""
        if criterion.has_wildcard:
            return lambda part: any(criterion.holds(text) for spec in self.of(part) for text in values(spec))
        if self.about is None or self.about.value_type == "text":
            wanted = set(map(_folded, criterion.values))
            return lambda part: any(
                not wanted.isdisjoint(map(_folded, (spec.value, *_choices(spec)))) for spec in self.of(part)
            )
        if criterion.is_range:
            bounds = [_bounds(self.about, criterion)]
        else:
            numbers = [as_number(asked_value(self.about, value)) for value in criterion.values]
            bounds = [(number, number) for number in numbers if number is not None]
        return lambda part: any(self._overlaps(self.of(part), low, high) for low, high in bounds)

    def _overlaps(self, specs: list[records.CatalogSpec], low: float, high: float) -> bool:
        """Return true if a value is from `low` to `high`, or if the ends of a range have that in common."""
        by_name = {spec.attribute.shortname: float(spec.si_value) for spec in specs}
        if self.range is None:
            return any(low <= number <= high for number in by_name.values())
        # An open end holds for all, and another only for parts that have the one it is compared with.
        reaches = low == -math.inf or by_name.get(self.range.high, -math.inf) >= low
        begins = high == math.inf or by_name.get(self.range.low, math.inf) <= high
        return bool(specs and reaches and begins) or low <= by_name.get(self.range.value, math.nan) <= high


class SpecNames:
    """The specs of one catalog by the keys that requests may use."""

    def __init__(self, attributes: Iterable[records.CatalogAttribute]) -> None:
        self._attributes = {each.shortname: each for each in attributes}
        own = [(each, self._of_attribute(each.shortname, key(each))) for each in self._attributes.values()]
        self._definitions = {name: spec for each, spec in own for name in (each.shortname, _spelled(each.name))}
        self._definitions |= {spec.key: spec for _, spec in own}
        for name, shortnames in (*_RANGES.items(), *_TOLERANCES_BY_KEY.items()):
            known = [self._attributes[each] for each in shortnames if each in self._attributes]
            if known:
                shown = SpecDefinition(name, partial(_shown, name), known[0], _RANGES.get(name))
                self._definitions[name] = shown

    def definition(self, key: str, field: str = "value") -> SpecDefinition | None:
        """Return the spec of a key, or of its min_value or max_value; None for a key that v3 did not have."""
        definition = self._definitions.get(key) or (SpecDefinition(key, _no_specs) if key in KEYS else None)
        if definition is None or field == "value":
            return definition
        if definition.range is None:
            return definition._replace(of=_no_specs)
        end = definition.range.low if field == "min_value" else definition.range.high
        return self._of_attribute(end, definition.key)

    def shown_as(self, key: str) -> frozenset[str]:
        """v3's keys under which parts show the spec of a requested key."""
        definition = self._definitions.get(key)
        if definition is None:
            return frozenset({key})
        return frozenset({definition.key, *(_TOLERANCES_BY_KEY if definition.key == _TOLERANCE else ())})

    def _of_attribute(self, shortname: str, key: str) -> SpecDefinition:
        return SpecDefinition(key, partial(_with_attribute, shortname), self._attributes.get(shortname))


def _with_attribute(shortname: str, part: records.Part) -> list[records.CatalogSpec]:
    return [spec for spec in part.specs if spec.attribute.shortname == shortname]


def _no_specs(_part: records.Part) -> list[records.CatalogSpec]:
    return []


def _shown(key: str, part: records.Part) -> list[records.CatalogSpec]:
    return of_part(part).get(key, [])


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


def _bounds(attribute: records.CatalogAttribute, criterion: criteria.Criterion) -> tuple[float, float]:
    """Return the ends of a range; an open one is infinite. Raises LegacyError."""
    low, high = (None if end is None else asked_value(attribute, end) for end in (criterion.low, criterion.high))
    try:
        return float(low or "-inf"), float(high or "inf")
    except ValueError:
        raise query_string.bad_request(f"{criterion.field} has no range from {low} to {high}") from None


def _choices(spec: records.CatalogSpec) -> list[str]:
    """Return a number as v3 wrote it, or each text of a list."""
    texts = dict.fromkeys(map(str.strip, spec.value.split(",")))
    return values(spec) if spec.attribute.value_type == "number" else list(texts)


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


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
