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

LAYERS = "Packages import only from lower layers"
CYCLES = "No package has a cycle"
SANDBOX = "Only cli starts the sandbox"
DESCRIPTION = "Serving v3 does not depend on its description"
PURE = "Pure packages do no I/O"
JUDGING = "Judging does no I/O"
INDEPENDENT = "Judging does not use the mappings under test"
COMPARISON = "Layers of the comparison"
REDIS = "Only stores.redis knows redis"
BACKENDS = "Store backends don't know each other"
CONFORMANCE = "Conformance does not use what it checks"
CATALOG = "The sandbox's catalog knows neither HTTP nor GraphQL"
OLD_SERVICE = "The legacy v3 service is independent of GraphQL"

OFFENCES = [
    ("kit", "import proxy.errors", LAYERS),
    ("errors", "import proxy.sandbox", LAYERS),
    ("planning", "import proxy.upstream", LAYERS),
    ("gateway", "import proxy.web", LAYERS),
    ("gateway", "import proxy.parsing", LAYERS),
    ("explain", "import proxy.doctor", LAYERS),
    ("conformance", "import proxy.upstream", CONFORMANCE),
    ("stores", "import proxy.upstream", LAYERS),
    ("upstream", "import proxy.stores", LAYERS),
    ("planning", "import proxy.stores", LAYERS),
    ("web", "import proxy.workers", LAYERS),
    ("sandbox", "import proxy.mapping", LAYERS),
    ("sandbox.catalog", "import proxy.model", LAYERS),
    ("newpackage", "", LAYERS),
    ("web", "import proxy.sandbox", SANDBOX),
    ("workers", "import proxy.sandbox", SANDBOX),
    ("web.v3", "from proxy.web.v3 import description", DESCRIPTION),
    ("mapping", "import asyncio", PURE),
    ("planning", "import aiohttp", PURE),
    ("model", "import socket", PURE),
    ("errors", "import sqlite3", PURE),
    ("endpoints", "import asyncio", PURE),
    ("endpoints", "import proxy.model", LAYERS),
    ("parameters", "import asyncio", PURE),
    ("parameters", "import proxy.endpoints", LAYERS),
    ("gateway", "import proxy.compare", LAYERS),
    ("compare", "import proxy.web", LAYERS),
    ("compare.judging", "import aiohttp", JUDGING),
    ("compare.judging.diff", "import asyncio", JUDGING),
    ("compare.judging.rules", "import socket", JUDGING),
    ("compare.judging.tally", "import sqlite3", JUDGING),
    ("compare.requests", "import redis", JUDGING),
    ("compare.responses", "import aiohttp", JUDGING),
    ("compare.results", "import asyncio", JUDGING),
    ("compare.judging.causes", "from proxy import mapping", INDEPENDENT),
    ("compare.judging.rules", "import proxy.mapping", INDEPENDENT),
    ("compare.judging.v3_fields", "import proxy.mapping", INDEPENDENT),
    ("compare.judging", "import proxy.compare.running", COMPARISON),
    ("compare.recording", "import proxy.compare.running", COMPARISON),
    ("compare.recording", "import proxy.compare.sources", COMPARISON),
    ("compare.running", "import proxy.compare.shadow", COMPARISON),
    ("compare.newpackage", "", COMPARISON),
    ("gateway", "import redis", REDIS),
    ("stores", "from redis import asyncio", REDIS),
    ("stores.sqlite", "import proxy.stores.memory", BACKENDS),
    ("stores.redis", "import proxy.stores.sqlite", BACKENDS),
    ("sandbox.catalog", "from graphql import build_schema", CATALOG),
    ("sandbox.catalog", "import aiohttp", CATALOG),
    ("sandbox.legacy_v3", "import proxy.sandbox.graphql", OLD_SERVICE),
    ("sandbox.legacy_v3", "from graphql import build_schema", OLD_SERVICE),
]
INNER = [
    *(
        f"compare.{name}"
        for name in ("loader", "recording", "redaction", "reports", "requests", "responses", "results")
    ),
    *(f"compare.{name}" for name in ("judging", "running", "shadow", "sources")),
    "sandbox.catalog",
    "sandbox.graphql",
    "sandbox.legacy_v3",
    "stores.memory",
    "stores.redis",
    "stores.sqlite",
    "web.app",
    "web.v3",
    "web.v3.description",
]


def _contracts(root: Any) -> Any:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"]


def _packages(root: Any) -> Any:
    layers = next(contract["layers"] for contract in _contracts(root) if contract["type"] == "layers")
    return [name.strip(" ()") for layer in layers for name in layer.split("|")]


def _write(folder: Any, module: Any, text: Any) -> None:
    package = folder.joinpath("proxy", *module.split("."))
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
def skeleton(root: Path, tmp_path: Path) -> Any:
    (tmp_path / "proxy").mkdir()
    (tmp_path / "proxy" / "__init__.py").touch()
    for module in [*_packages(root), *INNER]:
        _write(tmp_path, module, "")
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def test_packages_within_their_boundaries_pass(skeleton: Any, lint: Lint) -> None:
    _write(skeleton, "cli", "import proxy.sandbox\nimport proxy.web")
    code, output = lint(skeleton)
    assert code == 0, output


@pytest.mark.parametrize("package", ["sandbox", "stores"])
def test_cycle_within_a_package_is_reported(skeleton: Any, lint: Lint, package: str) -> None:
    _write(skeleton, f"{package}.first", f"import proxy.{package}.second")
    _write(skeleton, f"{package}.second", f"import proxy.{package}.first")
    code, output = lint(skeleton)
    assert code == 1
    assert f"{CYCLES} BROKEN" in output


def test_redis_store_may_import_redis_and_be_imported(skeleton: Any, lint: Lint) -> None:
    _write(skeleton, "stores.redis", "import redis.asyncio")
    _write(skeleton, "gateway", "import proxy.stores.redis")
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


def test_every_contract_has_a_violation_case(root: Path) -> None:
    assert {contract["name"] for contract in _contracts(root)} == {CYCLES, *(contract for _, _, contract in OFFENCES)}


def test_architecture_describes_the_layers(root: Path) -> None:
    page = " ".join((root / "ARCHITECTURE.md").read_text().split())
    described = page.partition("imports only from below itself: ")[2].partition(". ")[0].split(" → ")
    contract = next(each for each in _contracts(root) if each["name"] == LAYERS)
    layers = [layer for layer in contract["layers"] if not layer.startswith("(")]
    assert [each.split(", ") for each in described] == [layer.split(" | ") for layer in layers]
