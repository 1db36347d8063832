"""v3 uids and names of companies, categories and sources, both ways.

The service has no field for them (contract graphql.md §1.5). Those on record stand in mappings/uids.yaml, and a
site's own in the file of the setting `uids`. Every other object gets a uid made of a tag of six hex digits for its kind
and its numeric id in ten, which can be turned back; a source, of which only the name is known, a tag and a digest.
"""

import re
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
    """Object that a uid or a name refers to: by numeric id, or by all names, in small letters, where the id is not
    known."""

    id: str | None
    names: tuple[str, ...] = ()


class Uids:
    """v3 uids of one kind of object, both ways. Responses hold the newest uid of an object; requests may use any of
    them."""

    def __init__(self, kind: str, shipped: Iterable[KnownUid], own: Sequence[KnownUid] = ()) -> None:
        """Build from the entries of the shipped table and a site's `own`, which take precedence whatever their year."""
        self._tag = TAGS[kind]
        self._renamed = kind in RENAMED
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        self._v3_names: dict[str, str] = {}
        self._named: dict[str, UidTarget] = {}
        self._targets: dict[str, UidTarget] = {}
        self._entries: dict[str, list[KnownUid]] = {}
        self._computed = re.compile(rf"{self._tag}[0-9a-f]{{10}}")
        tables = _oldest_first(shipped), _oldest_first(own)
        # An entry may have names only, and another one with one of them the id.
        self._ids = {name.casefold(): entry.id for entry in chain(*tables) if entry.id for name in entry.names}
        for entry in tables[0]:
            self._add(entry)
        # A site knows the uids of its own data, so its table is added last.
        for entry in tables[1]:
            self._displace(entry)
            self._add(entry)
        # Per object, not as a decorator, which would keep every Uids alive and share one cache between kinds.
        self.uid = lru_cache(REMEMBERED)(self._uid)

    def _add(self, entry: KnownUid) -> None:
        """Add an entry, which takes precedence over all earlier ones."""
        names = tuple(map(str.casefold, entry.names))
        id_ = entry.id or next((self._ids[name] for name in names if name in self._ids), None)
        target = self._targets[entry.uid] = UidTarget(id_, names)
        self._named |= dict.fromkeys(entry.names, target)
        keys = (id_,) if id_ else names
        (self._by_id if id_ else self._by_name).update(dict.fromkeys(keys, entry.uid))
        for key in keys:
            self._entries.setdefault(key, []).append(entry)
        if self._renamed:
            self._v3_names |= dict.fromkeys(keys, entry.name)

    def _displace(self, entry: KnownUid) -> None:
        """Remove the uid of a site's own entry from the object that the shipped table gives it to: a uid stands for
        one object."""
        self._by_id = {id_: uid for id_, uid in self._by_id.items() if uid != entry.uid}
        self._by_name = {name: uid for name, uid in self._by_name.items() if uid != entry.uid}
        for entries in self._entries.values():
            entries[:] = [each for each in entries if each.uid != entry.uid]

    def _uid(self, numeric_id: str, name: str) -> Uid:
        """Return 16 hex digits. Raises ValueError if the upstream id is not a number below 2^40."""
        return self._by_id.get(numeric_id) or self._by_name.get(name.casefold()) or self.computed(numeric_id)

    def computed(self, numeric_id: str) -> Uid:
        """Return the computed uid, which can be converted back, whether or not the object also has a recorded one."""
        number = int(numeric_id)
        # Ten hex digits of the sixteen are left for it.
        if not 0 <= number < 1 << 40:
            raise ValueError("an id of the service does not fit into a v3 uid")
        return f"{self._tag}{number:010x}"

    def name(self, numeric_id: str, name: str) -> str:
        """Return v3's name of an object that upstream calls `name`."""
        return self._v3_names.get(numeric_id) or self._v3_names.get(name.casefold(), name)

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
        found = ((name.casefold(), target.id or "") for name, target in self._named.items())
        return {name: uid for name, id_ in found if (uid := self._by_id.get(id_) or self._by_name.get(name))}

    def accepted(self, numeric_id: str, name: str) -> list[str]:
        """Return all uids that lead to an object; the last one is used in responses."""
        recorded = [entry.uid for entry in self._recorded(numeric_id, name)]
        return [self.computed(numeric_id), *recorded, self.uid(numeric_id, name)]

    def _recorded(self, numeric_id: str, name: str) -> list[KnownUid]:
        return self._entries.get(numeric_id, []) + self._entries.get(name.casefold(), [])

    def is_computed(self, uid: str) -> bool:
        """Return whether this uid has the format of a computed one."""
        return self._computed.fullmatch(uid) is not None

    def target(self, uid: str) -> UidTarget | None:
        """Return the object that a uid refers to; None if it is neither in a table nor computed."""
        number = int(uid[len(self._tag) :], 16) if self.is_computed(uid) else None
        return self._targets.get(uid) or (None if number is None else UidTarget(str(number)))


def source_uids(uids: Mapping[str, Uids]) -> dict[str, Uid]:
    """Return the recorded uids of sources, by name in small letters. Most sources are sellers, and have their uid."""
    return {**uids["Seller"].by_any_name(), **uids["Source"].by_any_name()}


def _oldest_first(entries: Iterable[KnownUid]) -> list[KnownUid]:
    """Sort entries by year. Entries without a year come first; within a year the order of the file is kept."""
    return sorted(entries, key=lambda entry: entry.year or 0)
