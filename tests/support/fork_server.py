"""Process that has the program imported, and starts `python -m proxy` as a copy of itself (fork), or `nexar_sandbox`,
or the installed `v3bridge`.

Run as a script by forked_commands.py. A start takes a tenth of the CPU time of a new interpreter, most of which imports
the same modules each time. The parent of the copy is the test process (CLONE_PARENT), which can therefore wait for it
and kill it like any child.

Protocol, over the socket that is standard input: a message is JSON (`program`: a module or a path, `arguments`, `cwd`,
`environment`, `session`: whether it begins one) with three file descriptors, which become standard input, output and
error; the response is the process id. End of file ends the server.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import platform
import runpy
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

IMPORTED = (
    *("proxy.cli.main", "proxy.cli.service", "aiohttp.web", "proxy.planning.documents"),
    *("proxy.graphql.documents", "proxy.upstream.http_post"),
    *(
        "nexar_sandbox.command",
        "proxy.tools.compare.comparison",
        "proxy.tools.compare.reports",
        "proxy.tools.sheet.workbook_process",
    ),
    *("proxy.store.sqlite", "rich.progress", "typer._adapters"),
)
CLONE = {"x86_64": 56, "aarch64": 220}  # number of the system call
CLONE_PARENT = 0x00008000
LARGEST = 1 << 20  # bytes of a message


class BegunAnewError(BaseException):
    """A copy calls `os.execve`, as `serve` does when it has read its options, with this environment."""


def main() -> None:
    """Serve until the test process closes the socket; in a copy, run the program."""
    server = socket.socket(fileno=os.dup(0))
    for name in IMPORTED:
        importlib.import_module(name)
    importlib.import_module("proxy.cli.main").program()  # imports all commands
    importlib.import_module("nexar_sandbox.graphql.schema").build()
    _open_catalog_before()
    gc.freeze()  # otherwise collections in a copy touch, and so duplicate, all memory
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C at the terminal of the tests ends the tests, and they this
    while True:
        text, files, _, _ = socket.recv_fds(server, LARGEST, 3)
        if not text:
            return
        child = _clone()
        if child == 0:
            server.close()
            request = json.loads(text)
            _become(request, files)
            _run(request["program"])
        for file in files:
            os.close(file)
        server.send(str(child).encode())


def _open_catalog_before() -> None:
    """Let the first sandbox of a copy have the shipped catalog, which is open and in memory: half of its start."""
    store: Any = importlib.import_module("nexar_sandbox.catalog.store")
    open_catalog, opened = store.open_catalog, [store.open_catalog()]
    store.open_catalog = lambda *given: opened.pop() if opened and given in ((), (None,)) else open_catalog(*given)


def _clone() -> int:
    """Fork, but as a sibling of this process. os.fork() has no such flag; the rest is what it does."""
    python = ctypes.pythonapi
    system = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter lock, unlike CDLL
    python.PyOS_BeforeFork()
    child: int = system.syscall(CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone failed")
    return child


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Give this process what a new interpreter would have: files, folder, environment, arguments, signals."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    _set_environment(request["environment"])
    sys.argv = [request["program"], *request["arguments"]]  # run_module replaces the first
    sys.path[0] = request["cwd"]
    os.execve = _begin_anew  # type: ignore[assignment]
    tempfile.tempdir = None  # read from the environment again
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _set_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _begin_anew(_program: str, _arguments: list[str], environment: Mapping[str, str]) -> NoReturn:
    raise BegunAnewError(environment)


def _run(program: str) -> None:
    """Run the program and end as an interpreter does, except that memory is not freed, which costs more than most
    commands. An exception other than SystemExit is left to the interpreter."""
    code: Any = 0
    try:
        try:
            _run_once(program)
        except BegunAnewError as anew:
            _set_environment(*anew.args)
            _run_once(program)
    except SystemExit as exit:
        code = exit.code or 0
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run_once(program: str) -> None:
    if os.path.isabs(program):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
