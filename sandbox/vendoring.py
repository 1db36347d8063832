"""Downloads the third-party files of the IDE, for maintainers: `python sandbox/vendoring.py`.

Gets the packages of vendored.toml from npm, and writes files whose package and content have the recorded integrity.
"""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nexar_sandbox.ide import assets

MANIFEST = Path(__file__).with_name("vendored.toml")
SECONDS = 300
_MODULE = re.compile(r".*node_modules/((?:@[^/]+/)?[^/]+)/")


class VendoredFile(msgspec.Struct, frozen=True, rename={"origin": "from"}):
    """A file of the vendor folder. `origin` is its path in the package, `integrity` as `digest` has it."""

    name: str
    origin: str
    integrity: str


class VendoredPackage(msgspec.Struct, frozen=True, rename={"files": "file"}):
    """An npm package. `sources` is the path of the source map that lists the packages bundled in its files; "": nothing
    is bundled."""

    name: str
    version: str
    integrity: str
    files: tuple[VendoredFile, ...]
    sources: str = ""


class VendoringError(Exception):
    """A package or file differs from the manifest."""


def packages() -> tuple[VendoredPackage, ...]:
    """Read the manifest."""
    return msgspec.toml.decode(MANIFEST.read_bytes(), type=dict[str, tuple[VendoredPackage, ...]])["package"]


def digest(content: bytes) -> str:
    """Return the integrity as npm and browsers write it (Subresource Integrity §3.5)."""
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def fetch(wanted: Iterable[VendoredPackage], folder: Path, npm: str = "npm") -> None:
    """Write the files of `wanted` to `folder`. Raises VendoringError; files verified before the error are written."""
    licenses = (folder / assets.LICENSES).read_text(encoding="utf-8").split()
    for package in wanted:
        with tempfile.TemporaryDirectory() as place, tarfile.open(_pack(package, Path(place), npm)) as archive:
            _check_licenses(package, archive, licenses)
            for file in package.files:
                content = _member(archive, file.origin)
                _check_integrity(f"{package.name}: {file.origin}", content, file.integrity)
                (folder / file.name).write_bytes(content)


def _pack(package: VendoredPackage, place: Path, npm: str) -> Path:
    specifier = f"{package.name}@{package.version}"
    program = shutil.which(npm)
    if program is None:
        raise VendoringError(f"there is no program {npm}")
    command = [program, "pack", "--silent", "--pack-destination", str(place), specifier]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    packed = next(place.glob("*.tgz"), None)
    if done.returncode or packed is None:
        raise VendoringError(f"npm has no {specifier}: {done.stderr.strip()}")
    _check_integrity(specifier, packed.read_bytes(), package.integrity)
    return packed


def _check_licenses(package: VendoredPackage, archive: tarfile.TarFile, licenses: list[str]) -> None:
    """Check that every bundled package is named beside its license."""
    within = {package.name}
    if package.sources:
        sources = json.loads(_member(archive, package.sources))["sources"]
        within |= {module[1] for source in sources if (module := _MODULE.match(source))}
    missing = sorted(within.difference(licenses))
    if missing:
        raise VendoringError(f"{assets.LICENSES} lacks {', '.join(missing)}")


def _member(archive: tarfile.TarFile, path: str) -> bytes:
    try:
        file = archive.extractfile(f"package/{path}")
    except KeyError:
        file = None
    if file is None:
        raise VendoringError(f"{Path(str(archive.name)).name} has no {path}")
    return file.read()


def _check_integrity(name: str, content: bytes, expected: str) -> None:
    actual = digest(content)
    if actual != expected:
        raise VendoringError(f"{name} has the integrity {actual}, not {expected}")


if __name__ == "__main__":
    try:
        fetch(packages(), assets.VENDORED)
    except VendoringError as error:
        sys.exit(str(error))
