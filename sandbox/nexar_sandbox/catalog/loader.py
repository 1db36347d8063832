"""Loads a catalog: reads the shipped parts, a user's own parts file and generated parts, and fills the database.

Used by the store when a catalog is opened. An invalid line raises an error with the file, the line and the reason;
after validation every reference of a part resolves.
"""

import hashlib
import itertools
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from nexar_sandbox.catalog import (
    database,
    families,
    matching,
    records,
    reference_data,
    source_files,
)

R = TypeVar("R")
Progress = Callable[[int, int], None]
SHIPPED = Path(__file__).parent / "data"
# With more, searches take too long.
MOST_PARTS = 50_000
# Parts that are added together.
_BATCH_SIZE = 2000
_UID = re.compile(r"[0-9a-f]{16}")
_ID = re.compile(r"[1-9][0-9]{0,8}")
# Ids for lines without one: above real ids, below those of generated parts.
_FIRST_OWN_ID = 900_000_001
# Ids of generated parts: above all others, below what a 32-bit integer holds.
_FIRST_GENERATED_ID = 1_000_000_001


def fill(
    connection: sqlite3.Connection,
    parts: int | None,
    extra: Path | None,
    seed: int,
    data: Path,
    *,
    progress: Progress | None = None,
) -> reference_data.ReferenceData:
    """Fill an empty database; return the reference data of its parts.

    `parts`: fill up with generated parts to this total; `extra`: the user's own parts file. `progress` is called with
    the number of parts added and the total. Raises source_files.CatalogError for a line that cannot be used and
    ValueError for more than MOST_PARTS.
    """
    reference = reference_data.read(data)
    validator = PartsValidator(reference)
    real = list(validator.read(data / "parts.jsonl"))
    if extra is not None:
        real += validator.read(extra)
    total = max(parts or 0, len(real))
    if total > MOST_PARTS:
        raise ValueError(f"parts: {total:,} are requested, a catalog has at most {MOST_PARTS:,}")
    generated = generated_parts(reference, validator.taken) if total > len(real) else iter(())
    builder, source = database.DatabaseBuilder(connection, reference, seed), itertools.chain(real, generated)
    for start in range(0, total, _BATCH_SIZE):
        builder.add(list(itertools.islice(source, min(_BATCH_SIZE, total - start))))
        if progress is not None:
            progress(min(start + _BATCH_SIZE, total), total)
    builder.finish()
    return reference


class PartsValidator:
    """Validates and completes the lines of parts files. `taken`: (manufacturer id, MPN) of all lines so far.

    A user's file may give manufacturers and categories by name and leave out ids.
    """

    def __init__(self, reference: reference_data.ReferenceData) -> None:
        self.taken: set[tuple[str, str]] = set()
        self._reference = reference
        self._ids: set[str] = set()
        self._uids: set[str] = set()
        self._sellers = {seller.id for seller in reference.sellers}
        self._next_id = _FIRST_OWN_ID

    def read(self, path: Path) -> Iterator[source_files.PartLine]:
        """The completed lines of a parts file. Raises source_files.CatalogError with file, line and fault."""
        for number, line in source_files.read(path, source_files.PartLine):
            try:
                yield self._complete(line)
            except ValueError as error:
                raise source_files.CatalogError(f"{path}:{number}: {error}") from error

    def _complete(self, line: source_files.PartLine) -> source_files.PartLine:
        reference = self._reference
        _check_has_text("mpn", line.mpn)
        maker = _resolved("manufacturer", line.manufacturer, reference.maker)
        category = _resolved("category", line.category, reference.category) if line.category else reference.root()
        complete = msgspec.structs.replace(
            line,
            manufacturer=maker.id,
            category=category.id,
            id=line.id or self._free_id(),
            v3uid=line.v3uid or v3uid(maker.id, line.mpn),
        )
        self._check_specs(complete)
        self._check_sellers(complete)
        self._check_unique(complete)
        return complete

    def _free_id(self) -> str:
        while str(self._next_id) in self._ids:
            self._next_id += 1
        return str(self._next_id)

    def _check_specs(self, line: source_files.PartLine) -> None:
        for name, value in line.specs.items():
            attribute = self._reference.attributes.get(name)
            if attribute is None:
                raise ValueError(f"specs: there is no attribute {name!r}")
            if not fits(attribute, value):
                raise ValueError(f"specs: {name} takes a {attribute.value_type}, not {value!r}")

    def _check_sellers(self, line: source_files.PartLine) -> None:
        for key, ids in (("sku", line.sku), ("codes", line.codes)):
            for id_ in ids:
                if id_ not in self._sellers:
                    raise ValueError(f"{key}: there is no seller with id {id_!r}")

    def _check_unique(self, line: source_files.PartLine) -> None:
        if not _ID.fullmatch(line.id):
            raise ValueError(f"id {line.id!r} is not a number of at most nine digits")
        if line.id in self._ids:
            raise ValueError(f"id {line.id} is already taken by another part")
        for uid in (line.v3uid, *line.redirected):
            if not _UID.fullmatch(uid):
                raise ValueError(f"v3uid {uid!r} is not 16 lower case hex digits")
            if uid in self._uids:
                raise ValueError(f"v3uid {uid} is already taken by another part")
            self._uids.add(uid)
        self._ids.add(line.id)
        self.taken.add((line.manufacturer, line.mpn))


def _resolved(key: str, text: str, find: Callable[[str], R]) -> R:
    _check_has_text(key, text)
    try:
        return find(text)
    except LookupError as error:
        raise ValueError(f"{key}: there is none with id {text}") from error


def _check_has_text(key: str, text: str) -> None:
    if not matching.normalize(text):
        raise ValueError(f"{key} {text!r} has no letter or digit")


def generated_parts(
    reference: reference_data.ReferenceData, existing: Collection[tuple[str, str]]
) -> Iterator[source_files.PartLine]:
    """Every part of every family, one of each family in turn, without those whose (maker id, mpn) is in `existing`.

    Makers and categories that are missing are created in `reference` at once; an attribute that it does not know is
    dropped.
    """
    generated = _round_robin([_family(family, reference) for family in families.FAMILIES])
    # Lines of files come first, so a number that is formed here may be taken.
    fresh = (draft for draft in generated if (draft[0], draft[2].mpn) not in existing)
    return (_generated_line(number, *draft) for number, draft in enumerate(fresh, start=_FIRST_GENERATED_ID))


def _generated_line(number: int, maker: str, category: str, draft: families.PartDraft) -> source_files.PartLine:
    return source_files.PartLine(
        id=str(number),
        mpn=draft.mpn,
        manufacturer=maker,
        category=category,
        description=draft.description,
        v3uid=v3uid(maker, draft.mpn),
        specs=draft.specs,
    )


def v3uid(maker_id: str, mpn: str) -> str:
    """A 16-digit hex uid for a part without a recorded one."""
    return hashlib.blake2b(f"{maker_id}|{mpn}".encode(), digest_size=8).hexdigest()


def _family(
    family: families.PartFamily, reference: reference_data.ReferenceData
) -> Iterator[tuple[str, str, families.PartDraft]]:
    """The parts of a family. Its maker and category exist in `reference` when this returns, before the first part."""
    maker, category = reference.maker(family.maker).id, reference.branch(*family.branch).id
    return ((maker, category, _fitting(draft, reference)) for draft in family.drafts())


def _fitting(draft: families.PartDraft, reference: reference_data.ReferenceData) -> families.PartDraft:
    specs = {name: value for name, value in draft.specs.items() if fits(reference.attributes.get(name), value)}
    return draft._replace(specs=specs)


def fits(attribute: records.CatalogAttribute | None, value: float | str) -> bool:
    """Return true if the property exists and `value` is of its type."""
    return attribute is not None and isinstance(value, str) == (attribute.value_type == "text")


def _round_robin(
    sources: list[Iterator[tuple[str, str, families.PartDraft]]],
) -> Iterator[tuple[str, str, families.PartDraft]]:
    while sources:
        # A copy: exhausted families leave the list.
        for source in tuple(sources):
            draft = next(source, None)
            if draft is None:
                sources.remove(source)
            else:
                yield draft
