"""v3's uids of companies, categories and sources, which the catalog holds by numeric id or name only.

Recorded uids are in data/uids.jsonl, by numeric id if known, else by name. Of several uids of an object the newest is
sent, and all are accepted. Other uids are keyed digests.
"""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

RECORDED = Path(__file__).parent / "data" / "uids.jsonl"
Kind = Literal["Seller", "Brand", "Manufacturer", "Category", "Source"]
_KEY = b"octopart v3, 2012 to 2022"


class RecordedUid(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A recorded uid. `name` is the object's newest in v3, `also` are others; `year` that of the newest response."""

    kind: Kind
    uid: str
    name: str
    also: tuple[str, ...] = ()
    id: str | None = None
    year: int = 0


class LegacyUids:
    """Uids of all objects but parts, whose uids are in the catalog, and names of sources."""

    def __init__(self, path: Path = RECORDED) -> None:
        decode = msgspec.json.Decoder(RecordedUid).decode
        lines = sorted((decode(line) for line in path.read_bytes().splitlines()), key=lambda line: line.year)
        self._newest = {(line.kind, key): line for line in lines for key in _keys(line)}
        self._current = {
            line.uid: self._newest[line.kind, _keys(line)[0]].uid for line in lines if line.kind != "Source"
        }

    def of(self, kind: Kind, number: str, name: str) -> str:
        recorded = self._newest.get((kind, number)) or self._newest.get((kind, name.casefold()))
        return recorded.uid if recorded else _digest(kind, number)

    def of_source(self, name: str) -> str:
        """Uid of a source; if not recorded, that of the seller with that name."""
        recorded = self._source(name)
        return recorded.uid if recorded else _digest("Source", name)

    def source_name(self, name: str) -> str:
        """v3's name of a source; if not recorded, its name of the seller with that name."""
        recorded = self._source(name)
        return recorded.name if recorded else name

    def _source(self, name: str) -> RecordedUid | None:
        sellers = (line for (kind, _), line in self._newest.items() if kind == "Seller")
        seller = (line for line in sellers if name in (line.name, *line.also))
        return self._newest.get(("Source", name.casefold())) or next(seller, None)

    def current(self, uid: str) -> str:
        return self._current.get(uid, uid)


def _keys(line: RecordedUid) -> tuple[str, ...]:
    """Lookup keys of a recorded uid: the numeric id, or case-folded names."""
    return (line.id,) if line.id else tuple(name.casefold() for name in (line.name, *line.also))


def _digest(kind: Kind, key: str) -> str:
    return hashlib.blake2b(f"{kind} {key}".encode(), key=_KEY, digest_size=8).hexdigest()
