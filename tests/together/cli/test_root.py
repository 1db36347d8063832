"""First use: version, help and their start-up time, shell completion, and early errors in one style."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import cases
from support.running_commands import Run
from typer import testing

import proxy
from proxy import kit
from proxy.cli import main

SLOW = {"aiohttp", "graphql", "nexar_sandbox", "proxy.web", "proxy.mapping"}


def test_version_is_that_of_the_package_and_of_its_files(run_command: Run) -> None:
    done = run_command("--version")
    program, *digests = done.stdout.splitlines()
    assert (done.returncode, program, done.stderr) == (0, f"v3bridge {proxy.__version__}", "")
    assert [re.fullmatch(r"(\w+) +[0-9a-f]{12}", line)[1] for line in digests] == ["schema", "mappings"]  # type: ignore[index]


@pytest.mark.parametrize("changed, name", [("schema.graphql", "schema"), ("sheet/part.yaml", "mappings")])
def test_version_changes_with_schema_and_mappings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, name: str
) -> None:
    shutil.copytree(kit.shipped("mappings"), tmp_path / "mappings")
    monkeypatch.setattr(kit, "shipped", lambda name: tmp_path / name)
    before, file = _versions(), tmp_path / "mappings" / changed
    file.write_text(file.read_text() + "# changed\n")
    after = _versions()
    assert [each for each in after if after[each] != before[each]] == [name]


def _versions() -> dict[str, str]:
    lines = testing.CliRunner().invoke(main.program(), ["--version"]).stdout.splitlines()
    return {name: version for name, version in map(str.split, lines)}


def test_help_names_every_command(run_command: Run) -> None:
    shown = run_command("--help").stdout
    assert (run_command("-h").stdout, "Usage: v3bridge COMMAND" in shown) == (shown, True)
    lines = shown.splitlines()
    assert {word for line in lines for word in line[14:24].split()} >= main.COMMANDS.keys()
    assert len(lines) <= 15
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("command", [*main.COMMANDS, "sheet fill", "sheet columns"])
def test_help_of_a_command_fits_on_a_screen_and_explains_each_option(run_command: Run, command: str) -> None:
    done = run_command(*command.split(), "--help")
    lines = done.stdout.splitlines()
    options = [line for line in (line.strip("│ ") for line in lines) if line.startswith("--")]
    assert (done.returncode, 5 < len(lines) <= 40, max(map(len, lines)) <= 80) == (0, True, True)
    assert options
    short = run_command(*command.split(), "-h")
    assert (short.returncode, short.stderr, short.stdout) == (0, "", done.stdout)
    assert f"Usage: v3bridge {command} " in done.stdout
    assert "<bool>" not in done.stdout
    assert [line for line in options if len(line.split("  ", 1)) < 2] == []


def test_no_arguments_show_help(run_command: Run) -> None:
    done = run_command()
    assert (done.stdout, done.returncode) == (run_command("--help").stdout, 2)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_slow_modules(run_command: Run, option: str) -> None:
    done = run_command(option, python=("-X", "importtime", "-m", "proxy"))
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded & SLOW == set()


ROOT = Path(__file__).parents[3]
ENTRY = "import sys; sys.argv[0] = 'v3bridge'; from proxy.cli.main import main; main()"
# The program looks for its shell among its parents; a script of one command would be replaced by it.
COMPLETE = """
eval "$(v3bridge --show-completion)"
COMP_WORDS=(v3bridge serve --w); COMP_CWORD=2; _v3bridge_completion v3bridge; echo "${COMPREPLY[@]}"
:"""


def test_bash_completes_options(needs_program: Callable[[str], str], tmp_path: Path) -> None:
    program = tmp_path / "bin" / "v3bridge"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -c "{ENTRY}" "$@"\n')
    program.chmod(0o755)
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    words = [needs_program("bash"), "--norc", "-c", COMPLETE]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.split() == ["--workers"]


@cases.parametrize("arguments, said")
def test_every_mistake_is_one_line_in_one_style(run_command: Run, arguments: list[str], said: str) -> None:
    done = run_command(*arguments)
    assert (done.returncode, done.stdout) == (3 if arguments[0] == "compare" else 2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("v3bridge: ")
    assert said in line
    assert not line.endswith(".")
