"""Start-up times of the command line: `v3bridge --help`, and `v3bridge serve` until it accepts requests.

Wall time of new processes. `serve` runs with a canned upstream and an SQLite store, and is ready when it prints its
first line, after the listening socket is open.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.goals import Goal
from bench.processes import service, upstream

GOALS: dict[str, Goal] = {}
ROUNDS = 7


def run() -> dict[str, float]:
    """Return milliseconds, medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [(_interpreter(), _help(), _serve(Path(folder))) for _ in range(ROUNDS)]
    bare, shown, ready = (median(column) for column in zip(*rounds, strict=True))
    return {
        "start-up: python -c pass (ms)": bare,
        "start-up: v3bridge --help (ms)": shown,
        "start-up: v3bridge serve, until it serves (ms)": ready,
    }


def _interpreter() -> float:
    """Return the time of the interpreter alone, which no import of this service can change."""
    return _timed("-c", "pass")


def _help() -> float:
    return _timed("-m", "proxy", "--help")


def _timed(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def _serve(folder: Path) -> float:
    with upstream() as behind:
        start = time.perf_counter()
        with service(behind, folder):
            return (time.perf_counter() - start) * 1e3
