"""What earlier runs wrote: when each value was fetched, and the file as it was left. In the state folder.

A record belongs to the path of a filled file. It holds part numbers and times, but no values and no credentials. A
record that cannot be read is as good as none: values are of unknown age then. Times older than a day are dropped.
"""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from proxy import errors
from proxy.config import store_place
from proxy.tools.sheet.package import saving
from proxy.tools.sheet.parts import STALE_SECONDS, PartQuery, PartResult


class _Record(msgspec.Struct):
    path: str
    digest: str = ""  # of the file as it was written
    fetched: list[tuple[PartQuery, float]] = []


class FillRecords:
    """Record of one filled file; `folder` is that of all records."""

    def __init__(self, file: Path, folder: Path | None = None) -> None:
        self._file = file
        self._folder = folder or store_place.state_folder() / "sheet" / "records"
        record = _Record("")
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            record = msgspec.json.decode(self._place(file).read_bytes(), type=_Record)
        self._digest = record.digest
        self._fetched = dict(record.fetched)

    def fetched(self, query: PartQuery) -> float | None:
        """Return when the values of a query were fetched (Unix time); None if it is unknown."""
        return self._fetched.get(query)

    def note(self, result: PartResult) -> None:
        """Note the age of a result."""
        if result.error is None:
            self._fetched[result.query] = result.fetched

    def check_unchanged(self) -> None:
        """Raise SheetError if the file exists, and is not as a run has left it: somebody's work would be lost."""
        if self._file.exists() and self._digest != saving.digest(self._file):
            raise errors.SheetError(
                f"{self._file}: exists, and was changed since it was filled or was not filled here; "
                "rename it, or name another file with --output"
            )

    def save(self, target: Path, offers: Path | None = None, *, now: float) -> None:
        """Save the record as that of `target`, which was written with a file of `offers` beside it. That file has a
        record of its own, because the copy and the file itself, filled in place, have the same file of offers."""
        self._save(target, [(query, at) for query, at in self._fetched.items() if now - at < STALE_SECONDS])
        if offers is not None:
            self._save(offers, [])

    def _save(self, file: Path, fetched: list[tuple[PartQuery, float]]) -> None:
        record = _Record(str(file.resolve()), saving.digest(file) or "", fetched)
        place = self._place(file)
        # Values are right without a record, too; only their age is unknown to later runs.
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.write_bytes(msgspec.json.encode(record))

    def _place(self, file: Path) -> Path:
        return self._folder / f"{hashlib.blake2b(bytes(file.resolve()), digest_size=12).hexdigest()}.json"
