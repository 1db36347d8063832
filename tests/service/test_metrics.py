"""Metrics of several processes, each of which writes its values into one folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROCESS = """
import sys
from proxy import metrics
metrics.begin_process(int(sys.argv[1]))
counted = metrics.Metrics()
for line in sys.stdin:
    word, number = line.split()
    if word == "count":
        counted.parts.inc("demo", by=int(number))
        counted.event_loop_lag.set(int(number))
        counted.store_unavailable.set(int(number) == 3)
        for seconds in (0.04, 0.05, 60.0):
            counted.request_seconds.observe("/v3", seconds)
        counted.flush()
    elif word == "forget":
        metrics.forget_gauges(int(number))
    print(counted.text().decode().replace("\\n", "|"), flush=True)
"""
NAMES = (
    'v3bridge_parts_returned_total{application="demo"}',
    "v3bridge_event_loop_lag_seconds",
    'v3bridge_request_duration_seconds_bucket{le="0.05",route="/v3"}',
    'v3bridge_request_duration_seconds_count{route="/v3"}',
    'v3bridge_request_duration_seconds_sum{route="/v3"}',
    "v3bridge_store_unavailable",
)


class Process:
    def __init__(self, number: int, folder: Path, stack: ExitStack) -> None:
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
        command = [sys.executable, "-c", PROCESS, str(number)]
        self._process: Any = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, env=environment, stdin=-1, stdout=-1, text=True)
        )

    def tell(self, word: str, number: int = 0) -> str:
        """Let it do something; return its metrics."""
        self._process.stdin.write(f"{word} {number}\n")
        self._process.stdin.flush()
        return str(self._process.stdout.readline()).replace("|", "\n")

    def shown(self, word: str = "show", number: int = 0) -> list[float]:
        lines = dict(re.findall(r"^([^#\n].*) (\S+)$", self.tell(word, number), re.MULTILINE))
        return [float(lines[each]) for each in NAMES]

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_any_process_shows_the_counts_of_all_and_the_gauges_of_those_that_live(
    tmp_path: Path, stack: ExitStack
) -> None:
    one, other = Process(1, tmp_path, stack), Process(2, tmp_path, stack)
    assert one.shown("count", 3) == pytest.approx([3, 3, 2, 3, 60.09, 1])
    assert other.shown("count", 4) == one.shown() == pytest.approx([7, 4, 4, 6, 120.18, 1])
    one.end()
    assert other.shown("forget", 1) == pytest.approx([7, 4, 4, 6, 120.18, 0])
    files = sorted(tmp_path.iterdir())
    assert Process(1, tmp_path, stack).shown("count", 1) == other.shown() == pytest.approx([8, 4, 6, 9, 180.27, 0])
    assert {file for file in tmp_path.iterdir() if file.name[:5] != "gauge"} <= set(files)


def test_every_metric_is_named_once_before_it_has_values(tmp_path: Path, stack: ExitStack) -> None:
    process = Process(1, tmp_path, stack)
    before, after = (re.findall(r"^# TYPE (\w+)", process.tell(word, 1), re.MULTILINE) for word in ("show", "count"))
    assert before == after
    assert [file for file in tmp_path.iterdir() if file.stat().st_blocks * 512 < file.stat().st_size] == []
    assert len(set(before)) == len(before) > 10
