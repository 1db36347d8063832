"""v3 uids and names of companies, categories and sources, both ways.

The service has no field for them (contract graphql.md §1.5). Those on record stand in mappings/uids.yaml, and a
site's own in the file of the setting `uids`. Every other object gets a uid made of a tag of six hex digits for its kind
and its numeric id in ten, which can be turned back; a source, of which only the name is known, a tag and a digest.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec

Kind = Literal["Seller", "Brand", "Manufacturer", "Category", "Source"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Words that a reader of logs may recognize; any six digits that no recorded uid begins with would do.
TAGS: dict[str, str] = {
    "Seller": "5e11e4",
    "Brand": "b4a2d0",
    "Manufacturer": "3a2fac",
    "Category": "ca7e60",
    "Source": "50c4ce",
}
RENAMED = frozenset({"Seller", "Source"})  # kinds that are sent under v3's name; the others keep the service's
REMEMBERED = 65_536  # entries of the cache of uids, far more than there are companies and categories

Uid = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}\\Z")]


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
        """All names of the object."""
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
    them."""

    def __init__(self, kind: str, shipped: Iterable[KnownUid], own: Sequence[KnownUid] = ()) -> None:
        """Build from the entries of the shipped table and a site's `own`, which take precedence whatever their year."""
        self._tag = TAGS[kind]
        self._renamed = kind in RENAMED
        self._entries: dict[str, list[KnownUid]] = defaultdict(list)  # by id, or by each name in small letters
        self._named: dict[str, UidTarget] = {}
        self._targets: dict[str, UidTarget] = {}
        tables = _oldest_first(shipped), _oldest_first(own)
        # An entry may have names only, and another one with one of them the id.
        ids = {name.casefold(): entry.id for entry in chain(*tables) if entry.id for name in entry.names}
        self.own = {name.casefold(): entry.uid for entry in tables[1] for name in entry.names}
        for entry in tables[0]:
            self._add(entry, ids)
        # A site knows the uids of its own data, so its table is added last.
        for entry in tables[1]:
            for entries in self._entries.values():  # a uid stands for one object
                entries[:] = [each for each in entries if each.uid != entry.uid]
            self._add(entry, ids)
        # Per object, not as a decorator, which would keep every Uids alive and share one cache between kinds.
        self.uid, self.name = lru_cache(REMEMBERED)(self._uid), lru_cache(REMEMBERED)(self._name)

    def _add(self, entry: KnownUid, ids: Mapping[str, str]) -> None:
        """Add an entry, which takes precedence over all earlier ones."""
        names = [*map(str.casefold, entry.names)]
        id_ = entry.id or next((ids[name] for name in names if name in ids), None)
        self._targets[entry.uid] = UidTarget(id_, entry.names)
        self._named |= dict.fromkeys(entry.names, self._targets[entry.uid])
        for key in (id_,) if id_ else names:
            self._entries[key].append(entry)

    def _newest(self, numeric_id: str, name: str) -> KnownUid | None:
        """Return the newest entry of an object; None if it is in no table."""
        entries = self._entries.get(numeric_id) or self._entries.get(name.casefold())
        return entries[-1] if entries else None

    def _uid(self, numeric_id: str, name: str) -> Uid:
        """Return 16 hex digits. Raises ValueError if the upstream id is not a number below 2^40."""
        entry = self._newest(numeric_id, name)
        return entry.uid if entry else self.computed(numeric_id)

    def computed(self, numeric_id: str) -> Uid:
        """Return the computed uid, which can be converted back, whether or not the object also has a recorded one."""
        number = int(numeric_id)
        # Ten hex digits of the sixteen are left for it.
        if not 0 <= number < 1 << 40:
            raise ValueError("an id of the service does not fit into a v3 uid")
        return f"{self._tag}{number:010x}"

    def _name(self, numeric_id: str, name: str) -> str:
        """Return v3's name of an object that upstream calls `name`."""
        entry = self._newest(numeric_id, name) if self._renamed else None
        return entry.name if entry else name

    def named(self, name: str) -> UidTarget | None:
        """Return the object that v3 or upstream calls exactly this; None if it is in no table."""
        return self._named.get(name)

    def names(self, numeric_id: str, name: str) -> list[str]:
        """Return the names on record of an object that upstream calls `name`."""
        return [each for entry in self._recorded(numeric_id, name) for each in entry.names]

    def digest(self, v3_name: str) -> Uid:
        """Return 16 hex digits for a source without a recorded uid: upstream has no id of sources, only names."""
        return f"{self._tag}{blake2b(v3_name.encode(), digest_size=5).hexdigest()}"

    def by_any_name(self) -> dict[str, str]:
        """Return the uids on record by name in small letters."""
        found = ((name.casefold(), self._newest(target.id or "", name)) for name, target in self._named.items())
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


def source_uids(uids: Mapping[str, Uids]) -> dict[str, Uid]:
    """Return the recorded uids of sources, by name in small letters. Those that are sellers have the seller's uid,
    unless a site's own table gives them another."""
    return {**uids["Source"].by_any_name(), **uids["Seller"].by_any_name(), **uids["Source"].own}


def _oldest_first(entries: Iterable[KnownUid]) -> list[KnownUid]:
    """Sort entries by year. Entries without a year come first; within a year the order of the file is kept."""
    return sorted(entries, key=lambda entry: entry.year or 0)
