"""Tests of the bare wheel in an empty environment: it serves, and other commands name the required extra.

Of the installed packages only those that the wheel requires without an extra are put into the environment.
"""

import asyncio
import importlib.metadata
import json
import re
import subprocess
import sys
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import commands, scripted_upstream
from support.scripted_upstream import ScriptedResponse
from support.workbooks import workbook

from bench import canned

ROOT = Path(__file__).parents[3]
KEY = "A_KEY"
NOBODY = "http://127.0.0.1:9"
RunAll = Callable[..., list["subprocess.CompletedProcess[str]"]]


def required(packages: Path) -> set[str]:
    """Names of all distributions that the wheel in a folder of packages needs without an extra, directly or not."""
    wheel = next(iter(importlib.metadata.distributions(name="v3bridge", path=[str(packages)])))
    found: set[str] = set()
    left = _needs(wheel.requires)
    while left:
        name = canonicalize_name(left.pop())
        if name not in found:
            found.add(name)
            left += _needs(importlib.metadata.requires(name))
    return found


def _needs(lines: list[str] | None) -> list[str]:
    needs = [Requirement(line) for line in lines or []]
    return [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]


def _build(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the bare wheel."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    options = ["--python", str(python), "--disable-pip-version-check", "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", *options, str(wheel)], capture_output=True, check=True)
    packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
    for name in required(packages):
        _link(importlib.metadata.distribution(name), packages)
    return python


def _link(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """Make an installed distribution available in another folder of packages."""
    for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
        source = Path(str(distribution.locate_file(top)))
        if source.exists() and not (packages / top).exists():
            (packages / top).symlink_to(source)


RUN_ALL = """
import contextlib, io, json, sys
from proxy.cli import main
ended = []
for arguments in json.load(sys.stdin):
    sys.argv = ["v3bridge", *arguments]
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main.main()
        except SystemExit as end:
            ended.append([arguments, end.code or 0])
    ended[-1] += [output.getvalue(), errors.getvalue()]
json.dump(ended, sys.stdout)
"""


@pytest.fixture
def run_all(bare_python: Path, tmp_path: Path) -> RunAll:
    """Runs commands of the bare installation, one after the other in one process, because most of a run are imports."""

    def run(*commands: list[str]) -> list["subprocess.CompletedProcess[str]"]:
        done = subprocess.run(
            [bare_python, "-c", RUN_ALL],
            cwd=tmp_path,
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return [subprocess.CompletedProcess(*ended) for ended in json.loads(done.stdout)]

    return run


def configuration(folder: Path, graphql_url: str = NOBODY, token_url: str = NOBODY, **more: Any) -> Path:
    application = {"client_id": "id", "client_secret": "secret", "apikeys": [KEY]}
    settings = {
        "listen": {"port": 0},
        "store": "memory:",
        "upstream": {"graphql_url": graphql_url, "token_url": token_url},
        "applications": {"erp": application},
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(settings | more), encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.fixture
def serve(bare_python: Path, tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """Starts the bare service with a configuration; returns its base URL."""
    started: list[subprocess.Popen[str]] = []

    def serve(file: Path) -> str:
        command = [str(bare_python.with_name("v3bridge")), "serve", "--config", str(file)]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        started.append(process)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"http://[\d.:]+/v3", line):
                return found[0]
        raise AssertionError(f"the service ended: {''.join(lines)}")

    yield serve
    for process in started:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


async def test_bare_installation_serves_a_request(serve: Callable[[Path], str], tmp_path: Path) -> None:
    async with scripted_upstream.running() as upstream:
        parts = b",".join(canned.parts(1, range(3), frozenset()))
        match = b'{"data":{"supMultiMatch":[{"error":null,"hits":3,"parts":[%s]}]}}' % parts
        upstream.respond_with(ScriptedResponse(match))
        url = await asyncio.to_thread(serve, configuration(tmp_path, upstream.graphql_url, upstream.token_url))
        target = f"{url}/parts/match?apikey={KEY}&queries=%5B%7B%22mpn%22%3A%22TD000001%22%7D%5D"
        async with aiohttp.ClientSession() as session, session.get(target) as response:
            (result,) = (await response.json())["results"]
    assert [item["mpn"] for item in result["items"]] == ["TD000001"] * 3


def test_bare_installation_names_the_missing_extra(run_all: RunAll, bare_python: Path, tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n", encoding="utf-8")
    (tmp_path / "BOM.xlsx").write_bytes(workbook([["MPN"], ["SN74S74N"]]))
    configuration(tmp_path, store="redis://127.0.0.1:1/0")
    extras = {
        "serve --config config.yaml": "redis",
        "serve": "sandbox",
        "sandbox": "sandbox",
        "sheet fill BOM.xlsx": "sheet",
        "sheet fill BOM.csv --columns price": "sandbox",
    }
    without = (["--help"], ["--version"], ["explain", "BOM.csv"])
    served = [line.split() for line in extras if line.startswith("serve")]
    others = [line.split() for line in extras if not line.startswith("serve")]
    program = bare_python.with_name("v3bridge")
    refused = [
        subprocess.run([program, *each], cwd=tmp_path, capture_output=True, text=True, check=False) for each in served
    ]
    *more, shown, version, explained = run_all(*others, *without)
    refused += more
    for done in (shown, version, explained):
        assert (done.returncode, done.stderr) == (0, ""), done
    assert "/parts/match" in explained.stdout
    for done, extra in zip(refused, extras.values(), strict=True):
        assert done.returncode == 2, done
        assert f"in a copy of the project, run: pip install '.[{extra}]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_built_wheels_serve_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """As the README's first lines do, without the checkout: requirements are those that are installed here."""
    packages = tmp_path / "packages"
    for built in (wheel, _build(ROOT / "sandbox", tmp_path)):
        with zipfile.ZipFile(built) as archive:
            archive.extractall(packages)
    empty = tmp_path / "empty"
    empty.mkdir()
    environ = commands.environment(empty, PYTHONPATH=str(packages))
    command = [sys.executable, "-P", "-m", "proxy", "serve", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(
        command, cwd=empty, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "curl" in line)
        target = re.findall(r"'(http://.*)'", line)[0]
        with urllib.request.urlopen(quote(target, safe=":/?&=%")) as response:
            found = json.load(response)["results"][0]["items"]
        process.terminate()
    assert [item["mpn"] for item in found] == ["SN74S74N"] * 3
