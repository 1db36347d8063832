"""What a user gets with the wheel: the code, its data, the mappings and the reference files."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    done = subprocess.run(build, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(target.glob("v3bridge-*.whl"))) as archive:
        yield archive


@pytest.mark.parametrize("name", ["config.yaml", "compare.yaml"])
def test_the_wheel_ships_the_reference_files(root: Path, wheel: Any, name: str) -> None:
    assert wheel.read(f"proxy/_shipped/{name}") == (root / name).read_bytes()


def test_the_wheel_ships_every_mapping(root: Path, wheel: Any) -> None:
    mappings = {path.relative_to(root).as_posix(): path for path in (root / "mappings").rglob("*") if path.is_file()}
    assert mappings
    for name, path in mappings.items():
        assert wheel.read(f"proxy/_shipped/{name}") == path.read_bytes()


def test_the_wheel_ships_every_file_of_the_package(root: Path, wheel: Any, kept_files: tuple[Path, ...]) -> None:
    package = {name for path in kept_files if (name := path.relative_to(root).as_posix()).startswith("proxy/")}
    assert package <= set(wheel.namelist())


def test_the_wheel_ships_the_man_page(root: Path, wheel: Any) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".data/data/share/man/man1/v3bridge.1")]
    assert wheel.read(name) == (root / "docs/v3bridge.1").read_bytes()


def test_the_wheel_ships_the_license_and_no_tests(wheel: Any) -> None:
    names = wheel.namelist()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert [name for name in names if name.startswith(("tests/", "bench/", "docs/"))] == []
