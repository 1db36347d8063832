"""Starts `python -m proxy` in tests by forking a process that has imported it (fork_server.py).

The tests start hundreds of commands, and most of the CPU time of each was that of its imports. Whoever starts a command
notices nothing: `subprocess` and asyncio give the same process object, with the process id of a real child. Commands
that need a new interpreter get one: options of Python, other arguments of Popen, another environment of Python.
"""

import contextlib
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import fork_server

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("fork_server.py")
COMMANDS = [
    *([sys.executable, "-m", "proxy"], [sys.executable, "-m", "nexar_sandbox"]),
    [sys.executable, "-P", "-m", "proxy.tools.sheet.workbook_process"],
]
PROGRAM = str(Path(sys.executable).with_name("v3bridge"))  # which tests/acceptance starts as users do, and others fork
OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_")  # what an interpreter reads at its start, or its loader
OF_USERS = {"LANG": "C.UTF-8"}  # of these, in the environment of tests/acceptance/running.py
ROOTS = {None, "", str(ROOT)}  # of PYTHONPATH, with which the same modules are imported


class _ForkServer:
    """The server, started with the first command, with what an interpreter reads of an environment."""

    def __init__(self, of_python: dict[str, str]) -> None:
        self._of_python = of_python
        self._socket: socket.socket | None = None
        self._process: Any = None

    def start(self, command: list[str], files: list[int], **request: Any) -> int:
        """Start the program; the process id of the new child of this process."""
        if self._socket is None:
            self._socket = self._open()
        words = command[command.index("-m") + 1 :] if "-m" in command[:3] else command
        request |= {"program": words[0], "arguments": words[1:]}
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)
        return int(self._socket.recv(100))

    def close(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.shutdown(socket.SHUT_RDWR)  # for copies of it, too, which forked processes may have
            self._socket.close()
            self._process.wait()

    def _open(self) -> socket.socket:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # One thread: a copy has only the thread that made it, and could wait for the others' locks.
        others = {name: value for name, value in os.environ.items() if not name.startswith(OF_PYTHON)}
        environment = {**others, **self._of_python, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        with its:
            self._process = subprocess.Popen([sys.executable, str(SERVER)], stdin=its.fileno(), env=environment)
        return mine


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Start the program's commands by the server while the block runs, where the system can (Linux)."""
    if not sys.platform.startswith("linux") or platform.machine() not in fork_server.CLONE:
        yield
        return
    servers = [_ForkServer(each) for each in (_of_python(os.environ), OF_USERS)]
    original: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]

    def execute_child(process: Any, *arguments: Any) -> None:
        """Popen's own, with the same positional arguments."""
        if not can_fork(*arguments):
            original(process, *arguments)
            return
        command, cwd, env, ends = arguments[0], arguments[5], arguments[6], arguments[10:16]
        files = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        environment = dict(os.environ if env is None else env)
        server = servers[_of_python(environment) != _of_python(os.environ)]
        named = {"environment": environment, "session": arguments[-2], "cwd": os.path.abspath(os.fspath(cwd or "."))}
        process.pid = server.start([*command], files, **named)
        process._child_created = True
        process._close_pipe_fds(*ends)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", execute_child)
        yield
    for server in servers:
        server.close()


def can_fork(
    arguments: Any, executable: Any, preexec: Any, close: bool, passed: Any, cwd: Any, env: Any, *others: Any
) -> bool:
    """Return whether a copy of the server is the same as a new interpreter."""
    # Of others: restore_signals, gid, gids, uid, umask; start_new_session, process_group.
    plain = (executable, preexec, close, tuple(passed), *others[9:-2], others[-1]) == (
        None, None, True, (), True, None, None, None, -1, -1,
    )  # fmt: skip
    return plain and isinstance(arguments, list | tuple) and _is_program([*arguments], cwd) and _is_same_python(env)


def _is_program(command: list[Any], cwd: Any) -> bool:
    """Return whether a command is that of this tree; `-m` takes it from the current folder first."""
    folder = Path(cwd or ".").resolve()
    texts = all(isinstance(word, str) for word in command)
    is_one = any(command[: len(each)] == each for each in COMMANDS)
    return texts and is_one and (folder == ROOT or not (folder / "proxy").exists()) and folder.is_dir()


def _is_same_python(env: Any) -> bool:
    if env is None:
        return True
    path = env.get("PYTHONPATH")
    return path in ROOTS and _of_python(env) in (_of_python(os.environ), OF_USERS)


def _of_python(environment: Any) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(OF_PYTHON) and name != "PYTHONPATH"}
