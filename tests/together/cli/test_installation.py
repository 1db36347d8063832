"""Tests of the bare wheel in an empty environment: it serves, and other commands name the required extra.

Of the installed packages only those that the wheel requires without an extra are put into the environment.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest
from acceptance import bills, running
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import commands
from support.workbooks import workbook

from bench import canned

ROOT = running.ROOT
NOBODY = "upstream: {graphql_url: 'http://127.0.0.1:9', token_url: 'http://127.0.0.1:9'}"
APPLICATION = f"applications: {{erp: {{client_id: id, client_secret: secret, apikeys: [{bills.KEY}]}}}}"


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
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            source = Path(str(distribution.locate_file(top)))
            if source.exists() and not (packages / top).exists():
                (packages / top).symlink_to(source)
    return python


def test_bare_installation_serves_a_request(
    processes: running.Processes, bare_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PROGRAM", str(bare_python.with_name("v3bridge")))
    upstream = processes.upstream()
    parts = [json.loads(part) for part in canned.parts(1, range(3), frozenset())]
    upstream.answer = lambda _: {"data": {"supMultiMatch": [{"error": None, "hits": 3, "parts": parts}]}}
    service = processes.service(f'{upstream.upstream}\nstore: "memory:"\n{APPLICATION}')
    assert bills.found(service.get(bills.match("TD000001"))) == ["TD000001"] * 3


# Runs commands one after the other in one process, because most of a run are imports.
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


def test_bare_installation_names_the_missing_extra(bare_python: Path, tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n", encoding="utf-8")
    (tmp_path / "BOM.xlsx").write_bytes(workbook([["MPN"], ["SN74S74N"]]))
    (tmp_path / "config.yaml").touch(0o600)
    (tmp_path / "config.yaml").write_text(f"store: redis://127.0.0.1:1/0\n{NOBODY}\n{APPLICATION}")
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
    command, given = [str(bare_python), "-c", RUN_ALL], json.dumps([*others, *without])
    done = subprocess.run(command, cwd=tmp_path, input=given, capture_output=True, text=True, check=True)
    *more, shown, version, explained = (subprocess.CompletedProcess(*ended) for ended in json.loads(done.stdout))
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
