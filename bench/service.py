"""The whole service beside the floor (bench/floor.py), on the same canned upstream, in turns.

Goal: at least 0.85 of the floor's requests a second with the answer cache off. The service does everything it always
does: keys, views, quota, metrics, request ids; its log is set to warnings, because the floor has none.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

ROUNDS, SECONDS, CONNECTIONS = 9, 2.0, 64
TARGET = "/v3/parts/match?apikey=EXAMPLE_KEY&queries=" + quote('[{"mpn":"SN74SNUMBER"}]')
REPEATED = TARGET.replace("NUMBER", "74N")
CONFIG = """
listen: {{port: 0}}
upstream: {{graphql_url: "http://127.0.0.1:{port}/graphql", token_url: "http://127.0.0.1:{port}/connect/token"}}
applications: {{bench: {{client_id: bench, client_secret: "bench-secret", apikeys: [EXAMPLE_KEY]}}}}
translation: {{single_query: supMultiMatch}}
answers: {{seconds: {seconds}}}
store: sqlite:state.sqlite
log: {{level: warning}}
"""


class Server(NamedTuple):
    """A process under test and where it listens."""

    port: int
    pid: int


class Load(NamedTuple):
    """One run against one server: replies a second, 99th percentile in ms, CPU time a reply in µs."""

    rate: float
    p99: float
    cpu: float


def run() -> dict[str, float]:
    """Medians of all rounds: requests a second of each, and what the service does of what the floor does."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [_round(folder) for _ in range(ROUNDS)]
    return {
        "floor (requests/s)": median(floor.rate for floor, *_ in rounds),
        "service, answers off (requests/s)": median(service.rate for _, service, *_ in rounds),
        "service / floor": median(service.rate / floor.rate for floor, service, *_ in rounds),
        "the same by CPU time a reply": median(floor.cpu / service.cpu for floor, service, *_ in rounds),
        "service, identical calls shared / floor": median(shared.rate / floor.rate for floor, _, shared, _ in rounds),
        "service, kept answers / floor": median(kept.rate / floor.rate for floor, *_, kept in rounds),
        "p99, floor (ms)": median(floor.p99 for floor, *_ in rounds),
        "p99, service (ms)": median(service.p99 for _, service, *_ in rounds),
    }


def _round(folder: str) -> list[Load]:
    """Floor, service, service where all ask the same, service that keeps answers: each in a process of its own, made
    for this round, because one that lies badly in memory is slower by a tenth for all its life."""
    with _process("bench.upstream") as (upstream, pid):
        port = int(upstream)
        _pin(pid, 1)
        with _floor(port) as floor, _service(port, 0, folder) as service, _service(port, 60, folder) as keeping:
            for server in (floor, service, keeping):
                _pin(server.pid, 0)
            runs = ((floor, TARGET), (service, TARGET), (service, REPEATED), (keeping, REPEATED))
            for server, target in runs:
                _load(server, target, 1.0)
            return [_load(server, target) for server, target in runs]


def _load(server: Server, target: str, seconds: float = SECONDS) -> Load:
    command = [sys.executable, "-m", "bench.load", str(server.port), str(seconds), str(CONNECTIONS), target]
    before = _cpu(server.pid)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as load:
        _pin(load.pid, 1)
        result = json.loads(load.communicate()[0])
    return Load(result["rate"], result["p99"], (_cpu(server.pid) - before) / (result["rate"] * seconds) * 1e6)


def _pin(pid: int, core: int) -> None:
    """Keep what is measured and what loads it on cores of their own, where there are two (Linux)."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used (Linux; elsewhere not known, and the ratio is nan)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[tuple[str, int]]:
    """A process: the first line it prints, and its id."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline(), process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _service(upstream: int, seconds: int, folder: str) -> Iterator[Server]:
    file = Path(folder) / f"config-{seconds}.yaml"
    file.write_text(CONFIG.format(port=upstream, seconds=seconds))
    with _process("proxy", "serve", "--config", str(file)) as (line, pid):
        yield Server(int(line.partition("127.0.0.1:")[2].partition("/")[0]), pid)


@contextmanager
def _floor(upstream: int) -> Iterator[Server]:
    with _process("bench.floor", f"http://127.0.0.1:{upstream}/graphql") as (line, pid):
        yield Server(int(line), pid)
