"""Each contract of pyproject.toml is enforced: an import that breaks it is reported by lint-imports.

Runs on a skeleton of the package: the packages that the contracts name, each an empty module, and one offence.
The real tree is judged by `lint-imports` itself in `make check`.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.gateway import core

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
    ("v3.parameters", "import proxy.v3.endpoints", LAYERS),
    ("gateway", "import proxy.tools.compare", LAYERS),
    ("cli", "import proxy.tools.conform", LAYERS),  # but its commands
    ("web", "import proxy.tools.compare.settings", LAYERS),
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
    ("tools.compare.settings", "import proxy.tools.compare.run", COMPARISON),
    ("tools.compare.newpackage", "", COMPARISON),
    ("tools.conform", "import proxy.upstream", CONFORMANCE),
    ("store", "from redis import asyncio", REDIS),
    ("store.sqlite", "import proxy.store.redis", BACKENDS),
    ("store.redis", "import proxy.store.sqlite", BACKENDS),
    ("nexar_sandbox.catalog", "from graphql import build_schema", CATALOG),
    ("nexar_sandbox.legacy_v3", "import nexar_sandbox.graphql", LEGACY_SERVICE),
]
INNER = [
    "v3",
    "gateway.core",
    "gateway.pipeline",
    "tools.compare",
    "tools.conform",
    "nexar_sandbox",
    *(f"tools.compare.{name}" for name in ("command", "comparison", "http_side", "judging", "options")),
    *(f"tools.compare.{name}" for name in ("reports", "run", "settings", "sides", "uid_learning")),
    *(f"traffic.{name}" for name in ("bom_columns", "recordings", "v3_request")),
    "gateway.results",
    "nexar_sandbox.catalog",
    "nexar_sandbox.graphql",
    "nexar_sandbox.legacy_v3",
    "store.redis",
    "store.sqlite",
    "v4.documents",
    "web.v3_routes",
]


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


# The function that the command `lint-imports` calls, in one process for all skeletons: most of the time of a command is
# its start. Not in the process of the tests, which has imported the real package under the same name.
LINT_FOLDERS = """
import contextlib, io, json, os, sys
from importlinter.cli import lint_imports

for line in sys.stdin:
    os.chdir(json.loads(line))
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = lint_imports(no_cache=True)
    print(json.dumps([code, output.getvalue()]), flush=True)
"""
Lint = Callable[[Path], tuple[int, str]]


@pytest.fixture(scope="module")
def lint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lint]:
    """Check the contracts of a folder; returns exit code and output."""
    command = [sys.executable, "-P", "-c", LINT_FOLDERS]
    plain = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    folder, pipe = tmp_path_factory.mktemp("lint"), subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=plain, stdin=pipe, stdout=pipe, text=True) as process:

        def check(folder: Path) -> tuple[int, str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(str(folder)) + "\n")
            process.stdin.flush()
            code, output = json.loads(process.stdout.readline())
            return code, output

        yield check


@pytest.fixture
def skeleton(tmp_path: Path) -> Any:
    (tmp_path / "proxy").mkdir()
    (tmp_path / "proxy" / "__init__.py").touch()
    for module in [*_packages(), *INNER]:
        _write(tmp_path, module, "")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_packages_within_their_boundaries_pass(skeleton: Any, lint: Lint) -> None:
    _write(skeleton, "cli", "import nexar_sandbox\nimport proxy.web")
    code, output = lint(skeleton)
    assert code == 0, output


@pytest.mark.parametrize("package", ["nexar_sandbox.graphql", "proxy.store"])
def test_cycle_within_a_package_is_reported(skeleton: Any, lint: Lint, package: str) -> None:
    module = package.removeprefix("proxy.")
    _write(skeleton, f"{module}.first", f"import {package}.second")
    _write(skeleton, f"{module}.second", f"import {package}.first")
    code, output = lint(skeleton)
    assert code == 1
    assert f"{CYCLES} BROKEN" in output


def test_redis_store_may_import_redis_and_be_imported(skeleton: Any, lint: Lint) -> None:
    _write(skeleton, "stores.redis", "import redis.asyncio")
    _write(skeleton, "gateway", "import proxy.store.redis")
    code, output = lint(skeleton)
    assert code == 0, output


@pytest.mark.parametrize("module,line,contract", OFFENCES)
def test_an_import_across_a_boundary_breaks_the_contract(
    skeleton: Any, lint: Lint, module: Any, line: Any, contract: Any
) -> None:
    _write(skeleton, module, line)
    code, output = lint(skeleton)
    assert code == 1
    assert f"{contract} BROKEN" in output


def test_the_door_of_the_core_has_at_most_twelve_names() -> None:
    assert len(core.__all__) <= 12
    assert all(hasattr(core, name) for name in core.__all__)


def test_every_contract_has_a_violation_case() -> None:
    assert {contract["name"] for contract in _contracts()} == {CYCLES, *(contract for _, _, contract in OFFENCES)}
