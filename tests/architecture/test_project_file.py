"""pyproject.toml, constraints.txt and LICENSE agree with each other."""

import hashlib
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# sha256 of the text at apache.org/licenses/LICENSE-2.0.txt
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def pin_lines(root):
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_constraints_are_exact_versions_and_nothing_else(pin_lines):
    assert [line for line in pin_lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_every_dependency_is_pinned_to_a_version_that_it_allows(project, pin_lines):
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in pin_lines)}
    extras = project["optional-dependencies"].values()
    wanted = [Requirement(line) for line in [*project["dependencies"], *(line for group in extras for line in group)]]
    unmet = [str(need) for need in wanted if not need.specifier.contains(pins.get(canonicalize_name(need.name), "0"))]
    assert unmet == []


def test_every_dependency_has_a_lower_bound(project):
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for group in extras for line in group)]
    assert [line for line in lines if ">=" not in line] == []


def test_the_licence_is_apache_2(root, project):
    assert project["license"] == "Apache-2.0"
    assert hashlib.sha256((root / "LICENSE").read_bytes()).hexdigest() == APACHE_2
