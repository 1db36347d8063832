"""The tables of mappings/: v3 uids of companies and categories, and v3's names of specs.

uids.py holds the uids and how others are computed.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from proxy.mapping.uids import Uid, Uids

LISTS = {"Manufacturer": "Brand"}  # v3's makers have two uids each, but are one list


class Attribute(Protocol):
    """What is read of the service's SupAttribute."""

    @property
    def shortname(self) -> str:
        """The key of its filters and sorts."""

    @property
    def name(self) -> str:
        """Its name for people."""


class SpecName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of spec_names.yaml. `also` are other keys that v3 had for it."""

    key: str
    also: tuple[str, ...] = ()
    whole: bool = False
    many: bool = False


class SpecNames:
    """v3 spec keys, datatypes and values from the service's attributes (contract graphql.md §10.5)."""

    def __init__(self, names: dict[str, SpecName], attributes: Iterable[Attribute] = ()) -> None:
        """By the table, and by `attributes` of the service that it does not hold."""
        self._names = names
        self._shortnames = {shortname: shortname for shortname in names}
        for shortname, entry in names.items():
            self._shortnames |= dict.fromkeys((entry.key, *entry.also), shortname)
        for each in attributes:
            self._shortnames.setdefault(self.key(each.shortname, each.name), each.shortname)
            self._shortnames.setdefault(each.shortname, each.shortname)

    def with_attributes(self, attributes: Iterable[Attribute]) -> "SpecNames":
        """The same with all attributes of the service."""
        return SpecNames(self._names, attributes)

    def key(self, shortname: str, name: str) -> str:
        """v3's key: `pin_count` for `numberofpins`; the attribute's name in v3's spelling where none is known."""
        known = self._names.get(shortname)
        return known.key if known else re.sub("[^a-z0-9]+", "_", name.lower()).strip("_") or shortname

    def shortname(self, key: str) -> str | None:
        """The service's shortname of a v3 key, which may be the shortname itself; None where none is known."""
        return self._shortnames.get(key)

    def is_list(self, key: str) -> bool:
        """Whether v3 listed several values under a key."""
        known = self._names.get(self.shortname(key) or "")
        return known is not None and known.many

    def datatype(self, shortname: str, value_type: str) -> Literal["string", "integer", "decimal"]:
        """v3's word for the kind of a value."""
        if value_type != "number":
            return "string"
        known = self._names.get(shortname)
        return "integer" if known and known.whole else "decimal"

    def values(self, shortname: str, value_type: str, value: str, si_value: str) -> list[str]:
        """v3's list of strings: numbers in SI base units ("22000.0"), texts as they are, several where v3 had some."""
        known = self._names.get(shortname)
        if value_type != "number":
            return value.split(", ") if known and known.many else [value]
        try:
            return [self.number(shortname, float(si_value or value))]
        except ValueError:
            return [value]

    def number(self, shortname: str, number: float) -> str:
        """A number as v3 wrote it: 14 for whole ones, 22000.0 for others."""
        known = self._names.get(shortname)
        return str(int(number)) if known and known.whole and number.is_integer() else str(number)


class SearchField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of search.yaml: what the service can do with a field of v3's searches."""

    filter: str | None = None
    facet: str | None = None
    sort: str | None = None
    uid: str | None = None
    name: str | None = None
    id: bool = False
    every: bool = False
    stock: bool = False
    instead: str | None = None


class UnlistedError(LookupError):
    """A name can only be told by one of the service's lists, `name`, which is not at hand."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Tables(msgspec.Struct, frozen=True):
    """All tables of a mappings folder, and of the service's lists that are at hand the ids of each name."""

    uids: dict[str, Uids]
    specs: SpecNames
    search: dict[str, SearchField]
    listed: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def with_list(self, name: str, ids: Mapping[str, tuple[str, ...]]) -> "Tables":
        """The same with one list more."""
        return msgspec.structs.replace(self, listed={**self.listed, name: ids})

    def ids(self, kind: str, name: str) -> tuple[str, ...]:
        """The service's ids of all of a kind that are called exactly so. Raises UnlistedError where a list has it."""
        known = self.uids[kind].named(name)
        if known is not None:
            return (known,)
        wanted = LISTS.get(kind, kind)
        if wanted not in self.listed:
            raise UnlistedError(wanted)
        return self.listed[wanted].get(name, ())

    def transforms(self) -> dict[str, Any]:
        """The functions of mapping files that read a table."""
        return {
            "seller_uid": self.uids["Seller"].uid,
            "brand_uid": self.uids["Brand"].uid,
            "manufacturer_uid": self.uids["Manufacturer"].uid,
            "category_uid": self.uids["Category"].uid,
            "category_line": self._category_line,
            "category_uids": self._category_uids,
            "parent_uid": self._parent_uid,
            "seller_name": self.uids["Seller"].name,
            "source_uid": self._source_uid,
            "source_name": self._source_name,
            "spec_key": self.specs.key,
            "spec_datatype": self.specs.datatype,
            "spec_values": self.specs.values,
        }

    def _source_uid(self, name: str) -> Uid:
        """The uid of a source by either of its names."""
        return self.uids["Source"].source(name, self._source_name(name))

    def _source_name(self, name: str) -> str:
        """v3's name of a source, which is a seller for the most part."""
        known = self.uids["Source"].name("", name)
        return known if known != name else self.uids["Seller"].name(self.uids["Seller"].named(name) or "", name)

    def _parent_uid(self, ancestors: list[Any]) -> Uid | None:
        """The uid of the last of them; null for the root, which has none."""
        return self.uids["Category"].uid(ancestors[-1].id, ancestors[-1].name) if ancestors else None

    def _category_uids(self, categories: list[Any]) -> list[Uid]:
        """A uid each."""
        uid = self.uids["Category"].uid
        return [uid(category.id, category.name) for category in categories]

    def _category_line(self, category: Any) -> list[Uid]:
        """The uids from the root to the category itself: v3's order, root first."""
        return self._category_uids([*category.ancestors, category])
