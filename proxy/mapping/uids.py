"""v3 uids and names of companies, categories and sources, both ways.

The service has no field for them (contract graphql.md §1.5). Those on record stand in mappings/uids.yaml, and a
site's own in the file of the setting `uids`. Every other object gets a uid made of a tag of six hex digits for its kind
and its numeric id in ten, which can be turned back; a source, of which only the name is known, a tag and a digest.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
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
    """Object that a uid refers to: by numeric id, or by name where the id is not known."""

    id: str | None
    name: str | None


class Uids:
    """v3 uids of one kind of object, both ways. Responses hold the newest uid of an object; requests may use any of
    them."""

    def __init__(self, kind: str, shipped: Iterable[KnownUid], own: Sequence[KnownUid] = ()) -> None:
        """Build from the entries of the shipped table and a site's `own`, which take precedence whatever their year."""
        self._tag = TAGS[kind]
        self._renamed = kind in RENAMED
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._targets: dict[str, UidTarget] = {}
        self._accepted: dict[str, list[str]] = {}
        self._computed = re.compile(rf"{self._tag}[0-9a-f]{{10}}")
        for entry in _oldest_first(shipped):
            self._add(entry)
        # A site knows the uids of its own data, so its table is added last.
        for entry in _oldest_first(own):
            self._displace(entry)
            self._add(entry)
        # Per object, not as a decorator, which would keep every Uids alive and share one cache between kinds.
        self.uid = lru_cache(REMEMBERED)(self._uid)

    def _add(self, entry: KnownUid) -> None:
        """Add an entry, which takes precedence over all earlier ones."""
        # An old entry may have a name only; a newer one with the same name has told its id.
        id_ = entry.id or self._ids.get(entry.name)
        names = (entry.name, *entry.also)
        self._targets[entry.uid] = UidTarget(id_, entry.name)
        if id_:
            self._by_id[id_] = entry.uid
            self._ids |= dict.fromkeys(names, id_)
        else:
            self._by_name |= dict.fromkeys(map(str.casefold, names), entry.uid)
        for key in (id_,) if id_ else map(str.casefold, names):
            self._accepted.setdefault(key, []).append(entry.uid)
        if self._renamed:
            self._names |= dict.fromkeys((id_,) if id_ else names, entry.name)

    def _displace(self, entry: KnownUid) -> None:
        """Remove the uid of a site's own entry from the object that the shipped table gives it to: a uid stands for
        one object."""
        self._by_id = {id_: uid for id_, uid in self._by_id.items() if uid != entry.uid}
        self._by_name = {name: uid for name, uid in self._by_name.items() if uid != entry.uid}
        for uids in self._accepted.values():
            uids[:] = [uid for uid in uids if uid != entry.uid]

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
        return self._names.get(numeric_id) or self._names.get(name, name)

    def named(self, name: str) -> str | None:
        """Return the upstream id of the object that v3 or upstream calls exactly this; None if it is unknown."""
        return self._ids.get(name)

    def digest(self, v3_name: str) -> Uid:
        """Return 16 hex digits for a source without a recorded uid: upstream has no id of sources, only names."""
        return f"{self._tag}{blake2b(v3_name.encode(), digest_size=5).hexdigest()}"

    def by_any_name(self) -> dict[str, str]:
        """Return the uids on record by name in small letters."""
        with_id = {name.casefold(): self._by_id[id_] for name, id_ in self._ids.items() if id_ in self._by_id}
        return {**with_id, **self._by_name}

    def accepted(self, numeric_id: str, name: str) -> list[str]:
        """Return all uids that lead to an object; the last one is used in responses."""
        recorded = self._accepted.get(numeric_id, []) + self._accepted.get(name.casefold(), [])
        return [self.computed(numeric_id), *recorded, self.uid(numeric_id, name)]

    def is_computed(self, uid: str) -> bool:
        """Return whether this uid has the format of a computed one."""
        return self._computed.fullmatch(uid) is not None

    def target(self, uid: str) -> UidTarget | None:
        """Return the object that a uid refers to; None if it is neither in a table nor computed."""
        number = int(uid[len(self._tag) :], 16) if self.is_computed(uid) else None
        return self._targets.get(uid) or (None if number is None else UidTarget(str(number), None))


def source_uids(uids: Mapping[str, Uids]) -> dict[str, Uid]:
    """Return the recorded uids of sources, by name in small letters. Most sources are sellers, and have their uid."""
    return {**uids["Seller"].by_any_name(), **uids["Source"].by_any_name()}


def _oldest_first(entries: Iterable[KnownUid]) -> list[KnownUid]:
    """Sort entries by year. Entries without a year come first; within a year the order of the file is kept."""
    return sorted(entries, key=lambda entry: entry.year or 0)
