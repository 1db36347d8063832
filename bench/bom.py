"""A bill of materials of 1 000 lines, a fifth of them repeated, in calls of 20 queries: what is asked and returned.

As shipped: cold, and again while the answers are kept. Counted by the canned upstream, so that nothing is taken on
trust.
"""

import json
import random
import tempfile
from pathlib import Path
from urllib.parse import quote

from bench.goals import Goal
from bench.processes import Server, service, upstream

GOALS: dict[str, Goal] = {}
LINES, REPEATED, CALL = 1_000, 200, 20


def run() -> dict[str, float]:
    """Upstream requests and parts, and the memory of the service."""
    lines = _lines()
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream() as behind,
        service(behind, Path(folder)) as keeping,
    ):
        keeping.body("/readyz")
        before = keeping.memory()
        cold = _ask(keeping, behind, lines)
        warm = _ask(keeping, behind, lines)
        return {
            "BOM of 1 000 lines, 200 repeated, cold: upstream requests": cold[0],
            "cold: parts": cold[1],
            "warm: upstream requests": warm[0],
            "warm: parts": warm[1],
            "memory after it, more than before (MB)": keeping.memory() - before,
        }


def _lines() -> list[str]:
    """Part numbers; the repeated ones stand anywhere."""
    chance = random.Random(1)
    own = [f"SN74S{number:04}" for number in range(LINES - REPEATED)]
    lines = own + chance.sample(own, REPEATED)
    chance.shuffle(lines)
    return lines


def _ask(server: Server, behind: Server, lines: list[str]) -> tuple[int, int]:
    behind.body("/count")
    for start in range(0, len(lines), CALL):
        queries = json.dumps([{"mpn": line} for line in lines[start : start + CALL]])
        server.body(f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={quote(queries)}")
    requests, parts = json.loads(behind.body("/count"))
    return requests, parts
