"""Tests of how the tests start commands: a fork that nobody can tell from a new interpreter, or such an interpreter."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import forked_commands

import proxy

CONFIG = """
listen: {port: 0}
upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}
store: "memory:"
applications: {shop: {apikeys: ["a-key"], client_id: an-id, client_secret: "s3cret"}}
"""
PLAIN = {"executable": None, "preexec": None, "close": True, "passed": (), "cwd": None, "env": None}
OTHERS = (None, 0, False, -1, -1, -1, -1, -1, -1, True, None, None, None, -1, False, -1)  # Popen's, in its order


def test_command_is_a_child_with_exit_code_and_output(tmp_path: Path) -> None:
    command = [*forked_commands.COMMANDS[0], "serve", "--config", "missing.yaml"]
    forked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    started = subprocess.run(
        [sys.executable, "-s", *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(forked_commands.ROOT)},
    )  # fmt: skip
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert (forked.returncode, "missing.yaml" in forked.stderr) == (2, True)


@pytest.mark.parametrize("name, code", [("SIGTERM", 0), ("SIGINT", 0), ("SIGKILL", -9)])
def test_service_gets_signals(tmp_path: Path, name: str, code: int) -> None:
    (tmp_path / "own.yaml").write_text(CONFIG)
    command = [*forked_commands.COMMANDS[0], "serve", "--config", "own.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"v3bridge")
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"\nPPid:\t{os.getpid()}\n" in status
        process.send_signal(getattr(signal, name))
        assert process.wait(30) == code


async def test_asyncio_starts_commands_in_the_same_way() -> None:
    process = await asyncio.create_subprocess_exec(*forked_commands.COMMANDS[0], "--version", stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    assert (process.returncode, output.decode().splitlines()[0]) == (0, f"v3bridge {proxy.__version__}")


@pytest.mark.parametrize(
    "command, changes, forks",
    [
        ([*forked_commands.COMMANDS[0], "serve"], {}, True),
        ([*forked_commands.COMMANDS[0], "serve"], {"env": {**os.environ, "V3_STORE": "x"}}, True),
        ([*forked_commands.COMMANDS[0], "serve"], {"env": {**os.environ, "PYTHONPATH": "/elsewhere"}}, False),
        ([*forked_commands.COMMANDS[0], "serve"], {"env": {**os.environ, "PYTHONWARNINGS": "error"}}, False),
        ([*forked_commands.COMMANDS[0], "serve"], {"preexec": print}, False),
        ([*forked_commands.COMMANDS[0], "serve"], {"cwd": "copy"}, False),
        ([sys.executable, "-X", "importtime", "-m", "proxy"], {}, False),
        ([sys.executable, "-m", "bench"], {}, False),
    ],
)
def test_only_commands_of_this_tree_and_python_are_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], changes: dict[str, Any], forks: bool
) -> None:
    (tmp_path / "copy" / "proxy").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert forked_commands.can_fork(command, *(PLAIN | changes).values(), *OTHERS) is forks
