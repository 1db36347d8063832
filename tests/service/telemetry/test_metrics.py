"""Metrics of a process, and those of several that count in one folder."""

import subprocess
import sys

import pytest

from proxy.telemetry import metrics, multiprocess

WORKERS = """
import os, signal
from proxy.telemetry import multiprocess

def start(worker, parts):
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        count(worker, parts)
        os.write(tell, b".")
        signal.pause()
    os.read(ready, 1)
    return pid

def count(worker, parts):
    multiprocess.count_as(worker)
    from proxy.telemetry import metrics
    counted = metrics.Metrics()
    counted.parts.labels("demo").inc(parts)
    counted.upstream_in_flight.inc(parts)
    multiprocess.share()
    return counted

def kill(worker, pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    multiprocess.mark_dead(worker)

def show(counted):
    lines = dict(line.rsplit(" ", 1) for line in counted.text().decode().splitlines() if line[0] != "#")
    shown = 'v3bridge_parts_returned_total{application="demo"}', "v3bridge_upstream_requests_in_flight"
    print(*(float(lines[each]) for each in shown))

with multiprocess.folder() as folder:
    pid = start("1", 3)
    other = count("2", 4)
    show(other)
    files = len(list(folder.iterdir()))
    kill("1", pid)
    show(other)
    pid = start("1", 1)
    show(other)
    print(len(list(folder.iterdir())) - files)
    kill("1", pid)
print(folder.exists())
"""


@pytest.fixture
def counted() -> metrics.Metrics:
    return metrics.Metrics()


def test_any_worker_shows_the_counts_of_all_and_the_gauges_of_those_that_live() -> None:
    for _ in range(2):  # the second time, nothing of the first
        done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, check=False)
        assert (done.stderr, done.stdout.splitlines()) == ("", ["7.0 7.0", "7.0 4.0", "8.0 5.0", "0", "False"])


def test_folder_that_comes_too_late_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="prometheus_client was imported before"), multiprocess.folder():
        pass
