"""Tests of `v3bridge` itself: version, help, and their start-up time."""

import re
import shutil
from pathlib import Path

import pytest
from support.running_commands import Run
from typer import testing

import proxy
from proxy.cli import main
from proxy.kit import shipped

SLOW = {"aiohttp", "graphql", "nexar_sandbox", "proxy.web", "proxy.mapping"}


def test_version_is_that_of_the_package_and_of_its_files(
    run_command: Run,
) -> None:
    done = run_command("--version")
    program, *digests = done.stdout.splitlines()
    assert (done.returncode, program, done.stderr) == (0, f"v3bridge {proxy.__version__}", "")
    assert [re.fullmatch(r"(\w+) +[0-9a-f]{12}", line)[1] for line in digests] == ["schema", "mappings"]  # type: ignore[index]


@pytest.mark.parametrize("changed, name", [("schema.graphql", "schema"), ("sheet/part.yaml", "mappings")])
def test_version_changes_with_schema_and_mappings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, name: str
) -> None:
    shutil.copytree(shipped.path("mappings"), tmp_path / "mappings")
    monkeypatch.setattr(shipped, "path", lambda name: tmp_path / name)
    before, file = _versions(), tmp_path / "mappings" / changed
    file.write_text(file.read_text() + "# changed\n")
    after = _versions()
    assert [each for each in after if after[each] != before[each]] == [name]


def _versions() -> dict[str, str]:
    lines = testing.CliRunner().invoke(main.program(), ["--version"]).stdout.splitlines()
    return {name: version for name, version in map(str.split, lines)}


def test_help_names_every_command(run_command: Run) -> None:
    lines = run_command("--help").stdout.splitlines()
    assert {word for line in lines for word in line[14:24].split()} >= main.COMMANDS.keys()
    assert len(lines) <= 15
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("command", [*main.COMMANDS, "sheet fill", "sheet columns"])
def test_help_of_a_command_fits_on_a_screen_and_explains_each_option(run_command: Run, command: str) -> None:
    done = run_command(*command.split(), "--help")
    lines = done.stdout.splitlines()
    options = [line for line in (line.strip("│ ") for line in lines) if line.startswith("--")]
    assert (done.returncode, len(lines) <= 40) == (0, True)
    assert options
    assert [line for line in options if len(line.split("  ", 1)) < 2] == []


@pytest.mark.parametrize("command", [*main.COMMANDS, "sheet fill", "sheet columns"])
def test_help_of_a_command_is_one_screen(run_command: Run, command: str) -> None:
    lines = run_command(*command.split(), "--help").stdout.splitlines()
    assert 5 < len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_no_arguments_show_help(run_command: Run) -> None:
    done = run_command()
    assert (done.stdout, done.returncode) == (run_command("--help").stdout, 2)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_slow_modules(run_command: Run, option: str) -> None:
    done = run_command(option, python=("-X", "importtime", "-m", "proxy"))
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded & SLOW == set()
