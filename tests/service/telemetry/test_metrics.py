"""Metrics of a process, and those of several that count in one folder."""

import asyncio
import re
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


def test_counters_are_in_the_text(counted: metrics.Metrics) -> None:
    counted.requests.labels("/v3/parts/match", "200").inc()
    counted.parts.labels("demo").inc(3)
    for seconds in (0.02, 0.025, 4, 99):
        counted.upstream_seconds.labels("supSearchMpn").observe(seconds)
    text = counted.text().decode()
    assert 'v3bridge_requests_total{route="/v3/parts/match",status="200"} 1.0' in text
    assert 'v3bridge_parts_returned_total{application="demo"} 3.0' in text
    buckets = re.findall(
        r'v3bridge_upstream_request_duration_seconds_bucket{le="(.+?)",operation="supSearchMpn"} (.+)', text
    )
    assert dict(buckets)["0.01"] == "0.0"
    assert (dict(buckets)["0.025"], dict(buckets)["5.0"], dict(buckets)["+Inf"]) == ("2.0", "3.0", "4.0")
    assert 'v3bridge_upstream_request_duration_seconds_count{operation="supSearchMpn"} 4.0' in text
    assert 'v3bridge_upstream_request_duration_seconds_sum{operation="supSearchMpn"} 103.045' in text


def test_two_metrics_objects_are_independent(counted: metrics.Metrics) -> None:
    other = metrics.Metrics()
    counted.queries.labels("hit").inc()
    assert 'source="hit"' not in other.text().decode()


async def test_lag_of_a_blocked_event_loop_is_measured(counted: metrics.Metrics) -> None:
    measuring = asyncio.create_task(counted.measure())
    await asyncio.sleep(0)
    clock_now = asyncio.get_running_loop().time
    end = clock_now() + 3 * metrics.LAG_SECONDS
    while clock_now() < end:
        pass
    await measuring
    lag = counted.registry.get_sample_value("v3bridge_event_loop_lag_seconds")
    assert lag == pytest.approx(2 * metrics.LAG_SECONDS, rel=0.5)


async def test_event_loop_tasks_are_counted_on_each_scrape(counted: metrics.Metrics) -> None:
    assert b"v3bridge_event_loop_tasks 1.0" in counted.text()
    waiting = asyncio.create_task(asyncio.sleep(60))
    assert b"v3bridge_event_loop_tasks 2.0" in counted.text()
    waiting.cancel()


def test_any_worker_shows_the_counts_of_all_and_the_gauges_of_those_that_live() -> None:
    for _ in range(2):  # the second time, nothing of the first
        done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, check=False)
        assert (done.stderr, done.stdout.splitlines()) == ("", ["7.0 7.0", "7.0 4.0", "8.0 5.0", "0", "False"])


def test_folder_that_comes_too_late_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="prometheus_client was imported before"), multiprocess.folder():
        pass
