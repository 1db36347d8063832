"""Processes of the benches: canned upstream, floor and its peer, constant handler, Redis, sandbox, and the service.

New ones are started for every round, because the memory layout can make a process a tenth slower for its whole life.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple
from urllib.parse import quote

import yaml

TREE = Path(__file__).parents[1]
CONNECTIONS = 64
TIMEOUT = 60.0  # seconds: a server that hangs must not stop a whole run
TARGET = "/v3/parts/match?apikey=EXAMPLE_KEY&queries=" + quote('[{"mpn":"SN74SNUMBER"}]')
SAME = TARGET.replace("NUMBER", "74N")
# Settings of a row that differ from the shipped configuration, by dotted key.
Changes = Mapping[str, object]
ALONE: Changes = {"coalescing.enabled": False, "cache.seconds": 0}
# A target may end the request line itself, and add an id to the request.
WITH_ID = SAME + " HTTP/1.1\r\nX-Request-Id: id-NUMBER\r\nX-Rest-Of-Line:"


class Server(NamedTuple):
    """A process under test, where it listens, and its configuration if it is the service."""

    port: int
    pid: int
    config: Path | None = None

    @property
    def graphql_url(self) -> str:
        """Address of an upstream."""
        return f"http://127.0.0.1:{self.port}/graphql"

    def body(self, target: str) -> bytes:
        """Return the body of a response."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=TIMEOUT) as reply:
            return bytes(reply.read())

    def cpu(self) -> float:
        """Return the CPU seconds used so far, with those of its workers (nan except on Linux)."""
        try:
            # The kernel's clock of another process (MAKE_PROCESS_CPUCLOCK): nanoseconds, where /proc has hundredths of
            # a second, which would be a twentieth of a short round.
            return sum(time.clock_gettime(~pid << 3 | 2) for pid in _with_workers(self.pid))
        except OSError:
            return math.nan

    def memory(self) -> float:
        """Return the resident memory in MB of this process, or of its largest worker (nan except on Linux)."""
        try:
            return max(map(_resident, _with_workers(self.pid)))
        except OSError:
            return math.nan


def _with_workers(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [pid, *map(int, children.read_text().split())] if children.exists() else [pid]


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def upstream(milliseconds: float = 0.0, parts: int = 3, core: int | None = 1) -> AbstractContextManager[Server]:
    """Start the canned upstream, with `parts` in each result, on the core of the load generator."""
    return _server("bench.upstream", str(milliseconds), str(parts), core=core)


def day_upstream() -> AbstractContextManager[Server]:
    """Start the canned upstream of the team's day, on the core of the load generator."""
    return _server("bench.team_day.upstream", core=1)


def day_floor(behind: Server, cache_bytes: int = 0) -> AbstractContextManager[Server]:
    """Start the floor of the team's day, with a cache of responses of this size."""
    return _server("bench.team_day.floor", behind.graphql_url, str(cache_bytes))


def floor(behind: Server, *options: str, core: int | None = 0) -> AbstractContextManager[Server]:
    """Start the floor: a minimal translator."""
    return _server("bench.floor", behind.graphql_url, *options, core=core)


def floor_structs(behind: Server) -> AbstractContextManager[Server]:
    """Start the peer of the floor: the same with msgspec structs."""
    return _server("bench.floor_structs", behind.graphql_url)


def pass_through(behind: Server) -> AbstractContextManager[Server]:
    """Start the handler that passes GraphQL documents on."""
    return _server("bench.pass_through", behind.graphql_url)


def constant(size: int) -> AbstractContextManager[Server]:
    """Start an aiohttp handler that returns so many constant bytes."""
    return _server("bench.constant", str(size))


@contextmanager
def _server(module: str, *arguments: str, core: int | None = 0) -> Iterator[Server]:
    """Start a module that prints its port."""
    with _process(module, *arguments, core=core) as (line, pid):
        yield Server(int(line), pid)


@contextmanager
def redis() -> Iterator[str]:
    """Start a Redis server without persistence; yields its address as the setting `store` has it."""
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError("redis-server is not installed; `make programs` installs it")
    with tempfile.TemporaryDirectory(prefix="v3bridge-") as folder:  # short, as the name of a socket must be
        socket = Path(folder) / "redis.sock"
        command = [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                while not socket.exists():
                    time.sleep(0.01)
                yield f"unix://{socket}"
            finally:
                process.terminate()


@contextmanager
def sandbox(*options: str) -> Iterator[dict[str, str]]:
    """Start a sandbox; yields the addresses and credentials that it prints, by name."""
    command = [sys.executable, "-m", "nexar_sandbox", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed: dict[str, str] = {}
            while "client_secret" not in printed:
                name, value = process.stdout.readline().split()
                printed[name] = value
            yield printed
        finally:
            process.terminate()


@contextmanager
def service(
    behind: Server,
    folder: Path,
    changes: Changes = MappingProxyType({}),
    *,
    tree: Path = TREE,
    core: int | None = 0,
) -> Iterator[Server]:
    """Start the service with the shipped configuration but for addresses and `changes`, with its own SQLite store. Its
    log goes to a file. `tree`: the checkout whose service it is, with its own virtual environment."""
    own = Path(tempfile.mkdtemp(dir=folder))
    file = own / "config.yaml"
    file.write_text(yaml.safe_dump(configuration(behind.port, own, changes, tree)), encoding="utf-8")
    with (
        (own / "log").open("wb") as log,
        _process("proxy", "serve", "--config", str(file), core=core, log=log, tree=tree) as (line, pid),
    ):
        yield Server(int(line.partition("127.0.0.1:")[2].partition("/")[0]), pid, file)


def start_all(stack: ExitStack, managers: Mapping[str, AbstractContextManager[Server]]) -> dict[str, Server]:
    """Start servers two at a time, which takes half as long where there are two cores; `stack` stops them."""
    with ThreadPoolExecutor(2) as starting:
        return dict(zip(managers, starting.map(stack.enter_context, managers.values()), strict=True))


def configuration(port: int, folder: Path, changes: Changes, tree: Path = TREE) -> dict[str, Any]:
    """Return the shipped configuration with the canned upstream at `port` and its store in `folder`."""
    settings: dict[str, Any] = yaml.safe_load((tree / "config.yaml").read_text("utf-8"))
    addresses = {
        "listen.port": 0,
        "admin.port": 0,
        "store": f"sqlite:{folder}/state.sqlite",
        "upstream": {
            "graphql_url": f"http://127.0.0.1:{port}/graphql",
            "token_url": f"http://127.0.0.1:{port}/connect/token",
        },
        "applications.demo.client_id": "bench",
        "applications.demo.client_secret": "bench-secret",
    }
    return changed(settings, {**addresses, **changes})


def changed(settings: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """Return the settings, in which values by dotted key were set."""
    for key, value in changes.items():
        *blocks, name = key.split(".")
        inner = settings
        for block in blocks:
            inner = inner.setdefault(block, {})
        inner[name] = value
    return settings


def written(changes: Changes) -> str:
    """Return the settings of a row as they are written in config.yaml."""
    return ", ".join(f"{key}: {json.dumps(value)}" for key, value in changes.items()) or "as shipped"


class LoadResult(NamedTuple):
    """Result of a load run: responses a second, percentiles in ms, CPU time of a response in µs, and of the load
    generator for it."""

    rate: float
    p50: float
    p99: float
    cpu: float
    load_cpu: float


def load(server: Server, target: str, seconds: float, every: float = 0.0, core: int | None = 1) -> LoadResult:
    """Run the load generator; with `every`, one request every so many seconds instead of as many as possible."""
    command = [sys.executable, "-m", "bench.load", str(server.port), str(seconds), str(CONNECTIONS), target, str(every)]
    before = server.cpu()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as generator:
        pin(generator.pid, core)
        try:
            printed, _ = generator.communicate(timeout=seconds + TIMEOUT)
        finally:
            generator.kill()
    if generator.returncode:
        raise RuntimeError("the load generator ended with an error")
    result = json.loads(printed)
    each = 1e6 / result["responses"]
    return LoadResult(
        result["rate"], result["p50"], result["p99"], (server.cpu() - before) * each, result["cpu"] * each
    )


def pin(pid: int, core: int | None) -> None:
    """Pin a process to a core, so that server and load do not share one (Linux with two cores or more)."""
    if core is not None and hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


@contextmanager
def _process(
    module: str, *arguments: str, core: int | None, log: IO[bytes] | None = None, tree: Path = TREE
) -> Iterator[tuple[str, int]]:
    """Start a module; yields the first line that it prints, and its process id."""
    python = sys.executable if tree == TREE else str(tree / ".venv/bin/python")
    command = [python, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{module} did not start: {' '.join(arguments)}")
            for pid in _with_workers(process.pid):
                pin(pid, core)
            yield line, process.pid
        finally:
            process.terminate()
