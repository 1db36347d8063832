"""Loads a catalog: reads the shipped parts and a user's own parts file.

An invalid line raises an error with the file, the line and the reason; after validation every reference of a part
resolves.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from nexar_sandbox.catalog import matching, records, reference_data

R = TypeVar("R")
SHIPPED = Path(__file__).parent / "data"
# With more, the start and searches take too long.
MOST_PARTS = 5_000
# Ids for lines without one: above real ids.
_FIRST_OWN_ID = 900_000_001


def load(extra: Path | None, data: Path) -> tuple[dict[int, records.PartLine], reference_data.ReferenceData]:
    """Return the lines of all parts by their ids, and their reference data. `extra`: the user's own parts file.

    Raises records.CatalogError for a line that cannot be used, and for more than MOST_PARTS.
    """
    reference = reference_data.read(data)
    validator = PartsValidator(reference)
    lines = list(validator.read(data / "parts.jsonl"))
    if extra is not None:
        lines += validator.read(extra)
        if len(lines) > MOST_PARTS:
            raise records.CatalogError(f"{extra}: {len(lines):,} parts in all; a catalog has at most {MOST_PARTS:,}")
    return {int(line.id): line for line in lines}, reference


class PartsValidator:
    """Validates and completes the lines of parts files.

    A user's file may give manufacturers and categories by name and leave out ids.
    """

    def __init__(self, reference: reference_data.ReferenceData) -> None:
        self._reference = reference
        self._ids: set[str] = set()
        self._uids: set[str] = set()
        self._sellers = {seller.id for seller in reference.sellers}
        self._next_id = _FIRST_OWN_ID

    def read(self, path: Path) -> Iterator[records.PartLine]:
        """The completed lines of a parts file. Raises records.CatalogError with file, line and fault."""
        for number, line in records.read_lines(path, records.PartLine):
            try:
                yield self._complete(line)
            except ValueError as error:
                raise records.CatalogError(f"{path}:{number}: {error}") from error

    def _complete(self, line: records.PartLine) -> records.PartLine:
        reference = self._reference
        _check_has_text("mpn", line.mpn)
        maker = _resolved("manufacturer", line.manufacturer, reference.maker)
        category = _resolved("category", line.category, reference.category) if line.category else reference.root()
        complete = msgspec.structs.replace(
            line,
            manufacturer=maker.id,
            category=category.id,
            id=line.id or self._free_id(),
            v3uid=line.v3uid or hashlib.blake2b(f"{maker.id}|{line.mpn}".encode(), digest_size=8).hexdigest(),
        )
        self._check_specs(complete)
        self._check_sellers(complete)
        self._check_unique(complete)
        return complete

    def _free_id(self) -> str:
        while str(self._next_id) in self._ids:
            self._next_id += 1
        return str(self._next_id)

    def _check_specs(self, line: records.PartLine) -> None:
        for name, value in line.specs.items():
            attribute = self._reference.attributes.get(name)
            if attribute is None:
                raise ValueError(f"specs: there is no attribute {name!r}")
            if isinstance(value, str) != (attribute.value_type == "text"):
                raise ValueError(f"specs: {name} takes a {attribute.value_type}, not {value!r}")

    def _check_sellers(self, line: records.PartLine) -> None:
        for key, ids in (("sku", line.sku), ("codes", line.codes)):
            for id_ in ids:
                if id_ not in self._sellers:
                    raise ValueError(f"{key}: there is no seller with id {id_!r}")

    def _check_unique(self, line: records.PartLine) -> None:
        if line.id in self._ids:
            raise ValueError(f"id {line.id} is already taken by another part")
        for uid in (line.v3uid, *line.redirected):
            if uid in self._uids:
                raise ValueError(f"v3uid {uid} is already taken by another part")
            self._uids.add(uid)
        self._ids.add(line.id)


def _resolved(key: str, text: str, find: Callable[[str], R]) -> R:
    _check_has_text(key, text)
    try:
        return find(text)
    except LookupError as error:
        raise ValueError(f"{key}: there is none with id {text}") from error


def _check_has_text(key: str, text: str) -> None:
    if not matching.normalize(text):
        raise ValueError(f"{key} {text!r} has no letter or digit")
