"""A catalog in a file: made once, opened in a moment by every later start.

Used by the store. The file is a SQLite database that is only read. It says what it was made of, and one that was made
of anything else is refused: a catalog that is nearly the right one would be found out by nobody.
"""

import hashlib
import os
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from proxy.sandbox.catalog import database, lines, listing, loader, records, vocabulary

# Of the tables and of what is in them.
_FORMAT = "1"
_FACTS = ("format", "makers", "seed", "parts", "own")


class _Words(msgspec.Struct, frozen=True):
    companies: list[records.Company]
    sellers: list[listing.Seller]
    categories: list[records.Category]
    attributes: list[records.Attribute]


@dataclass(frozen=True, slots=True)
class Source:
    """What a catalog is made of: see store.open_catalog."""

    parts: int | None
    extra: Path | None
    seed: int
    data: Path

    def facts(self) -> dict[str, str]:
        """The same as texts; "" for what was not said."""
        return {
            "format": _FORMAT,
            "makers": _digest(sorted([*self.data.glob("*.jsonl"), *Path(__file__).parent.glob("*.py")])),
            "seed": str(self.seed),
            "parts": str(self.parts or ""),
            "own": _digest([self.extra]) if self.extra else "",
        }


def make(path: Path, source: Source, processes: int = 1, progress: loader.Progress | None = None) -> None:
    """Make the file, whole or not at all. Raises lines.CatalogError where it cannot be made."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.absolute().parent)
        os.close(handle)
    except OSError as error:
        raise lines.CatalogError(f"{path}: cannot be made: {error.strerror}") from error
    part = Path(name)
    try:
        _fill(part, source, processes, progress)
        part.chmod(0o644)  # a temporary file is its owner's alone
        part.replace(path)
    except sqlite3.Error as error:
        raise lines.CatalogError(f"{path}: cannot be made: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def read(path: Path, wanted: Source) -> tuple[sqlite3.Connection, vocabulary.Vocabulary]:
    """Open the file. What `wanted` leaves open, parts or a file of one's own, is as it is.

    Raises lines.CatalogError for a file that is no catalog or was made of something else.
    """
    opened: sqlite3.Connection | None = None
    try:
        opened = database.opened(path)
        facts = dict(opened.execute("SELECT name, value FROM facts").fetchall())
        _check(path, facts, wanted.facts())
        return opened, _vocabulary(facts["words"])
    except (sqlite3.Error, KeyError) as error:
        _close(opened)
        raise lines.CatalogError(f"{path}: is no prepared catalog; name another file") from error
    except lines.CatalogError:
        _close(opened)
        raise


def _fill(part: Path, source: Source, processes: int, progress: loader.Progress | None) -> None:
    opened = database.empty(part)
    try:
        words = loader.fill(
            opened, source.parts, source.extra, source.seed, source.data, processes=processes, progress=progress
        )
        facts = {**source.facts(), "words": _packed(words)}
        opened.executemany("INSERT INTO facts VALUES (?,?)", facts.items())
    finally:
        opened.close()
    with part.open("rb") as file:
        os.fsync(file.fileno())


def _check(path: Path, facts: dict[str, str], wanted: dict[str, str]) -> None:
    differing = [name for name in _FACTS if facts[name] != wanted[name] and (wanted[name] or name == "seed")]
    if not differing:
        return
    told = {
        "format": "by another version of this program",
        "makers": "by another version of this program",
        "seed": f"with seed {facts['seed']}, not {wanted['seed']}",
        "parts": f"with {facts['parts'] or 'the shipped'} parts, not {wanted['parts']}",
        "own": "with another file of parts of your own",
    }
    raise lines.CatalogError(
        f"{path}: was made {told[differing[0]]}; delete it and it is made anew at the next start, or name another file"
    )


def _packed(words: vocabulary.Vocabulary) -> str:
    held = _Words(
        list(words.companies.values()),
        list(words.sellers),
        list(words.categories.values()),
        list(words.attributes.values()),
    )
    return msgspec.json.encode(held).decode()


def _vocabulary(text: str) -> vocabulary.Vocabulary:
    held = msgspec.json.decode(text, type=_Words)
    return vocabulary.Vocabulary(held.companies, held.sellers, held.categories, held.attributes)


def _digest(files: list[Path]) -> str:
    """Of the names and what is in the files. Raises lines.CatalogError for one that cannot be read."""
    found = hashlib.blake2b(digest_size=16)
    for file in files:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise lines.CatalogError(f"{file}: cannot be read: {error.strerror}") from error
        found.update(f"{file.name}:{len(content)}:".encode() + content)
    return found.hexdigest()


def _close(opened: sqlite3.Connection | None) -> None:
    if opened is not None:
        opened.close()
