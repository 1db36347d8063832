"""Manifest of vendored files (vendored.toml): package, path and integrity of each.

`assets.py` serves the files, `vendoring.py` downloads them.
"""

import base64
import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "vendor"
MANIFEST = Path(__file__).with_name("vendored.toml")
LICENCES = "LICENSES.txt"


@dataclass(frozen=True, slots=True)
class VendoredFile:
    """A file of `FOLDER`. `origin` is its path in the package, `integrity` as `digest` has it."""

    name: str
    origin: str
    integrity: str


@dataclass(frozen=True, slots=True)
class VendoredPackage:
    """An npm package. `sources` is the path of the source map that lists the packages bundled in its files; "": nothing
    is bundled."""

    name: str
    version: str
    integrity: str
    sources: str
    files: tuple[VendoredFile, ...]


def packages(record: Path = MANIFEST) -> tuple[VendoredPackage, ...]:
    """The packages of the manifest."""
    listed = tomllib.loads(record.read_text(encoding="utf-8"))["package"]
    return tuple(
        VendoredPackage(
            one["name"],
            one["version"],
            one["integrity"],
            one.get("sources", ""),
            tuple(VendoredFile(file["name"], file["from"], file["integrity"]) for file in one["file"]),
        )
        for one in listed
    )


def digest(content: bytes) -> str:
    """Integrity as npm and browsers write it (Subresource Integrity §3.5)."""
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
