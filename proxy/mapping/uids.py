"""v3 uids and names of companies, categories and sources, both ways.

The service has no field for them (contract graphql.md §1.5). Those on record stand in mappings/uids.yaml, and a
site's own in the file of the setting `uids`. Every other object gets a uid made of a tag of six hex digits for its kind
and its numeric id in ten, which can be turned back; a source, of which only the name is known, a tag and a digest.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec

Kind = Literal["Seller", "Brand", "Manufacturer", "Category", "Source"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TAGS: dict[str, str] = {
    "Seller": "5e11e4",
    "Brand": "b4a2d0",
    "Manufacturer": "3a2fac",
    "Category": "ca7e60",
    "Source": "50c4ce",
}
RENAMED = frozenset({"Seller", "Source"})  # kinds that are sent under v3's name; the others keep the service's
REMEMBERED = 65_536  # companies and categories whose uid need not be looked up again

Uid = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}\\Z")]


class KnownUid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a table. `also` are other names of the same object, `source` says what it is from."""

    uid: str
    name: str
    id: str | None = None
    also: tuple[str, ...] = ()
    year: int | None = None
    source: str = "recorded"

    def mistake(self) -> tuple[str, str] | None:
        """The field that is not as it should be, and what to do about it."""
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
    """v3 uids of one kind of object, both ways. Of several uids of an object the newest is sent; all are accepted."""

    def __init__(self, kind: str, known: Iterable[KnownUid], own: Sequence[KnownUid] = ()) -> None:
        """By the lines of the shipped table and by those of a site's `own`, which come before them, whatever their
        year."""
        self._tag = TAGS[kind]
        self._renamed = kind in RENAMED
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._targets: dict[str, UidTarget] = {}
        self._accepted: dict[str, list[str]] = {}
        self._computed = re.compile(rf"{self._tag}[0-9a-f]{{10}}")
        for entry in _oldest_first(known):
            self._take(entry)
        for entry in _oldest_first(own):
            self._displace(entry)
            self._take(entry)
        self.uid = lru_cache(REMEMBERED)(self._uid)
        self.source = lru_cache(REMEMBERED)(self._source)

    def _take(self, entry: KnownUid) -> None:
        """Let a line stand before those that were taken earlier."""
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
        """Take the uid of a site's own line from whom the shipped table gives it to, so that it stands for one."""
        self._by_id = {id_: uid for id_, uid in self._by_id.items() if uid != entry.uid}
        self._by_name = {name: uid for name, uid in self._by_name.items() if uid != entry.uid}
        for uids in self._accepted.values():
            uids[:] = [uid for uid in uids if uid != entry.uid]

    def _uid(self, numeric_id: str, name: str) -> Uid:
        """16 hex digits. Raises ValueError where the service's id is not a number below 2^40."""
        return self._by_id.get(numeric_id) or self._by_name.get(name.casefold()) or self.computed(numeric_id)

    def computed(self, numeric_id: str) -> Uid:
        """The one that can be turned back, whether or not another is known."""
        number = int(numeric_id)
        if not 0 <= number < 1 << 40:
            raise ValueError("an id of the service does not fit into a v3 uid")
        return f"{self._tag}{number:010x}"

    def name(self, numeric_id: str, name: str) -> str:
        """What v3 called whom the service calls `name`."""
        return self._names.get(numeric_id) or self._names.get(name, name)

    def named(self, name: str) -> str | None:
        """The service's id of whom v3 or the service called exactly so; None where that is not known."""
        return self._ids.get(name)

    def _source(self, name: str, called: str | None = None) -> Uid:
        """16 hex digits for a source, of which the service knows only the name; v3 may have `called` it otherwise."""
        called = called or name
        known = self._by_name.get(called.casefold()) or self._by_name.get(name.casefold())
        return known or f"{self._tag}{blake2b(called.encode(), digest_size=5).hexdigest()}"

    def accepted(self, numeric_id: str, name: str) -> list[str]:
        """All uids that lead to an object; the one that is sent is the last."""
        known = self._accepted.get(numeric_id, []) + self._accepted.get(name.casefold(), [])
        return [self.computed(numeric_id), *known, self.uid(numeric_id, name)]

    def knows(self, uid: str) -> bool:
        """Whether a uid is on record."""
        return uid in self._targets

    def is_computed(self, uid: str) -> bool:
        """Whether a uid is one that was computed because no other was known."""
        return self._computed.fullmatch(uid) is not None

    def target(self, uid: str) -> UidTarget | None:
        """The object that a uid refers to; None where it is neither known nor computed here."""
        known = self._targets.get(uid)
        if known or not self.is_computed(uid):
            return known
        return UidTarget(str(int(uid[len(self._tag) :], 16)), None)


def _oldest_first(known: Iterable[KnownUid]) -> list[KnownUid]:
    """What has no year is older than all others; of one year the later line is the newer."""
    return sorted(known, key=lambda entry: entry.year or 0)
