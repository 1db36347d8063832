"""Catalog files: a catalog that is created once and opened quickly by every later start.

The file is a read-only SQLite database. It records its source, and a file of another source is rejected, because a
nearly right catalog would go unnoticed.
"""

import hashlib
import os
import secrets
import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nexar_sandbox.catalog import database, loader, records, reference_data, source_files

# Version of the tables and their contents.
_FORMAT = "2"
_PROPERTIES = ("format", "program", "seed", "parts", "extra")


# Companies, categories and attributes.
_Packed = tuple[list[records.Company], list[records.Category], list[records.CatalogAttribute]]


@dataclass(frozen=True, slots=True)
class CatalogSource:
    parts: int | None
    extra: Path | None
    seed: int
    data: Path

    def properties(self) -> dict[str, str]:
        """The source as texts, as stored in the file; "" for a missing value."""
        package = Path(__file__).parent
        program = [*self.data.glob("*.jsonl"), *package.glob("*.py"), *package.glob("data/*.toml")]
        return {
            "format": _FORMAT,
            "program": _digest(sorted(program)),
            "seed": str(self.seed),
            "parts": str(self.parts or ""),
            "extra": _digest([self.extra]) if self.extra else "",
        }


def create(path: Path, source: CatalogSource, progress: loader.Progress | None = None) -> None:
    """Create the file atomically. Raises source_files.CatalogError if it cannot be created."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        part.touch(mode=0o600, exist_ok=False)
        _fill(part, source, progress)
        part.chmod(0o644)  # until now it is its owner's alone
        part.replace(path)
    except OSError as error:
        raise source_files.CatalogError(f"{path}: cannot be made: {error.strerror}") from error
    except sqlite3.Error as error:
        raise source_files.CatalogError(f"{path}: cannot be made: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def read(path: Path, source: CatalogSource) -> tuple[sqlite3.Connection, reference_data.ReferenceData]:
    """Open the file. `source.parts` and `source.extra` may be None: then any are accepted.

    Raises source_files.CatalogError for a file that is not a catalog or has another source.
    """
    with ExitStack() as on_failure:
        try:
            connection = database.open_read_only(path)
            on_failure.callback(connection.close)
            properties = dict(connection.execute("SELECT name, value FROM properties").fetchall())
            _check(path, properties, source.properties())
            reference = reference_data.ReferenceData(*msgspec.json.decode(properties["reference"], type=_Packed))
        except (sqlite3.Error, KeyError) as error:
            raise source_files.CatalogError(f"{path}: is not a prepared catalog; name another file") from error
        on_failure.pop_all()
    return connection, reference


def _fill(part: Path, source: CatalogSource, progress: loader.Progress | None) -> None:
    connection = database.create(part)
    try:
        reference = loader.fill(connection, source.parts, source.extra, source.seed, source.data, progress=progress)
        properties = {**source.properties(), "reference": _packed(reference)}
        connection.executemany("INSERT INTO properties VALUES (?,?)", properties.items())
    finally:
        connection.close()
    with part.open("rb") as file:
        os.fsync(file.fileno())


def _check(path: Path, properties: dict[str, str], expected: dict[str, str]) -> None:
    differing = [
        name for name in _PROPERTIES if properties[name] != expected[name] and (expected[name] or name == "seed")
    ]
    if not differing:
        return
    reasons = {
        "format": "by another version of this program",
        "program": "by another version of this program",
        "seed": f"with seed {properties['seed']}, not {expected['seed']}",
        "parts": f"with {properties['parts'] or 'the shipped'} parts, not {expected['parts']}",
        "extra": "with another file of parts of your own",
    }
    raise source_files.CatalogError(
        f"{path}: was made {reasons[differing[0]]};"
        " delete it and it is made anew at the next start, or name another file"
    )


def _packed(reference: reference_data.ReferenceData) -> str:
    mappings = reference.companies, reference.categories, reference.attributes
    return msgspec.json.encode([list(mapping.values()) for mapping in mappings]).decode()


def _digest(files: list[Path]) -> str:
    """Digest of the names and contents of files. Raises source_files.CatalogError for one that cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise source_files.CatalogError(f"{file}: cannot be read: {error.strerror}") from error
        digest.update(f"{file.name}:{len(content)}:".encode() + content)
    return digest.hexdigest()
