"""v3 names of specs: keys, datatypes and values from upstream attributes (contract graphql.md §10.5).

One v3 spec can come from several attributes of a part (a range from its two ends), and one attribute can have several
keys (a tolerance is named by the quantity that the part has beside it). mappings/spec_names.yaml declares both. Specs
are those of a part (SupSpec), or aggregations where only their attribute is read.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

End = Literal["min", "max"]


class SpecName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of spec_names.yaml; the comment at the head of the file describes the fields."""

    key: str
    name: str | None = None
    also: tuple[str, ...] = ()
    end: End | None = None
    beside: dict[str, str] = {}
    within: dict[str, str] = {}
    whole: bool = False
    many: bool = False
    plus_minus: bool = False


class SpecSource(NamedTuple):
    """Upstream attributes behind a v3 spec key: the shortnames of its value and of its two ends, and of the
    attribute that a part must have `beside` them. `key` is the canonical one of all spellings with this meaning."""

    key: str
    value: str | None
    low: str | None = None
    high: str | None = None
    beside: str | None = None


class SearchedField(NamedTuple):
    """Field that a search names: its canonical spelling; of a spec field such as `specs.resistance.value` also the key,
    and the attributes behind it with their shortnames: none of an unknown spec, nor of an end of what is no range.
    `shown_as` is the key that v3 shows: of an end the key of the range."""

    name: str
    key: str | None = None
    source: SpecSource | None = None
    shortnames: tuple[str, ...] = ()
    shown_as: str = ""


class SpecNames:
    """v3 spec keys, names, datatypes and values from the service's attributes, and back."""

    def __init__(self, names: dict[str, SpecName], attributes: Iterable[Any] = ()) -> None:
        """Build from the table, and from upstream `attributes` that the table lacks; `size` is the number of these.
        `sources` are those behind a key in any spelling, `fields` those of searches with sources, `spellings` the keys
        that responses have for a key that a request can use. Raises ValueError, naming the attributes, if the table
        contradicts itself."""
        self.names = names
        self.size = 0
        self.sources = _sources(names)
        self.spellings: dict[str, tuple[str, ...]] = {}
        for shortname, entry in names.items():
            shown = (entry.key, *entry.beside.values())
            self.spellings |= dict.fromkeys((entry.key, *entry.also, shortname), shown)
        self.spellings |= {key: (key,) for entry in names.values() for key in entry.beside.values()}
        of_key = {shortname: self.sources[entry.key] for shortname, entry in names.items()}
        self._ranges = {shortname: source for shortname, source in of_key.items() if source.low}
        for each in attributes:
            self.size += 1
            source = SpecSource(self.key(each.shortname, each.name), each.shortname)
            self.sources.setdefault(source.key, source)
            self.sources.setdefault(each.shortname, source)
        self.fields: dict[str, SearchedField] = {}
        for key, source in self.sources.items():
            ends = {"min_value": self.sources.get(source.low or ""), "max_value": self.sources.get(source.high or "")}
            for end, each in {"value": source, **ends}.items():
                if each:
                    shortnames = tuple(filter(None, (each.value, each.low, each.high)))
                    shown_as = self._ranges.get(each.value or "", each).key
                    field = SearchedField(f"specs.{each.key}.value", key, each, shortnames, shown_as)
                    self.fields[f"specs.{key}.{end}"] = field

    def key(self, shortname: str, name: str, specs: Sequence[Any] = (), category: Any = None) -> str:
        """Return v3's key, such as `pin_count` for `numberofpins`; of one that the table lacks, its name in v3's
        spelling. `specs` are those of its part: a tolerance is named by the quantity among them, or of its category."""
        entry = self.names.get(shortname)
        if entry is None:
            # v3's own keys are spelled so: `Case/Package` is case_package.
            return re.sub("[^a-z0-9]+", "_", name.lower()).strip("_") or shortname
        if entry.beside and specs:
            present = [name for spec in specs if (name := spec.attribute.shortname) in entry.beside]
            lineage = (category, *category.ancestors) if category and not present else ()
            present += [entry.within[each.name] for each in lineage if each.name in entry.within]
            return next((key for quantity, key in entry.beside.items() if quantity in present), entry.key)
        return entry.key

    def name(
        self, shortname: str, name: str, specs: Sequence[Any] = (), category: Any = None, key: str | None = None
    ) -> str:
        """Return v3's display name of an attribute under one of its keys, by default that of `specs` and `category`."""
        key, entry = key or self.key(shortname, name, specs, category), self.names.get(shortname)
        if entry and key in entry.beside.values():
            return key.replace("_", " ").title()
        return entry.name if entry and entry.name and key == entry.key else name

    def is_shown(self, shortname: str, specs: Sequence[Any], category: Any = None) -> bool:
        """Return whether a part shows this spec under its key. If several attributes make the same v3 spec, one is
        shown: the value rather than an end, and a dedicated attribute rather than the general tolerance."""
        if source := self._ranges.get(shortname):
            if shortname == source.value:
                return True
            # The lower end shows the range unless the value does; the upper end unless either does.
            before = (source.value, source.low)[: 1 if shortname == source.low else 2]
            return not any(spec.attribute.shortname in before for spec in specs)
        entry = self.names.get(shortname)
        if entry is None or not entry.beside:
            return True
        # A general tolerance beside a resistance is a resistance_tolerance, unless there is an attribute of that name.
        dedicated = self.sources[self.key(shortname, "", specs, category)].value
        return dedicated == shortname or _with(dedicated, specs) is None

    def datatype(self, shortname: str, value_type: str) -> Literal["string", "integer", "decimal"]:
        entry = self.names.get(shortname)
        if value_type != "number" or (entry and entry.plus_minus):
            return "string"
        return "integer" if entry and entry.whole else "decimal"

    def has_unit(self, shortname: str, units_name: str | None) -> bool:
        """Return whether v3 gave a unit. It gave none for a tolerance, whose text contains it."""
        entry = self.names.get(shortname)
        return bool(units_name) and not (entry and entry.plus_minus)

    def values(self, shortname: str, value_type: str, value: str, si_value: str) -> list[str]:
        """Return v3's list of strings: numbers in SI base units ("22000.0"), tolerances as text ("±5%"), texts
        unchanged, several for a list, none for the end of a range and for an empty value."""
        entry = self.names.get(shortname)
        if (entry and entry.end) or not (value or si_value):
            return []
        if value_type != "number":
            # How the upstream joins several values of one attribute.
            return value.split(", ") if entry and entry.many else [value]
        return [self.number(shortname, si_value or value, value)]

    def end(self, side: Literal["low", "high"], shortname: str, specs: Sequence[Any]) -> str | None:
        """Return an end of the range that an attribute belongs to, formatted as in `values`; None without one."""
        source = self._ranges.get(shortname)
        spec = _with(source.low if side == "low" else source.high, specs) if source else None
        return (self.number(spec.attribute.shortname, spec.siValue or spec.value, spec.value) or None) if spec else None

    def display(self, shortname: str, shown: str, value: str, si_value: str, specs: Sequence[Any]) -> str:
        """Return the display value: `±5%`; of a range without a value `-40 °C to 85 °C`, of one end `85 °C (max)`."""
        entry = self.names.get(shortname)
        if entry and entry.plus_minus:
            text = self.number(shortname, si_value or value, value)
            # Not a number: upstream's text says more.
            return shown if text == value else text
        if entry is None or entry.end is None:
            return shown
        source = self._ranges[shortname]
        low, high = _with(source.low, specs), _with(source.high, specs)
        if low and high:
            return f"{low.displayValue} to {high.displayValue}"
        return f"{shown} ({entry.end})"

    def number(self, shortname: str, value: float | str, text: str = "") -> str:
        """Format a number as v3 did: 14 for an integer, ±5% for a tolerance, 22000.0 for any other; `text` for none."""
        try:
            number = float(value)
        except ValueError:
            return text
        entry = self.names.get(shortname)
        if entry and entry.plus_minus:
            return f"±{number:g}%"
        return str(int(number)) if entry and entry.whole and number.is_integer() else str(number)


def _with(shortname: str | None, specs: Sequence[Any]) -> Any:
    return next((spec for spec in specs if spec.attribute.shortname == shortname), None)


def _sources(names: dict[str, SpecName]) -> dict[str, SpecSource]:
    """Return the attributes behind every key that a request can use. An attribute's own key takes precedence over a
    key that it has beside another attribute."""
    sources: dict[str, SpecSource] = {}
    roles: dict[str, dict[str | None, str]] = defaultdict(dict)
    for shortname, entry in names.items():
        earlier = roles[entry.key].setdefault(entry.end, shortname)
        if earlier != shortname:
            raise ValueError(f"{earlier} and {shortname} are both the {entry.end or 'value'} of {entry.key}")
    for key, role in roles.items():
        if ("min" in role) != ("max" in role):
            raise ValueError(f"{key} has one end only; it needs an attribute of `end: min` and one of `end: max`")
        sources[key] = SpecSource(key, role.get(None), role.get("min"), role.get("max"))
    for shortname, entry in names.items():
        source = sources[entry.key]
        single = SpecSource((*entry.also, shortname)[0], shortname) if source.low else source
        for spelling in (*entry.also, shortname):
            sources.setdefault(spelling, single)
        for quantity, key in entry.beside.items():
            if quantity not in names:
                raise ValueError(f"{shortname} has a key beside {quantity}, which is not an attribute of this table")
            sources.setdefault(key, SpecSource(key, shortname, beside=quantity))
    return sources
