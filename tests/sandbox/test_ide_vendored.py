"""Vendored files: they equal the manifest, have their licenses, and can be fetched again."""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

import vendoring
from nexar_sandbox.ide import assets

ADDED = b"console.log('two')"


def test_the_vendored_files_match_the_manifest() -> None:
    recorded = {file.name: file.integrity for package in vendoring.packages() for file in package.files}
    found = {path.name: vendoring.digest(path.read_bytes()) for path in assets.VENDORED.iterdir()}
    del found[assets.LICENSES]
    assert found == recorded


def test_vendored_file_names_have_the_version() -> None:
    for package in vendoring.packages():
        assert {file.name.startswith(f"{package.name}-{package.version}.") for file in package.files} == {True}


def test_every_vendored_package_has_its_license() -> None:
    text = (assets.VENDORED / assets.LICENSES).read_text(encoding="utf-8")
    assert {package.name for package in vendoring.packages()} <= set(text.split())
    for words in ("Permission is hereby granted", "SIL OPEN FONT LICENSE", "Redistribution and use"):
        assert words in text


class Npm:
    """A fake npm executable, which packs the files of a test."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "npm"
        self.path.write_text('#!/bin/sh\ntest "$1 $5" = "pack one@2.0.0" || exit 1\ncp "$0.tgz" "$4/one-2.0.0.tgz"\n')
        self.path.chmod(0o755)

    def put(self, files: dict[str, bytes]) -> str:
        """These are in the package; its integrity."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self.path.with_name("npm.tgz").write_bytes(packed.getvalue())
        return vendoring.digest(packed.getvalue())


@pytest.fixture
def npm(tmp_path: Path) -> Npm:
    return Npm(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder_ = tmp_path / "vendor"
    folder_.mkdir()
    (folder_ / assets.LICENSES).write_text("MIT\n  one\n  @inner/two\n")
    return folder_


def _package(integrity: str, file_integrity: str = "", sources: str = "") -> vendoring.VendoredPackage:
    file = vendoring.VendoredFile("one-2.0.0.js", "dist/one.js", file_integrity or vendoring.digest(ADDED))
    return vendoring.VendoredPackage("one", "2.0.0", integrity, (file,), sources)


def test_a_vendored_file_is_fetched_from_its_package(npm: Npm, folder: Path) -> None:
    sources = json.dumps({"sources": ["../src/one.ts", "../node_modules/@inner/two/index.js"]}).encode()
    package = _package(npm.put({"dist/one.js": ADDED, "map": sources}), sources="map")
    vendoring.fetch([package], folder, str(npm.path))
    assert (folder / "one-2.0.0.js").read_bytes() == ADDED


@pytest.mark.parametrize(
    "files, changes, complaint",
    [
        ({"dist/one.js": ADDED}, {"integrity": "sha512-another"}, "one@2.0.0 has the integrity sha512-"),
        ({"dist/one.js": b"changed"}, {}, "one: dist/one.js has the integrity sha512-"),
        ({"else.js": ADDED}, {}, "has no dist/one.js"),
        ({"dist/one.js": ADDED}, {"name": "three"}, "npm has no three@2.0.0"),
        (
            {"dist/one.js": ADDED, "map": b'{"sources": ["../node_modules/three/a.js"]}'},
            {"sources": "map"},
            "LICENSES.txt lacks three",
        ),
    ],
)
def test_a_file_that_differs_from_the_manifest_is_rejected_by_name(
    npm: Npm, folder: Path, files: dict[str, bytes], changes: dict[str, Any], complaint: str
) -> None:
    package = msgspec.structs.replace(_package(npm.put(files)), **changes)
    with pytest.raises(vendoring.VendoringError, match=complaint):
        vendoring.fetch([package], folder, str(npm.path))
    assert os.listdir(folder) == [assets.LICENSES]


def test_a_missing_npm_is_named(folder: Path) -> None:
    with pytest.raises(vendoring.VendoringError, match="there is no program no-such-npm"):
        vendoring.fetch([_package("")], folder, "no-such-npm")
