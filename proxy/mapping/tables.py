"""The tables of mappings/: v3 uids of companies and categories, what searches can name, and v3's names of specs.

uids.py holds the uids and how others are computed.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import cachetools
import msgspec

from proxy.kit import slices
from proxy.mapping.specs import SpecNames
from proxy.mapping.uids import Uid, Uids

LISTS = {"Manufacturer": "Brand"}  # v3's makers have two uids each, but are one list

PATTERNS_IDS = 100_000  # ids that a list remembers of patterns


class SearchField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of search.yaml: what the service can do with a field of v3's searches. `path` leads from a part of the
    service's to the value, `number` says that the values are part numbers."""

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


class NameIndex(dict[str, tuple[str, ...]]):
    """The service's ids by name, to the letter. Remembers what patterns have found, of `PATTERNS_IDS` ids at most."""

    def __init__(self, ids: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(ids)
        self._found: cachetools.LRUCache[str, tuple[str, ...]] = cachetools.LRUCache(
            PATTERNS_IDS, lambda ids: 1 + len(ids)
        )

    def like(self, pattern: str, matches: Callable[[str], bool]) -> slices.Slices[tuple[str, ...]]:
        """The ids of all whose names match, in slices: it yields after each."""
        known = self._found.get(pattern)
        if known is not None:
            return known
        found: list[str] = []
        for some in slices.sliced(self):
            found += chain.from_iterable(map(self.__getitem__, filter(matches, some)))
            yield
        ids = tuple(found)
        if len(ids) < PATTERNS_IDS:
            self._found[pattern] = ids
        return ids


class UnlistedError(LookupError):
    """A name has to be looked up in a list of the upstream, `name`, which the tables do not hold."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Tables(msgspec.Struct, frozen=True):
    """All tables of a mappings folder, and of the service's lists that are at hand the ids of each name. `v3_specs` are
    v3's spec keys, with the similar attribute of the service, if any, that is not mapped to it. `v3_fields` are the
    fields of v3's parts, as searches name them."""

    uids: dict[str, Uids]
    specs: SpecNames
    search: dict[str, SearchField]
    v3_specs: dict[str, str | None] = {}
    listed: dict[str, NameIndex] = {}
    v3_fields: frozenset[str] = frozenset()

    def __len__(self) -> int:
        """How many specs the service has."""
        return self.specs.listed

    def with_list(self, name: str, ids: Mapping[str, tuple[str, ...]]) -> "Tables":
        """The same with one list more."""
        names = ids if isinstance(ids, NameIndex) else NameIndex(ids)
        return msgspec.structs.replace(self, listed={**self.listed, name: names})

    def ids(self, kind: str, name: str) -> tuple[str, ...]:
        """The service's ids of all of a kind that are called exactly so. Raises UnlistedError where a list has it."""
        known = self.uids[kind].named(name)
        return (known,) if known is not None else self._list(kind).get(name, ())

    def ids_like(self, kind: str, pattern: str, matches: Callable[[str], bool]) -> tuple[str, ...]:
        """The service's ids of all of a kind whose names match a pattern. Raises UnlistedError."""
        return slices.run_to_end(self._list(kind).like(pattern, matches))

    def is_v3(self, field: str) -> bool:
        """Whether v3's searches of parts knew a field, whatever became of it."""
        return field in self.v3_fields or field in self.search

    def _list(self, kind: str) -> NameIndex:
        wanted = LISTS.get(kind, kind)
        if wanted not in self.listed:
            raise UnlistedError(wanted)
        return self.listed[wanted]

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
            "spec_name": self.specs.name,
            "spec_shown": self.specs.is_shown,
            "spec_datatype": self.specs.datatype,
            "spec_has_unit": self.specs.has_unit,
            "spec_values": self.specs.values,
            "spec_low": self.specs.low,
            "spec_high": self.specs.high,
            "spec_display": self.specs.display,
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
