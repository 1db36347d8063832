"""Upstream requests and parts of a bill of materials: 1 000 lines, a fifth repeated, in requests of 20 queries.

With the shipped configuration, and a cold, then a warm cache. The canned upstream counts, not the service under test.
"""

import json
import random
import tempfile
from pathlib import Path
from urllib.parse import quote

from bench.goals import Goal
from bench.processes import Server, service, upstream

GOALS: dict[str, Goal] = {}
LINES, REPEATED, QUERIES = 1_000, 200, 20


def run() -> dict[str, float]:
    """Return upstream requests and parts, and the memory growth of the service."""
    lines = _lines()
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream() as behind,
        service(behind, Path(folder)) as server,
    ):
        server.body("/readyz")
        before = server.memory()
        cold = _send(server, behind, lines)
        warm = _send(server, behind, lines)
        return {
            "BOM of 1 000 lines, 200 repeated, cold: upstream requests": cold[0],
            "cold: parts": cold[1],
            "warm: upstream requests": warm[0],
            "warm: parts": warm[1],
            "memory growth (MB)": server.memory() - before,
        }


def _lines() -> list[str]:
    """Return part numbers in random order."""
    rng = random.Random(1)
    distinct = [f"SN74S{number:04}" for number in range(LINES - REPEATED)]
    lines = distinct + rng.sample(distinct, REPEATED)
    rng.shuffle(lines)
    return lines


def _send(server: Server, behind: Server, lines: list[str]) -> tuple[int, int]:
    behind.body("/count")
    for start in range(0, len(lines), QUERIES):
        queries = json.dumps([{"mpn": line} for line in lines[start : start + QUERIES]])
        server.body(f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={quote(queries)}")
    requests, parts = json.loads(behind.body("/count"))
    return requests, parts
