"""Processes of the benches: canned upstream, floor, and the service.

New ones are started for every round, because the memory layout can make a process a tenth slower for its whole life.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple
from urllib.parse import quote

import yaml

TREE = Path(__file__).parents[1]
TIMEOUT = 60.0  # seconds: a server that hangs must not stop a whole run


def target(*numbers: str) -> str:
    """Return the target of a request for part numbers."""
    queries = ",".join(f'{{"mpn":"{number}"}}' for number in numbers)
    return f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={quote(f'[{queries}]')}"


class Server(NamedTuple):
    """A process under test, and where it listens."""

    port: int
    pid: int

    def get(self, target: str) -> bytes:
        """Return the body of a response."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=TIMEOUT) as reply:
            return bytes(reply.read())

    def counts(self) -> Any:
        """Return what an upstream has counted, and reset it."""
        return json.loads(self.get("/count"))

    def cpu(self) -> float:
        """Return the CPU seconds used so far, with those of its workers."""
        # The kernel's clock of another process (MAKE_PROCESS_CPUCLOCK): nanoseconds, where /proc has hundredths of a
        # second, which would be a twentieth of a short round.
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in _with_workers(self.pid))

    def memory(self) -> float:
        """Return the memory in MB of this process and its workers; what they share counts once."""
        return sum(map(_memory, _with_workers(self.pid)))


def _with_workers(pid: int) -> list[int]:
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _memory(pid: int) -> float:
    return int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0]) / 1024


@contextmanager
def upstream(milliseconds: float = 0.0, parts: int = 3, *, core: int | None = 1) -> Iterator[Server]:
    """Start the canned upstream, on the core of the load generator; each number matches so many `parts`."""
    with _process("bench.upstream", str(milliseconds), str(parts), core=core) as (line, pid):
        yield Server(int(line), pid)


@contextmanager
def floor(behind: Server, *options: str, core: int | None = 0) -> Iterator[Server]:
    """Start the floor: a minimal translator."""
    with _process("bench.floor", f"http://127.0.0.1:{behind.port}/graphql", *options, core=core) as (line, pid):
        yield Server(int(line), pid)


@contextmanager
def service(
    behind: Server, changes: Mapping[str, object] = MappingProxyType({}), *, core: int | None = 0
) -> Iterator[Server]:
    """Start the service with the shipped configuration but for addresses and `changes` by dotted key, with an SQLite
    store, and a log in a file."""
    address = f"http://127.0.0.1:{behind.port}"
    settings: dict[str, Any] = yaml.safe_load((TREE / "config.yaml").read_text("utf-8"))
    settings["upstream"] = {"graphql_url": f"{address}/graphql", "token_url": f"{address}/connect/token"}
    settings["applications"]["demo"] |= {"client_id": "bench", "client_secret": "bench-secret"}
    settings |= {"store": "sqlite:state.sqlite", "admin": {"port": 0}, "listen": {"port": 0}}
    for key, value in changes.items():
        block, _, name = key.rpartition(".")
        (settings[block] if block else settings)[name] = value
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("wb") as log:
        file = Path(folder, "config.yaml")
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")
        with _process("proxy", "serve", "--config", str(file), core=core, log=log) as (line, pid):
            yield Server(int(line.partition("127.0.0.1:")[2].partition("/")[0]), pid)


class LoadResult(NamedTuple):
    """Responses a second and their number, their median in ms, and CPU time of the server for each in µs."""

    rate: float
    responses: float
    p50: float
    cpu: float


def load(
    server: Server, seconds: float, target: str, connections: int = 64, every: float = 0.0, core: int | None = 1
) -> LoadResult:
    """Run the load generator; with `every`, one request every so many seconds instead of as many as possible."""
    arguments = map(str, (server.port, seconds, connections, every, target))
    command, before = [sys.executable, "-m", "bench.load", *arguments], server.cpu()
    printed = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, timeout=seconds + TIMEOUT, preexec_fn=lambda: _pin(0, core)
    ).stdout
    result = json.loads(printed)
    return LoadResult(**result, cpu=(server.cpu() - before) / result["responses"] * 1e6)


def _pin(pid: int, core: int | None) -> None:
    """Pin a process to a core, so that server and load do not share one."""
    if core is not None and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


@contextmanager
def _process(module: str, *arguments: str, core: int | None, log: IO[bytes] | None = None) -> Iterator[tuple[str, int]]:
    """Start a module; yields the first line that it prints, and its process id."""
    command = [sys.executable, "-m", module, *arguments]
    options: dict[str, Any] = {"cwd": TREE, "stdout": subprocess.PIPE, "stderr": log, "start_new_session": True}
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{module} did not start: {' '.join(arguments)}")
            for pid in _with_workers(process.pid):
                _pin(pid, core)
            yield line, process.pid
        finally:
            os.killpg(process.pid, signal.SIGTERM)
