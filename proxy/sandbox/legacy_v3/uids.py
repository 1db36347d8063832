"""v3's uids of companies, categories and sources, which the catalog holds by numeric id or name only.

Those that are on record stand in data/uids.jsonl, by the numeric id where that is known, else by name. Every other is
six hex digits that say what it is of and the numeric id in ten; of a source, of which only the name is known, a digest.
"""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

RECORDED = Path(__file__).parent / "data" / "uids.jsonl"
Kind = Literal["Seller", "Brand", "Manufacturer", "Category", "Source"]
_BEGINNINGS = {"Seller": "5e11e4", "Brand": "b4a2d0", "Manufacturer": "3a2fac", "Category": "ca7e60"}


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A uid on record."""

    kind: Kind
    uid: str
    name: str
    id: str | None = None


class Uids:
    """The uid of everything but parts, whose own the catalog has."""

    def __init__(self, path: Path = RECORDED) -> None:
        decode = msgspec.json.Decoder(Line).decode
        lines = [decode(line) for line in path.read_bytes().splitlines()]
        self._by_id = {(line.kind, line.id): line.uid for line in lines if line.id is not None}
        self._by_name = {(line.kind, line.name): line.uid for line in lines if line.id is None}

    def of(self, kind: Kind, number: str, name: str) -> str:
        """Of a company or category."""
        recorded = self._by_id.get((kind, number)) or self._by_name.get((kind, name))
        return recorded or f"{_BEGINNINGS[kind]}{int(number):010x}"

    def of_source(self, name: str) -> str:
        """Of who is credited for something."""
        digest = hashlib.blake2b(name.encode(), digest_size=8)
        return self._by_name.get(("Source", name)) or digest.hexdigest()
