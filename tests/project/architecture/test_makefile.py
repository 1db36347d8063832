"""The Makefile: running needs a tenth of what testing needs, and what a test run lacks is said."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BIN = Path(sys.executable).parent
MADE = (
    "-o",
    ".venv/.run",
    "-o",
    ".venv/.test",
    "-o",
    ".venv/.clients",
    f"BIN={BIN}",
)  # with the environment that runs this test


@pytest.fixture
def make(root: Path, needs_program: Callable[[str], str]) -> Any:
    """Runs make; what it prints."""

    def run(*words: Any, **environ: Any) -> Any:
        clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        command = [needs_program("make"), *words]
        done = subprocess.run(
            command, cwd=root, env=clean | environ, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    return run


def _installed(printed: Any) -> Any:
    lines = (line for line in printed.splitlines() if "pip install" in line and "--no-deps" not in line)
    return [line.split()[-3].strip("'") for line in lines]


def test_run_and_test_targets_install_the_extras_they_need(make: Any, root: Path) -> None:
    assert _installed(make("-n", "-B", "-W", "pyproject.toml", "run")) == [".[sandbox,compare,conform,sheet]"]
    for target in ("test", "check", "bench", "format"):
        assert _installed(make("-n", "-B", "-W", "pyproject.toml", target)) == [
            ".[sandbox,compare,conform,sheet]",
            ".[test]",
        ]


def test_test_run_prints_steps_missing_programs_and_skip_reasons(make: Any, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "make", "python3"):
        (programs / name).symlink_to(Path("/usr/bin") / name if name != "python3" else sys.executable)
    test = "tests/service/kit/test_windows.py"
    printed = make(*MADE, "test", "WORKERS=0", f"ARGS={test}", PATH=str(programs))
    missing, doing = printed.splitlines()[:2]
    assert missing.startswith("not installed: ")
    assert {"chromium", "chromium-driver", "redis-server"} <= set(re.findall(r"[\w-]+", missing))
    assert "make programs" in missing
    assert doing == f"running pytest {test}"
    assert "every test: about" in make("-n", *MADE, "test")
    assert " -rs " in make("-n", *MADE, "test")


def test_skipped_tests_are_shown_with_reasons(make: Any, root: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(needs_program):\n    needs_program('no-such-program')\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import needs_program  # noqa: F401\n")
    printed = make(*MADE, "test", "WORKERS=0", f"ARGS={tmp_path} -p no:cacheprovider -o pythonpath={root}/tests", CI="")
    assert "no-such-program is not installed" in printed


def _closure(names: Any) -> Any:
    """The distributions that these requirements bring, with what these need in turn."""
    found, waiting = set(), [Requirement(name) for name in names]
    while waiting:
        need = waiting.pop()
        key = canonicalize_name(need.name), frozenset(need.extras)
        if key in found or (need.marker and not need.marker.evaluate({"extra": ""})):
            continue
        found.add(key)
        for line in importlib.metadata.requires(need.name) or ():
            inner = Requirement(line)
            if inner.marker is None or any(inner.marker.evaluate({"extra": each}) for each in ("", *need.extras)):
                inner.marker = None
                waiting.append(inner)
    return {name for name, _ in found}


def test_imports_of_the_run_target_are_installed_by_it(root: Path, tmp_path: Path) -> None:
    """The proxy and its sandbox, started; nothing of another extra may be needed."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = _closure(project["dependencies"] + project["optional-dependencies"]["sandbox"])
    command = [sys.executable, "-X", "importtime", "-m", "proxy", "serve", "--port", "0"]
    with (
        (tmp_path / "errors").open("w") as errors,
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=errors, text=True) as serving,
    ):
        assert serving.stdout is not None
        assert any("curl" in line for line in serving.stdout)
        serving.terminate()
    lines = (tmp_path / "errors").read_text(encoding="utf-8").splitlines()
    tops = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if "|" in line}
    homes = importlib.metadata.packages_distributions()
    loaded = {canonicalize_name(home) for top in tops for home in homes.get(top, ())}
    assert {"aiohttp", "graphql-core"} <= loaded
    # setuptools and backports load at every start of Python; structlog takes colorama where it is installed
    assert loaded - allowed - {"v3bridge", "nexar-sandbox", "setuptools", "colorama", "backports-tarfile"} == set()
