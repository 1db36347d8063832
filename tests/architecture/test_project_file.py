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
def pin_lines(root: Path) -> Any:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_constraints_are_exact_versions_and_nothing_else(pin_lines: Any) -> None:
    assert [line for line in pin_lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


@pytest.fixture(scope="module")
def dependencies(project: Any) -> list[Requirement]:
    """All of them, with those of the extras; an extra may name others of this project."""
    extras = project["optional-dependencies"].values()
    wanted = [Requirement(line) for line in [*project["dependencies"], *(line for group in extras for line in group)]]
    return [need for need in wanted if need.name != project["name"]]


def test_every_dependency_is_pinned_to_a_version_that_it_allows(
    dependencies: list[Requirement], pin_lines: list[str]
) -> None:
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in pin_lines)}
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


def test_the_licence_is_apache_2(root: Path, project: Any) -> None:
    assert project["license"] == "Apache-2.0"
    assert hashlib.sha256((root / "LICENSE").read_bytes()).hexdigest() == APACHE_2
