"""Vendored files: they equal the manifest, and have their licenses."""

import base64
import hashlib
import tomllib
from pathlib import Path

from nexar_sandbox.ide import endpoints

MANIFEST = Path(__file__).parents[2] / "sandbox/vendored.toml"


def test_the_vendored_files_match_the_manifest() -> None:
    packages = tomllib.loads(MANIFEST.read_text("utf-8"))["package"]
    recorded = {file["name"]: file["sha512"] for package in packages for file in package["file"]}
    found = {
        path.name: base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        for path in endpoints.VENDORED.iterdir()
        if path.name != "LICENSES.txt"
    }
    assert found == recorded
    licenses = (endpoints.VENDORED / "LICENSES.txt").read_text(encoding="utf-8")
    for package in packages:
        assert package["name"] in licenses.split()
        prefix = f"{package['name']}-{package['version']}."
        assert all(file["name"].startswith(prefix) for file in package["file"])
    for words in ("Permission is hereby granted", "SIL OPEN FONT LICENSE", "Redistribution and use"):
        assert words in licenses
