"""Tables of mappings/: v3 uids of companies and categories, the fields of searches, and v3's names of specs.

uids.py holds the uids and how others are computed.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import msgspec

from proxy.mapping.specs import SpecNames
from proxy.mapping.uids import Uid, Uids, UidTarget, source_uids

# v3 has two uids for each maker (as brand and as manufacturer), upstream has one list.
LISTS = {"Manufacturer": "Brand"}


class SearchField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of search.yaml: upstream support for a field of v3's searches. `path` leads from an upstream part to the
    value; `number` marks part numbers."""

    filter: str | None = None
    facet: str | None = None
    sort: str | None = None
    path: str | None = None
    number: bool = False
    uid: str | None = None
    name: str | None = None
    id: bool = False
    every: bool = False
    stock: bool = False
    instead: str | None = None


class UnlistedError(LookupError):
    """A name must be looked up in the upstream list `name`, which these tables do not contain."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Tables(msgspec.Struct, frozen=True):
    """All tables of a mappings folder, and the name indexes of the upstream lists that have been fetched. `v3_specs`
    are v3's spec keys, with the similar upstream attribute, if any, that is not mapped to it. `v3_fields` are the
    fields of v3's parts, as searches name them."""

    uids: dict[str, Uids]
    specs: SpecNames
    search: dict[str, SearchField]
    v3_specs: dict[str, str | None] = {}
    listed: dict[str, Mapping[str, tuple[str, ...]]] = {}
    v3_fields: frozenset[str] = frozenset()

    def __len__(self) -> int:  # the directory compares lengths, to detect a list that may be incomplete
        """Return the number of specs that upstream listed."""
        return self.specs.listed

    def with_list(self, name: str, ids: Mapping[str, tuple[str, ...]]) -> "Tables":
        """Return a copy with one more list."""
        return msgspec.structs.replace(self, listed={**self.listed, name: ids})

    def ids(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the upstream ids of all objects of a kind with exactly this name, or with another name of the table's
        entry that has it. Raises UnlistedError if the list is needed."""
        entry = self.uids[kind].named(name)
        return self._list(kind).get(name, ()) if entry is None else self.ids_of(kind, entry)

    def ids_of(self, kind: str, target: UidTarget) -> tuple[str, ...]:
        """Return the upstream ids of what a uid or a table's entry refers to: by its first name that the list has, else
        by any, whatever the case of letters. Raises UnlistedError."""
        if target.id is not None:  # a list may not have been fetched
            return (target.id,)
        exact, folded = map(self._list(kind).get, target.names), set(map(str.casefold, target.names))
        return next(filter(None, exact), None) or self.ids_like(kind, lambda name: name.casefold() in folded)

    def ids_like(self, kind: str, matches: Callable[[str], bool]) -> tuple[str, ...]:
        """Return the upstream ids of all objects of a kind whose names match. Raises UnlistedError."""
        matching = (ids for name, ids in self._list(kind).items() if matches(name))
        return tuple(dict.fromkeys(chain.from_iterable(matching)))

    def is_v3(self, field: str) -> bool:
        """Return whether v3's part search had this field, whether or not upstream supports it."""
        return field in self.v3_fields or field in self.search

    def _list(self, kind: str) -> Mapping[str, tuple[str, ...]]:
        list_name = LISTS.get(kind, kind)
        if list_name not in self.listed:
            raise UnlistedError(list_name)
        return self.listed[list_name]

    def transforms(self) -> dict[str, Any]:
        """Return the functions for mapping files that read a table, by name."""
        return {
            "seller_uid": self.uids["Seller"].uid,
            "brand_uid": self.uids["Brand"].uid,
            "manufacturer_uid": self.uids["Manufacturer"].uid,
            "category_uid": self.uids["Category"].uid,
            "category_line": self._category_line,
            "category_uids": self._category_uids,
            "parent_uid": self._parent_uid,
            "seller_name": self.uids["Seller"].name,
            "source_uid": self._source_uid(),
            "source_name": self._source_name,
            "spec_key": self.specs.key,
            "spec_name": self.specs.name,
            "spec_shown": self.specs.is_shown,
            "spec_datatype": self.specs.datatype,
            "spec_has_unit": self.specs.has_unit,
            "spec_values": self.specs.values,
            "spec_low": self.specs.low,
            "spec_high": self.specs.high,
            "spec_display": self.specs.display,
        }

    def _source_uid(self) -> Callable[[str, Mapping[str, tuple[str, ...]]], Uid]:
        """Return the function that gives the uid of a source, by its name and the ids of all sellers."""
        recorded, own = source_uids(self.uids), self.uids["Source"].own

        def source_uid(name: str, sellers: Mapping[str, tuple[str, ...]]) -> Uid:
            if name in sellers and name.casefold() not in own:
                return self.uids["Seller"].uid(sellers[name][0], name)
            v3_name = self._source_name(name)
            known = recorded.get(v3_name.casefold()) or recorded.get(name.casefold())
            return known or self.uids["Source"].digest(v3_name)

        return source_uid

    def _source_name(self, name: str) -> str:
        """Return v3's name of a source. Most sources are sellers, so their table is the fallback."""
        recorded, sellers = self.uids["Source"].name("", name), self.uids["Seller"]
        entry = sellers.named(name)
        return recorded if recorded != name else sellers.name((entry and entry.id) or "", name)

    def _parent_uid(self, ancestors: list[Any]) -> Uid | None:
        """Return the uid of the last ancestor; None for the root category."""
        return self.uids["Category"].uid(ancestors[-1].id, ancestors[-1].name) if ancestors else None

    def _category_uids(self, categories: list[Any]) -> list[Uid]:
        """Return the uid of each category."""
        uid = self.uids["Category"].uid
        return [uid(category.id, category.name) for category in categories]

    def _category_line(self, category: Any) -> list[Uid]:
        """Return the uids from the root to the category itself, in v3's order: root first."""
        return self._category_uids([*category.ancestors, category])
