"""v3's names of specs: keys, datatypes and values from the service's attributes (contract graphql.md §10.5).

One v3 spec can come from several attributes of a part (a range from its two ends), and one attribute can have several
keys (a tolerance is named by the quantity that the part has beside it). mappings/spec_names.yaml declares both.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

End = Literal["min", "max"]


class Attribute(Protocol):
    """What is read of the service's SupAttribute."""

    @property
    def shortname(self) -> str:
        """The key of its filters and sorts."""

    @property
    def name(self) -> str:
        """Its name for people."""


class HasAttribute(Protocol):
    """Something of an attribute: a spec of a part, an aggregation."""

    @property
    def attribute(self) -> Attribute:
        """The attribute."""


class Spec(HasAttribute, Protocol):
    """What is read of the service's SupSpec."""

    @property
    def value(self) -> str:
        """The number or text."""

    @property
    def siValue(self) -> str:  # noqa: N802 - the service's name
        """The number in SI base units."""

    @property
    def valueType(self) -> str:  # noqa: N802 - the service's name
        """`number` or `text`."""

    @property
    def displayValue(self) -> str:  # noqa: N802 - the service's name
        """The value with its unit, for people."""


class SpecName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of spec_names.yaml, whose head describes the fields."""

    key: str
    name: str | None = None
    also: tuple[str, ...] = ()
    end: End | None = None
    beside: dict[str, str] = {}
    whole: bool = False
    many: bool = False
    plus_minus: bool = False


class SpecSource(NamedTuple):
    """What the service has for a key of a request: the shortnames of the attributes that are the value and the ends of
    the spec, and of the attribute that a part must have beside them. `key` is the spelling that stands for all that
    mean the same."""

    key: str
    value: str | None
    low: str | None = None
    high: str | None = None
    beside: str | None = None

    @property
    def shortnames(self) -> tuple[str, ...]:
        """The attributes that make the spec."""
        return tuple(name for name in (self.value, self.low, self.high) if name)

    @property
    def is_range(self) -> bool:
        """Whether the spec has ends."""
        return self.low is not None


class SpecNames:
    """v3 spec keys, names, datatypes and values from the service's attributes, and back."""

    def __init__(self, names: dict[str, SpecName], attributes: Iterable[Attribute] = ()) -> None:
        """By the table, and by `attributes` of the service that it does not hold; `listed` is how many the service has.
        Raises ValueError, naming the attributes, where the table contradicts itself."""
        self.names = names
        self.listed = 0
        self._sources = _sources(names)
        self._spellings = _spellings(names)
        of_key = {shortname: self._sources[entry.key] for shortname, entry in names.items()}
        self._ranges = {shortname: source for shortname, source in of_key.items() if source.is_range}
        for each in attributes:
            self.listed += 1
            source = SpecSource(self.key(each.shortname, each.name), each.shortname)
            self._sources.setdefault(source.key, source)
            self._sources.setdefault(each.shortname, source)

    def with_attributes(self, attributes: Iterable[Attribute]) -> "SpecNames":
        """The same with all attributes of the service."""
        return SpecNames(self.names, attributes)

    def key(self, shortname: str, name: str, specs: Sequence[HasAttribute] = ()) -> str:
        """v3's key: `pin_count` for `numberofpins`; the attribute's name in v3's spelling where none is known.

        `specs` are those of the same part: a tolerance is named by the quantity among them.
        """
        known = self.names.get(shortname)
        if known is None:
            return re.sub("[^a-z0-9]+", "_", name.lower()).strip("_") or shortname
        if known.beside and specs:
            present = [name for spec in specs if (name := spec.attribute.shortname) in known.beside]
            return next((key for quantity, key in known.beside.items() if quantity in present), known.key)
        return known.key

    def name(self, shortname: str, name: str, key: str | None = None) -> str:
        """v3's name for people; the attribute's own where none is known, and for a `key` of the attribute alone."""
        known = self.names.get(shortname)
        return known.name if known and known.name and key in (None, known.key) else name

    def is_shown(self, shortname: str, specs: Sequence[Spec]) -> bool:
        """Whether a spec stands for its key on this part: one of several attributes that make the same v3 spec does,
        the value before the ends, and an attribute of its own before a tolerance in general."""
        if source := self._ranges.get(shortname):
            if shortname == source.value:
                return True
            before = (source.value, source.low)[: 1 if shortname == source.low else 2]
            return not any(spec.attribute.shortname in before for spec in specs)
        known = self.names.get(shortname)
        if known is None or not known.beside:
            return True
        dedicated = self._sources[self.key(shortname, "", specs)].value
        return dedicated == shortname or _with(dedicated, specs) is None

    def source(self, key: str) -> SpecSource | None:
        """What the service has for a key, which may be any spelling of it; None where it is not known."""
        return self._sources.get(key)

    def shown_as(self, key: str) -> str:
        """v3's key of what a request names so: of an attribute of a range that of the range."""
        source = self.source(key)
        if source is None:
            return key
        range_ = self._ranges.get(source.value or "")
        return range_.key if range_ else source.key

    def spellings(self, key: str) -> tuple[str, ...]:
        """The keys in an answer of what a request names so; the key itself where the table does not hold it."""
        return self._spellings.get(key, (key,))

    def is_plus_minus(self, key: str) -> bool:
        """Whether v3 wrote a key's numbers as text with their sign."""
        source = self.source(key)
        known = self.names.get(source.value or "") if source else None
        return known is not None and known.plus_minus

    def is_list(self, key: str) -> bool:
        """Whether v3 listed several values under a key."""
        source = self.source(key)
        known = self.names.get(source.value or "") if source else None
        return known is not None and known.many

    def datatype(self, shortname: str, value_type: str) -> Literal["string", "integer", "decimal"]:
        """v3's word for the kind of a value."""
        known = self.names.get(shortname)
        if value_type != "number" or (known and known.plus_minus):
            return "string"
        return "integer" if known and known.whole else "decimal"

    def has_unit(self, shortname: str, units_name: str | None) -> bool:
        """Whether v3 had a unit: not of a tolerance, whose text has it."""
        known = self.names.get(shortname)
        return bool(units_name) and not (known and known.plus_minus)

    def values(self, shortname: str, value_type: str, value: str, si_value: str) -> list[str]:
        """v3's list of strings: numbers in SI base units ("22000.0"), tolerances as text ("±5%"), texts as they are,
        several where v3 had some; none for the end of a range."""
        known = self.names.get(shortname)
        if known and known.end:
            return []
        if value_type != "number":
            return value.split(", ") if known and known.many else [value]
        return [self._si(shortname, value, si_value)]

    def low(self, shortname: str, specs: Sequence[Spec]) -> str | None:
        """The lower end of the range that an attribute belongs to, as `values` has it; None where there is none."""
        source = self._ranges.get(shortname)
        return None if source is None else self._end(source.low, specs)

    def high(self, shortname: str, specs: Sequence[Spec]) -> str | None:
        """The upper end, in the same way."""
        source = self._ranges.get(shortname)
        return None if source is None else self._end(source.high, specs)

    def display(self, shortname: str, shown: str, value: str, si_value: str, specs: Sequence[Spec]) -> str:
        """A spec for people: `-40 °C to 85 °C` of a range without a value, `85 °C (max)` of one of its ends, `±5%`."""
        known = self.names.get(shortname)
        if known and known.plus_minus:
            return self._si(shortname, value, si_value)
        if known is None or known.end is None:
            return shown
        source = self._ranges[shortname]
        low, high = _with(source.low, specs), _with(source.high, specs)
        if low and high:
            return f"{low.displayValue} to {high.displayValue}"
        return f"{shown} ({known.end})"

    def number(self, shortname: str, number: float) -> str:
        """A number as v3 wrote it: 14 for whole ones, ±5% for tolerances, 22000.0 for others."""
        known = self.names.get(shortname)
        if known and known.plus_minus:
            return f"±{number:g}%"
        return str(int(number)) if known and known.whole and number.is_integer() else str(number)

    def _end(self, shortname: str | None, specs: Sequence[Spec]) -> str | None:
        found = _with(shortname, specs)
        return self._si(found.attribute.shortname, found.value, found.siValue) if found else None

    def _si(self, shortname: str, value: str, si_value: str) -> str:
        try:
            return self.number(shortname, float(si_value or value))
        except ValueError:
            return value


def _with(shortname: str | None, specs: Sequence[Spec]) -> Spec | None:
    """The spec of an attribute among those of a part."""
    for spec in specs:
        if spec.attribute.shortname == shortname:
            return spec
    return None


def _sources(names: dict[str, SpecName]) -> dict[str, SpecSource]:
    """Every key that a request can use, with the attributes behind it. An attribute's own key comes before one that it
    has beside another."""
    found: dict[str, SpecSource] = {}
    roles: dict[str, dict[str | None, str]] = defaultdict(dict)
    for shortname, entry in names.items():
        other = roles[entry.key].setdefault(entry.end, shortname)
        if other != shortname:
            raise ValueError(f"{other} and {shortname} are both the {entry.end or 'value'} of {entry.key}")
    for key, role in roles.items():
        if ("min" in role) != ("max" in role):
            raise ValueError(f"{key} has one end only; it needs an attribute of `end: min` and one of `end: max`")
        found[key] = SpecSource(key, role.get(None), role.get("min"), role.get("max"))
    for shortname, entry in names.items():
        in_range = found[entry.key].is_range
        alone = SpecSource((*entry.also, shortname)[0], shortname) if in_range else found[entry.key]
        for spelling in (*entry.also, shortname):
            found.setdefault(spelling, alone)
        for quantity, key in entry.beside.items():
            if quantity not in names:
                raise ValueError(f"{shortname} has a key beside {quantity}, which is no attribute of this table")
            found.setdefault(key, SpecSource(key, shortname, beside=quantity))
    return found


def _spellings(names: dict[str, SpecName]) -> dict[str, tuple[str, ...]]:
    """Every key that a request can use, with the keys that answers have in its place."""
    found: dict[str, tuple[str, ...]] = {}
    for shortname, entry in names.items():
        keys = (entry.key, *entry.beside.values())
        found |= dict.fromkeys((entry.key, *entry.also, shortname), keys)
    for entry in names.values():
        found |= {key: (key,) for key in entry.beside.values()}
    return found
