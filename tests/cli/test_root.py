"""Tests of `v3bridge` itself: version, help, and their start-up time."""

import subprocess
from collections.abc import Callable

import pytest

import proxy

SLOW = {"aiohttp", "graphql", "uvloop", "cryptography", "proxy.sandbox", "proxy.web", "proxy.mapping"}


def test_version_is_that_of_the_package(run_command: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    done = run_command("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"v3bridge {proxy.__version__}\n", "")


def test_help_names_every_command(run_command: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    done = run_command("--help")
    assert done.returncode == 0
    assert all(f" {command} " in done.stdout for command in ("serve", "sandbox", "mappings"))


@pytest.mark.parametrize("command", ["serve", "sandbox", "mappings"])
def test_every_option_has_help(run_command: Callable[..., "subprocess.CompletedProcess[str]"], command: str) -> None:
    done = run_command(command, "--help")
    lines = [line.strip("│ ") for line in done.stdout.splitlines()]
    options = [line for line in lines if line.startswith("--")]
    assert done.returncode == 0
    assert len(options) >= 3
    assert [line for line in options if len(line.split("  ", 1)) < 2] == []


def test_no_arguments_show_help(run_command: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    assert "serve" in run_command().stdout


def test_unknown_command_is_named(run_command: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    done = run_command("swerve")
    assert done.returncode == 2
    assert "swerve" in done.stderr


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_slow_modules(
    run_command: Callable[..., "subprocess.CompletedProcess[str]"], option: str
) -> None:
    done = run_command(option, python=("-X", "importtime", "-m", "proxy"))
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded & SLOW == set()
