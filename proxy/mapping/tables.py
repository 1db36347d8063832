"""Tables of mappings/: v3 uids and names of companies, categories and sources, both ways, the fields of searches, and
v3's names of specs.

The service has no field for uids (contract graphql.md §1.5). Those on record stand in mappings/uids.yaml, and a site's
own in the file of the setting `uids`. Every other object gets a uid made of a tag of six hex digits for its kind and
its numeric id in ten, which can be turned back; a source, of which only the name is known, a tag and a digest.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import msgspec

from proxy.mapping.specs import SpecNames

# Words that a reader of logs may recognize, by kind; any six digits that no recorded uid begins with would do.
TAGS = {"Seller": "5e11e4", "Brand": "b4a2d0", "Manufacturer": "3a2fac", "Category": "ca7e60", "Source": "50c4ce"}
KINDS = tuple(TAGS)
RENAMED = frozenset({"Seller", "Source"})  # kinds that are sent under v3's name; the others keep the service's
# v3 has two uids for each maker (as brand and as manufacturer), upstream has one list.
LISTS = {"Manufacturer": "Brand"}
REMEMBERED = 65_536  # entries of the cache of uids, far more than there are companies and categories


class KnownUid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of a uid table. `also` are other names of the same object; `source` is the origin of the entry."""

    uid: str
    name: str
    id: str | None = None
    also: tuple[str, ...] = ()
    year: int | None = None
    source: str = "recorded"

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.also

    def mistake(self) -> tuple[str, str] | None:
        """Return the invalid field and the error message; None for a valid entry."""
        if not re.fullmatch(r"[0-9a-f]{16}", self.uid):
            return "uid", f"uid {self.uid[:40]!r} is not 16 hex digits in small letters"
        if not self.name.strip():
            return "name", "name is empty; give the name that v3 sent"
        if self.id is not None and not re.fullmatch(r"[0-9]{1,12}", self.id):
            return "id", f"id {self.id[:40]!r} is not the service's numeric id, in quotes"
        return None


class UidTarget(NamedTuple):
    """Object that a uid or a name refers to: by numeric id, or by all names where the id is not known."""

    id: str | None
    names: tuple[str, ...] = ()


class Uids:
    """v3 uids of one kind of object, both ways. Responses hold the newest uid of an object; requests may use any of
    them. `named` are the objects by what v3 or upstream calls them."""

    def __init__(self, kind: str, shipped: Iterable[KnownUid], own: Sequence[KnownUid] = ()) -> None:
        """Build from the entries of the shipped table and a site's `own`, which take precedence whatever their year."""
        self._tag = TAGS[kind]
        self._renamed = kind in RENAMED
        self._entries: dict[str, list[KnownUid]] = defaultdict(list)  # by id, or by each name in small letters
        self.named: dict[str, UidTarget] = {}
        self._targets: dict[str, UidTarget] = {}
        # Entries without a year come first; within a year the order of the file is kept.
        tables = [sorted(entries, key=lambda entry: entry.year or 0) for entries in (shipped, own)]
        # An entry may have names only, and another one with one of them the id.
        ids = {name.casefold(): entry.id for entry in chain(*tables) if entry.id for name in entry.names}
        self.own = {name.casefold(): entry.uid for entry in tables[1] for name in entry.names}
        # A site knows the uids of its own data, so its table is added last.
        for table in tables:
            for entry in table:
                for entries in self._entries.values() if table is tables[1] else ():  # a uid stands for one object
                    entries[:] = [each for each in entries if each.uid != entry.uid]
                names = [*map(str.casefold, entry.names)]
                id_ = entry.id or next((ids[name] for name in names if name in ids), None)
                self._targets[entry.uid] = UidTarget(id_, entry.names)
                self.named |= dict.fromkeys(entry.names, self._targets[entry.uid])
                for key in (id_,) if id_ else names:
                    self._entries[key].append(entry)
        # Per object, not as a decorator, which would keep every Uids alive and share one cache between kinds.
        self.uid, self.name = lru_cache(REMEMBERED)(self._uid), lru_cache(REMEMBERED)(self._name)

    def _newest(self, numeric_id: str, name: str) -> KnownUid | None:
        entries = self._entries.get(numeric_id) or self._entries.get(name.casefold())
        return entries[-1] if entries else None

    def _uid(self, numeric_id: str, name: str) -> str:
        """Return 16 hex digits. Raises ValueError if the upstream id is not a number below 2^40."""
        entry = self._newest(numeric_id, name)
        return entry.uid if entry else self.computed(numeric_id)

    def computed(self, numeric_id: str) -> str:
        """Return the computed uid, which can be converted back, whether or not the object also has a recorded one."""
        number = int(numeric_id)
        # Ten hex digits of the sixteen are left for it.
        if not 0 <= number < 1 << 40:
            raise ValueError("an id of the service does not fit into a v3 uid")
        return f"{self._tag}{number:010x}"

    def _name(self, numeric_id: str, name: str) -> str:
        entry = self._newest(numeric_id, name) if self._renamed else None
        return entry.name if entry else name

    def names(self, numeric_id: str, name: str) -> list[str]:
        return [each for entry in self._recorded(numeric_id, name) for each in entry.names]

    def digest(self, v3_name: str) -> str:
        """Return 16 hex digits for a source without a recorded uid: upstream has no id of sources, only names."""
        return f"{self._tag}{blake2b(v3_name.encode(), digest_size=5).hexdigest()}"

    def by_any_name(self) -> dict[str, str]:
        """Return the uids on record by name in small letters."""
        found = ((name.casefold(), self._newest(target.id or "", name)) for name, target in self.named.items())
        return {name: entry.uid for name, entry in found if entry}

    def accepted(self, numeric_id: str, name: str) -> list[str]:
        """Return all uids that lead to an object; the last one is used in responses."""
        recorded = [entry.uid for entry in self._recorded(numeric_id, name)]
        return [self.computed(numeric_id), *recorded, self.uid(numeric_id, name)]

    def _recorded(self, numeric_id: str, name: str) -> list[KnownUid]:
        return self._entries.get(numeric_id, []) + self._entries.get(name.casefold(), [])

    def target(self, uid: str) -> UidTarget | None:
        """Return the object that a uid refers to; None if it is neither in a table nor computed."""
        number = re.fullmatch(rf"{self._tag}([0-9a-f]{{10}})", uid)
        return self._targets.get(uid) or (UidTarget(str(int(number[1], 16))) if number else None)


def source_uids(uids: Mapping[str, Uids]) -> dict[str, str]:
    """Return the recorded uids of sources, by name in small letters. Those that are sellers have the seller's uid,
    unless a site's own table gives them another."""
    return {**uids["Source"].by_any_name(), **uids["Seller"].by_any_name(), **uids["Source"].own}


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
        return msgspec.structs.replace(self, listed={**self.listed, name: ids})

    def ids(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the upstream ids of all objects of a kind with exactly this name, or with another name of the table's
        entry that has it. Raises UnlistedError if the list is needed."""
        entry = self.uids[kind].named.get(name)
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
