"""Downloads the vendored files, for maintainers: `python -m nexar_sandbox.ide.vendoring`.

Gets the packages of vendored.toml from npm, and writes files whose package and content have the recorded integrity.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from nexar_sandbox.ide import assets

_MODULE = re.compile(r".*node_modules/((?:@[^/]+/)?[^/]+)/")
SECONDS = 300


class VendoringError(Exception):
    """A package or file differs from the manifest."""


def fetch(packages: Iterable[assets.VendoredPackage], folder: Path, npm: str = "npm") -> None:
    """Write the files of `packages` to `folder`. Raises VendoringError; files verified before the error are written."""
    licences = (folder / assets.LICENCES).read_text(encoding="utf-8").split()
    for package in packages:
        with tempfile.TemporaryDirectory() as place:
            packed = _packed(package, Path(place), npm)
            with tarfile.open(packed) as archive:
                _check_licences(package, archive, licences)
                for file in package.files:
                    content = _member(archive, file.origin)
                    _hold(f"{package.name}: {file.origin}", content, file.integrity)
                    (folder / file.name).write_bytes(content)


def _packed(package: assets.VendoredPackage, place: Path, npm: str) -> Path:
    specifier = f"{package.name}@{package.version}"
    program = shutil.which(npm)
    if program is None:
        raise VendoringError(f"there is no program {npm}")
    command = [program, "pack", "--silent", "--pack-destination", str(place), specifier]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    packed = next(place.glob("*.tgz"), None)
    if done.returncode or packed is None:
        raise VendoringError(f"npm has no {specifier}: {done.stderr.strip()}")
    _hold(specifier, packed.read_bytes(), package.integrity)
    return packed


def _check_licences(package: assets.VendoredPackage, archive: tarfile.TarFile, licences: list[str]) -> None:
    """Check that every bundled package is named beside its licence."""
    within = {package.name}
    if package.sources:
        sources = json.loads(_member(archive, package.sources))["sources"]
        within |= {module[1] for source in sources if (module := _MODULE.match(source))}
    missing = sorted(within.difference(licences))
    if missing:
        raise VendoringError(f"{assets.LICENCES} lacks {', '.join(missing)}")


def _member(archive: tarfile.TarFile, path: str) -> bytes:
    try:
        file = archive.extractfile(f"package/{path}")
    except KeyError:
        file = None
    if file is None:
        raise VendoringError(f"{Path(str(archive.name)).name} has no {path}")
    return file.read()


def _hold(name_: str, content: bytes, integrity: str) -> None:
    digest = assets.digest(content)
    if digest != integrity:
        raise VendoringError(f"{name_} has the integrity {digest}, not {integrity}")


if __name__ == "__main__":
    try:
        fetch(assets.packages(), assets.VENDORED)
    except VendoringError as error:
        sys.exit(str(error))
