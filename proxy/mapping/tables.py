"""Tables of mappings/: v3 uids of companies and categories, the fields of searches, and v3's names of specs.

uids.py holds the uids and how others are computed.
"""

from collections.abc import Callable, Mapping
from itertools import chain

import msgspec

from proxy.mapping.specs import SpecNames
from proxy.mapping.uids import Uids, UidTarget

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
