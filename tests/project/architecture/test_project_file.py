"""pyproject.toml, constraints.txt and LICENSE agree with each other."""

import ast
import hashlib
import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import nexar_sandbox
import proxy

# sha256 of the text at apache.org/licenses/LICENSE-2.0.txt
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


# Of the tests' own dependencies, those that are commands or plugins; all others are imported somewhere.
KICOST = {"beautifulsoup4", "colorama", "lxml", "tqdm", "validators", "xlsxwriter"}  # what it imports, in a process
NOT_IMPORTED = {
    "build",
    "twine",
    "pre-commit",
    "hatchling",
    "import-linter",
    "mypy",
    "ruff",
    "pytest-asyncio",
    "pytest-socket",
    "pytest-xdist",
}


@pytest.fixture(scope="module")
def project(root: Path) -> Any:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def sandbox(root: Path) -> Any:
    return tomllib.loads((root / "sandbox/pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def pin_lines(root: Path) -> Any:
    return _pinned(root / "constraints.txt")


PIN = re.compile(r"([A-Za-z0-9._-]+==[A-Za-z0-9.+!]+)(?: ; [^#]+)?((?: --hash=sha256:[0-9a-f]{64})+)")


def _pinned(file: Path) -> list[str]:
    """The exact versions of a file, each of which has hashes; nothing else is in it."""
    text = re.sub(r"^#.*\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r" *\\\n +", " ", text).splitlines()
    found = {line: PIN.fullmatch(line) for line in lines}
    assert [line for line, pin in found.items() if pin is None] == []
    return [pin[1] for pin in found.values() if pin]


def test_a_server_and_the_image_install_versions_of_the_constraints(root: Path, pin_lines: list[str]) -> None:
    installed = _pinned(root / "deploy/requirements.txt")
    assert {*installed} <= {canonicalize_name(name) + "==" + version for name, version in _split(pin_lines)}
    (build,) = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert build in installed


def _split(pins: list[str]) -> list[list[str]]:
    return [pin.split("==") for pin in pins]


@pytest.fixture(scope="module")
def dependencies(project: Any, sandbox: Any) -> list[Requirement]:
    """Those of both distributions, with those of the extras; an extra may name others of this project."""
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *sandbox["dependencies"], *(line for group in extras for line in group)]
    return [need for line in lines if (need := Requirement(line)).name not in (project["name"], sandbox["name"])]


def test_every_dependency_is_pinned_to_a_version_that_it_allows(
    dependencies: list[Requirement], pin_lines: list[str]
) -> None:
    pins = {canonicalize_name(name): version for name, version in _split(pin_lines)}
    unmet = [
        str(need) for need in dependencies if not need.specifier.contains(pins.get(canonicalize_name(need.name), "0"))
    ]
    assert unmet == []


def test_every_dependency_has_a_lower_bound(dependencies: list[Requirement]) -> None:
    assert [str(need) for need in dependencies if ">=" not in str(need.specifier)] == []


def test_all_extras_are_in_the_extra_all(project: Any) -> None:
    extras = project["optional-dependencies"]
    (line,) = extras["all"]
    assert Requirement(line).extras == extras.keys() - {"all", "test", "docs"}


def _imported(modules: Any) -> Any:
    """Top-level names of all imports of the project, those within functions too."""
    for node in (node for module in modules for node in module.nodes):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_dependency_of_the_tests_is_used(project: Any, modules: Any) -> None:
    names = set(_imported(modules))
    used = {
        canonicalize_name(dist)
        for module, dists in importlib.metadata.packages_distributions().items()
        if module in names
        for dist in dists
    }
    asked = {canonicalize_name(Requirement(line).name) for line in project["optional-dependencies"]["test"]}
    asked.discard("v3bridge")
    stubs = {name for name in asked if name.startswith("types-")}
    assert asked - used - stubs - NOT_IMPORTED - KICOST == set()


def test_both_distributions_have_one_version_and_need_the_same_pythons(project: Any, sandbox: Any) -> None:
    assert proxy.__version__ == nexar_sandbox.__version__
    assert project["requires-python"] == sandbox["requires-python"]


@pytest.mark.parametrize("folder", ["", "sandbox"])
def test_the_license_is_apache_2(root: Path, project: Any, sandbox: Any, folder: str) -> None:
    assert {project["license"], sandbox["license"]} == {"Apache-2.0"}
    assert hashlib.sha256((root / folder / "LICENSE").read_bytes()).hexdigest() == APACHE_2
