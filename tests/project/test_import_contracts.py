"""Each contract of pyproject.toml is enforced: an import that breaks it is reported by lint-imports.

Runs on a skeleton of the package: the packages that the contracts name, each an empty module, and all offences.
The real tree is judged by `lint-imports` itself in `make check`.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy import gateway

ROOT = Path(__file__).parents[2]

LAYERS = "Packages import only from lower layers"
CYCLES = "No package has a cycle"
DOOR = "The core is reached by its door only"
ALONE = "The sandbox knows nothing of the proxy"
SANDBOX = "Only commands start the sandbox"
REFERENCE = "Serving v3 does not depend on its reference page"
PURE = "Pure packages do no I/O"
JUDGING = "Judging does no I/O"
INDEPENDENT = "Judging does not use the mappings under test"
COMPARISON = "Layers of the comparison"
REDIS = "Only the store in Redis knows redis"
BACKENDS = "Store backends don't know each other"
CONFORMANCE = "Conformance does not use what it checks"
CATALOG = "The sandbox's catalog knows neither HTTP nor GraphQL"
LEGACY_SERVICE = "The legacy v3 service is independent of GraphQL"

OFFENCES = [
    ("kit", "import proxy.errors", LAYERS),
    ("upstream", "import proxy.gateway", LAYERS),  # above it
    ("v3.encoding", "import proxy.v3.endpoints", LAYERS),
    ("gateway", "import proxy.tools.compare", LAYERS),
    ("cli", "import proxy.tools.conform", LAYERS),  # but its commands
    ("web", "import proxy.tools.compare.options", LAYERS),
    ("newpackage", "", LAYERS),
    ("doctor", "import proxy.store", DOOR),
    ("cli", "import proxy.gateway.pipeline", DOOR),
    ("graphql", "import proxy.gateway.pipeline", DOOR),
    ("nexar_sandbox.catalog", "import proxy.model", ALONE),
    ("server", "import nexar_sandbox", SANDBOX),
    ("web.v3_routes", "from proxy.v3 import reference", REFERENCE),
    ("mapping", "import asyncio", PURE),
    ("v3.endpoints", "import socket", PURE),
    ("tools.compare.judging.judge", "import sqlite3", JUDGING),
    ("traffic.v3_request", "import redis", JUDGING),
    ("tools.compare.judging.causes", "from proxy import mapping", INDEPENDENT),
    ("tools.compare.options", "import proxy.tools.compare.run", COMPARISON),
    ("tools.compare.newpackage", "", COMPARISON),
    ("tools.conform", "import proxy.upstream", CONFORMANCE),
    ("store", "from redis import asyncio", REDIS),
    ("store.sqlite", "import proxy.store.redis", BACKENDS),
    ("store.redis", "import proxy.store.sqlite", BACKENDS),
    ("nexar_sandbox.catalog", "from graphql import build_schema", CATALOG),
    ("nexar_sandbox.legacy_v3", "import nexar_sandbox.graphql", LEGACY_SERVICE),
    ("store.first", "import proxy.store.second", CYCLES),
    ("store.second", "import proxy.store.first", CYCLES),
    ("nexar_sandbox.graphql.first", "import nexar_sandbox.graphql.second", CYCLES),
    ("nexar_sandbox.graphql.second", "import nexar_sandbox.graphql.first", CYCLES),
]
INNER = [
    "v3",
    "gateway.pipeline",
    "tools.compare",
    "tools.conform",
    "nexar_sandbox",
    *(f"tools.compare.{name}" for name in ("command", "comparison", "judging", "options")),
    *(f"tools.compare.{name}" for name in ("reports", "run", "sides", "uid_learning", "words")),
    *(f"traffic.{name}" for name in ("bom_columns", "recordings", "v3_request")),
    "nexar_sandbox.catalog",
    "nexar_sandbox.graphql",
    "nexar_sandbox.legacy_v3",
    "store.redis",
    "store.sqlite",
    "web.v3_routes",
]

Lint = Callable[..., tuple[int, str]]


def _contracts() -> Any:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"]


def _packages() -> Any:
    layers = next(contract["layers"] for contract in _contracts() if contract["type"] == "layers")
    return [name.strip(" ()") for layer in layers for name in layer.split("|")]


def _write(folder: Any, module: Any, text: Any) -> None:
    names = module.split(".")
    package = folder.joinpath(*names) if names[0] == "nexar_sandbox" else folder.joinpath("proxy", *names)
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def lint(tmp_path_factory: pytest.TempPathFactory) -> Lint:
    """Check the contracts on a skeleton with some modules; returns exit code and output."""

    def check(*modules: tuple[str, str]) -> tuple[int, str]:
        folder = tmp_path_factory.mktemp("skeleton")
        (folder / "proxy").mkdir()
        (folder / "proxy" / "__init__.py").touch()
        for module in [*_packages(), *INNER]:
            _write(folder, module, "")
        for module, text in modules:
            _write(folder, module, text)
        shutil.copy(ROOT / "pyproject.toml", folder)
        program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
        command = [sys.executable, "-P", "-c", program, "--no-cache"]
        plain = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
        done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    return check


def test_packages_within_their_boundaries_pass(lint: Lint) -> None:
    code, output = lint(("cli", "import nexar_sandbox\nimport proxy.web"), ("gateway", "import proxy.store.redis"))
    assert code == 0, output


@pytest.fixture(scope="module")
def reports(lint: Lint) -> dict[str, str]:
    """What is reported of all offences together, by contract."""
    texts = defaultdict[str, str](str)
    for module, line, _ in OFFENCES:
        texts[module] += f"{line}\n"
    code, output = lint(*texts.items())
    assert code == 1, output
    broken = output[output.index("Broken contracts") :]
    _, *parts = re.split(r"^(\S.*)\n-{5,}\n", broken, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("module, line, contract", OFFENCES)
def test_import_across_a_boundary_is_reported(reports: dict[str, str], module: str, line: str, contract: str) -> None:
    place = module if module.startswith("nexar_sandbox") else f"proxy.{module}"
    if contract == CYCLES:
        assert f"No cycles are allowed in {place.rpartition('.')[0]}." in reports[contract]
    else:
        assert (f"{place} -> {line.split()[1]}" if line else place) in reports[contract]


def test_the_door_of_the_core_has_at_most_twelve_names() -> None:
    assert len(gateway.__all__) <= 12
    assert all(hasattr(gateway, name) for name in gateway.__all__)


def test_every_contract_has_a_violation_case() -> None:
    assert {contract["name"] for contract in _contracts()} == {contract for _, _, contract in OFFENCES}
