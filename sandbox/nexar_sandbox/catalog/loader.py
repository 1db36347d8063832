"""Loads a catalog: reads the shipped parts, a user's own parts file and generated parts, and fills the database.

Used by the store when a catalog is opened. An invalid line raises an error with the file, the line and the reason;
after validation every reference of a part resolves. Indexing takes nine tenths of the time and may run in several
processes.
"""

import hashlib
import itertools
import multiprocessing
import re
import signal
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from nexar_sandbox.catalog import (
    database,
    families,
    indexing,
    large_families,
    matching,
    records,
    reference_data,
    source_files,
)

R = TypeVar("R")
Batch = list[source_files.PartLine]
Progress = Callable[[int, int], None]
SHIPPED = Path(__file__).parent / "data"
# Parts that are indexed together.
_BATCH_SIZE = 2000
# Batches per process that are being indexed or queued: more would only take memory.
_BATCHES_AHEAD = 2
_UID = re.compile(r"[0-9a-f]{16}")
_ID = re.compile(r"[1-9][0-9]{0,8}")
# Ids for lines without one: above real ids, below those of generated parts.
_FIRST_OWN_ID = 900_000_001
# Ids of generated parts: above all others, below what a 32-bit integer holds.
_FIRST_GENERATED_ID = 1_000_000_001


def load(
    parts: int | None, extra: Path | None, seed: int, data: Path = SHIPPED
) -> tuple[sqlite3.Connection, reference_data.ReferenceData]:
    """The filled database and the reference data of its parts.

    `parts`: fill up with generated parts to this total; `extra`: the user's own parts file.
    Raises source_files.CatalogError for a line that cannot be used and ValueError for more parts than can be generated.
    """
    connection = database.create()
    return connection, fill(connection, parts, extra, seed, data)


def fill(
    connection: sqlite3.Connection,
    parts: int | None,
    extra: Path | None,
    seed: int,
    data: Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> reference_data.ReferenceData:
    """Fill an empty database as `load` does. With more than one of `processes`, parts are indexed in that many.
    `progress` is called with the number of parts added and the total."""
    reference = reference_data.read(data)
    validator = PartsValidator(reference)
    real = list(validator.read(data / "parts.jsonl"))
    if extra is not None:
        real += validator.read(extra)
    generated = _generated(reference, validator, (parts or 0) - len(real))
    builder, added, total = database.DatabaseBuilder(connection, reference), 0, max(parts or 0, len(real))
    for batch, indexed in _indexed(_batches(real, generated), reference, seed, processes):
        builder.add(batch, indexed)
        added += len(batch)
        if progress is not None:
            progress(added, total)
    builder.finish()
    return reference


def _batches(real: Batch, generated: Iterator[source_files.PartLine]) -> Iterator[Batch]:
    source = itertools.chain(real, generated)
    while batch := list(itertools.islice(source, _BATCH_SIZE)):
        yield batch


def _indexed(
    batches: Iterator[Batch], reference: reference_data.ReferenceData, seed: int, processes: int
) -> Iterator[tuple[Batch, indexing.IndexedParts]]:
    """Each batch with its index entries, in order. `reference` must hold everything that the parts refer to."""
    if processes == 1:
        for batch in batches:
            yield batch, indexing.index_parts(batch, reference, seed)
        return
    # Spawned, so that they share nothing with the caller. A terminal sends SIGINT to every process; only the caller
    # may react to it, which ends the others.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        pending: deque[tuple[Batch, Future[indexing.IndexedParts]]] = deque()
        try:
            for batch in batches:
                pending.append((batch, pool.submit(indexing.index_parts, batch, reference, seed)))
                if len(pending) > processes * _BATCHES_AHEAD:
                    yield pending[0][0], pending.popleft()[1].result()
            while pending:
                yield pending[0][0], pending.popleft()[1].result()
        finally:
            pool.shutdown(cancel_futures=True)


class PartsValidator:
    """Validates and completes the lines of parts files. `taken`: (manufacturer id, MPN) of all lines so far.

    A user's file may give manufacturers and categories by name and leave out ids.
    """

    def __init__(self, reference: reference_data.ReferenceData) -> None:
        self.taken: set[tuple[str, str]] = set()
        self._reference = reference
        self._ids: set[str] = set()
        self._uids: set[str] = set()
        self._sellers = {seller.company.id for seller in reference.sellers}
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


def _generated(
    reference: reference_data.ReferenceData, validator: PartsValidator, count: int
) -> Iterator[source_files.PartLine]:
    """`count` generated parts. Not a generator itself: their manufacturers and categories must be in `reference` when
    this returns, before indexing starts."""
    source = generated_parts(reference, validator.taken) if count > 0 else iter(())
    return _exactly(source, validator, count)


def _exactly(
    source: Iterator[source_files.PartLine], validator: PartsValidator, count: int
) -> Iterator[source_files.PartLine]:
    yielded = 0
    for line in source:
        yield line
        yielded += 1
        if yielded == count:
            return
    if count > 0:
        have = len(validator.taken)
        raise ValueError(f"parts: {count + have} were requested, at most {yielded + have} can be generated")


def generated_parts(
    reference: reference_data.ReferenceData, existing: Collection[tuple[str, str]]
) -> Iterator[source_files.PartLine]:
    """Every part of every family, one of each family in turn, without those whose (maker id, mpn) is in `existing`.

    Makers and categories that are missing are created in `reference` at once; an attribute that it does not know is
    dropped.
    """
    all_families = (*families.FAMILIES, *large_families.FAMILIES)
    generated = _round_robin([_family(family, reference) for family in all_families])
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
