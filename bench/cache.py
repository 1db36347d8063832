"""Memory of the response cache: growth of the resident memory of a worker while `cache.bytes` fills to its limit.

As shipped. Distinct queries, half as many again as fit, each requested three times in a row, because a response is kept
in encoded form from the third time on, and the limit holds for both forms together.
"""

import tempfile
from http.client import HTTPConnection
from pathlib import Path

import yaml

from bench.goals import Goal
from bench.processes import TARGET, Server, service, upstream
from proxy.kit import shipped

TIMES, OVERFILL = 3, 1.5
MEMORY = "memory growth of a worker until cache.bytes, 64 MiB, is full (MB)"
GOALS = {MEMORY: Goal("≤", 80)}


def run() -> dict[str, float]:
    """Return MB."""
    with tempfile.TemporaryDirectory() as folder, upstream() as behind, service(behind, Path(folder)) as server:
        size = len(server.body(TARGET))
        before = server.memory()
        limit = yaml.safe_load(shipped.path("config.yaml").read_text("utf-8"))["cache"]["bytes"]
        _fill(server, int(OVERFILL * limit / size))
        return {MEMORY: server.memory() - before}


def _fill(server: Server, queries: int) -> None:
    connection = HTTPConnection("127.0.0.1", server.port)
    for number in range(queries):
        for _ in range(TIMES):
            connection.request("GET", TARGET.replace("NUMBER", str(number)))
            connection.getresponse().read()
    connection.close()
