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
from support.running_commands import Run
from support.scripted_upstream import ScriptedResponse
from support.workbooks import samples

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


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the bare wheel."""
    folder = tmp_path_factory.mktemp("bare")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    wheel = next(folder.glob("*.whl"))
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


@pytest.fixture
def run(bare_python: Path, tmp_path: Path) -> Run:
    """Runs a command of the bare installation, outside the checkout."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [str(bare_python.with_name("v3bridge")), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    return run


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


def configuration(folder: Path, upstream: scripted_upstream.ScriptedUpstream, **more: Any) -> Path:
    """A configuration file for an upstream."""
    application = {"client_id": "id", "client_secret": "secret", "apikeys": [KEY]}
    settings = {
        "listen": {"port": 0},
        "store": "memory:",
        "upstream": {"graphql_url": upstream.graphql_url, "token_url": upstream.token_url},
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
        upstream.respond_with(ScriptedResponse(canned.body()))
        url = await asyncio.to_thread(serve, configuration(tmp_path, upstream))
        target = f"{url}/parts/match?apikey={KEY}&queries=%5B%7B%22mpn%22%3A%22SN74S74N%22%7D%5D"
        async with aiohttp.ClientSession() as session, session.get(target) as response:
            (result,) = (await response.json())["results"]
    assert [item["mpn"] for item in result["items"]] == ["SN74S74N"] * 3


def test_bare_installation_names_the_missing_extra(run_all: RunAll, tmp_path: Path) -> None:
    (tmp_path / "list.har").write_text('{"log": {"entries": []}}', encoding="utf-8")
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n", encoding="utf-8")
    samples.bom([["MPN"], ["SN74S74N"]]).write(tmp_path / "BOM.xlsx")
    extras = {
        "serve": "sandbox",
        "sandbox": "sandbox",
        f"compare --requests list.har --baseline {NOBODY} --candidate {NOBODY}": "compare",
        "compare --record recording.zst --baseline sandbox --requests list.har": "compare",
        "sheet fill BOM.xlsx": "sheet",
        "sheet fill BOM.csv --columns price": "sandbox",
    }
    for done, extra in zip(run_all(*map(str.split, extras)), extras.values(), strict=True):
        assert done.returncode == 2, done
        assert f"in a copy of the project, run: pip install '.[{extra}]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_bare_installation_says_how_to_get_sandbox_or_configuration(run: Run, tmp_path: Path) -> None:
    sandbox, account = run("serve").stderr.splitlines()
    assert sandbox.endswith("run: pip install '.[sandbox]' ./sandbox")
    assert account.endswith("v3bridge init")
    (tmp_path / "secret").write_text("secret")
    addresses = ("--graphql-url", f"{NOBODY}/graphql", "--token-url", f"{NOBODY}/token")
    done = run("init", "--yes", "--client-id", "id", "--client-secret", "file:secret", *addresses)
    assert (done.returncode, (tmp_path / "our.yaml").exists()) == (1, True), done.stderr
    assert f"127.0.0.1:{NOBODY.rpartition(':')[2]}" in done.stdout


def test_service_alone_takes_little_space(bare_python: Path) -> None:
    packages = next((bare_python.parents[1] / "lib").glob("python*/site-packages"))
    installed = [packages / "proxy", *(path for path in packages.iterdir() if path.is_symlink())]
    files = [file for path in installed for file in (path.resolve().rglob("*") if path.is_dir() else [path])]
    size = sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
    assert size < 75e6


def test_built_wheels_serve_in_an_empty_folder(tmp_path: Path) -> None:
    """As the README's first lines do, without the checkout: requirements are those that are installed here."""
    wheels, packages = tmp_path / "dist", tmp_path / "packages"
    for folder in (ROOT, ROOT / "sandbox"):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
        subprocess.run(build, cwd=folder, capture_output=True, check=True)
    install = [sys.executable, "-m", "pip", "install", "--no-index", "--quiet", "--target", str(packages), "--no-deps"]
    subprocess.run([*install, *map(str, wheels.glob("*.whl"))], capture_output=True, check=True)
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


async def test_bare_installation_names_the_extra_of_a_setting(run: Run, tmp_path: Path) -> None:
    async with scripted_upstream.running() as upstream:
        redis = configuration(tmp_path, upstream, store="redis://127.0.0.1:1/0")
        assert "'.[redis]'" in run("serve", "--config", str(redis)).stderr


def test_bare_installation_explains_everything_but_workbooks(run_all: RunAll, tmp_path: Path) -> None:
    url = "https://octopart.com/api/v3/parts/match?queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"
    (tmp_path / "access.log").write_text(f'1.2.3.4 - - [x] "GET {url} HTTP/1.1" 200 1\n', encoding="utf-8")
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n", encoding="utf-8")
    samples.bom([["MPN"], ["SN74S74N"]]).write(tmp_path / "BOM.xlsx")
    given = (url, "access.log", "BOM.csv", "BOM.xlsx")
    *explained, refused = run_all(*(["explain", each] for each in given))
    for done in explained:
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "supSearchMpn" in done.stdout or "supMultiMatch" in done.stdout
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'.[xlsx]'" in refused.stderr


def test_bare_installation_runs_every_command_that_needs_no_extra(run_all: RunAll) -> None:
    for done in run_all(["--help"], ["explain", "--source", "Part"], ["compare", "--help"], ["--version"]):
        assert (done.returncode, done.stderr) == (0, ""), done
