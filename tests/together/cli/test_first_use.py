"""Tests of first use: -h everywhere, shell completion, and early errors in one style."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import cases
from support.running_commands import Run

ROOT = Path(__file__).parents[3]
COMMANDS = ("serve", "usage", "sheet")


@pytest.fixture(scope="module")
def shell(needs_program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a script of a shell, given as words, with a home of its own, in which `v3bridge` is this tree's."""
    home = tmp_path_factory.mktemp("home")
    program = home / "bin" / "v3bridge"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -c "{ENTRY}" "$@"\n')
    program.chmod(0o755)

    def run(script: str, name: str, *options: str) -> Any:
        environ = {**os.environ, "HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}"}
        # The program looks for its shell among its parents; a script of one command would be replaced by it.
        words = [needs_program(name), *options, "-c", f"{script}\n:"]
        return subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)

    return run


ENTRY = "import sys; sys.argv[0] = 'v3bridge'; from proxy.cli.main import main; main()"
COMPLETE = """
COMP_WORDS=({words}); COMP_CWORD={place}; _v3bridge_completion v3bridge; echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_short_option_h_shows_help(run_command: Run, command: Any) -> None:
    short, whole = (run_command(*command.split(), option) for option in ("-h", "--help"))
    assert (short.returncode, short.stderr) == (0, "")
    assert (f"Usage: v3bridge {command} " if command else "Usage: v3bridge COMMAND") in short.stdout
    assert short.stdout == whole.stdout
    assert "<bool>" not in short.stdout


def test_bash_completes_options(shell: Any) -> None:
    words = COMPLETE.format(words="v3bridge serve --w", place=2)
    done = shell('eval "$(v3bridge --show-completion)"' + words, "bash", "--norc")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.split() == ["--workers"]


@cases.parametrize("arguments, said")
def test_every_mistake_is_one_line_in_one_style(run_command: Run, arguments: Any, said: str) -> None:
    done = run_command(*arguments)
    assert (done.returncode, done.stdout) == (3 if arguments[0] == "compare" else 2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("v3bridge: ")
    assert said in line
    assert not line.endswith(".")


def test_port_in_use_is_detected_before_the_sandbox_is_created(
    run_command: Run,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_command("serve", "--port", port, python=("-X", "importtime", "-m", "proxy"))
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert (done.returncode, "proxy.sockets" in loaded) == (2, True)
    assert "nexar_sandbox.app" not in loaded
