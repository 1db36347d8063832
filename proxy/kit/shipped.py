"""Files that come with the package: beside it in a checkout, inside it in a wheel."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

SCHEMA = "schema.graphql"  # in the mappings folder


def path(name: str) -> Path:
    """Return the path of a shipped file or folder, such as `config.yaml`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_shipped" / name
    return inside if inside.exists() else package.parent / name


def mapping_files() -> list[Path]:
    """Return every file of the mappings folder, the schema included."""
    return [file for file in path("mappings").rglob("*") if file.is_file()]


def versions() -> tuple[str, str]:
    """Return short digests of the schema and of the mappings, which decide on v3 responses beside the program."""
    files = mapping_files()
    schema = [file for file in files if file.name == SCHEMA]
    mapped = [file for file in files if file.name != SCHEMA]
    return digest(schema)[:12], digest(mapped)[:12]


def digest(files: Iterable[Path]) -> str:
    """Return a digest of the names and contents of files, in hexadecimal. Folders and order do not count."""
    contents = sorted((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)
    # The form of sha256sum's output, so that a digest can be made without this program.
    return hashlib.sha256("".join(f"{content}  {name}\n" for name, content in contents).encode()).hexdigest()
