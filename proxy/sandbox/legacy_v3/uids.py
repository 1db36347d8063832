"""v3's uids of companies, categories and sources, which the catalog holds by numeric id or name only.

Those that are on record stand in data/uids.jsonl: by the numeric id where that is known, else by name. Of several uids
of one object the newest is sent, and all lead to it. Every other uid is a keyed digest that nobody can turn back.
"""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

RECORDED = Path(__file__).parent / "data" / "uids.jsonl"
Kind = Literal["Seller", "Brand", "Manufacturer", "Category", "Source"]
_KEY = b"octopart v3, 2012 to 2022"


class RecordedUid(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A uid on record. `name` is the object's newest in v3, `also` are others; `year` that of the newest response."""

    kind: Kind
    uid: str
    name: str
    also: tuple[str, ...] = ()
    id: str | None = None
    year: int = 0


class LegacyUids:
    """The uid of everything but parts, whose own the catalog has, and the names of sources."""

    def __init__(self, path: Path = RECORDED) -> None:
        decode = msgspec.json.Decoder(RecordedUid).decode
        lines = sorted((decode(line) for line in path.read_bytes().splitlines()), key=lambda line: line.year)
        self._newest = {(line.kind, key): line for line in lines for key in _keys(line)}
        self._current = {
            line.uid: self._newest[line.kind, _keys(line)[0]].uid for line in lines if line.kind != "Source"
        }

    def of(self, kind: Kind, number: str, name: str) -> str:
        """Of a company or category."""
        recorded = self._newest.get((kind, number)) or self._newest.get((kind, name.casefold()))
        return recorded.uid if recorded else _digest(kind, number)

    def of_source(self, name: str) -> str:
        """Of who is credited for something."""
        recorded = self._newest.get(("Source", name.casefold()))
        return recorded.uid if recorded else _digest("Source", name)

    def source_name(self, name: str) -> str:
        """What v3 called a source: as it called the seller of that name where nothing else is on record."""
        recorded = self._newest.get(("Source", name.casefold()))
        if recorded is None:
            sellers = (line for (kind, _), line in self._newest.items() if kind == "Seller" and line.id)
            recorded = next((line for line in sellers if name in (line.name, *line.also)), None)
        return recorded.name if recorded else name

    def current(self, uid: str) -> str:
        """The uid that is sent for the object that a uid leads to."""
        return self._current.get(uid, uid)


def _keys(line: RecordedUid) -> tuple[str, ...]:
    """What a line is found by: a number, or names in any case of letters."""
    return (line.id,) if line.id else tuple(name.casefold() for name in (line.name, *line.also))


def _digest(kind: Kind, key: str) -> str:
    return hashlib.blake2b(f"{kind} {key}".encode(), key=_KEY, digest_size=8).hexdigest()
