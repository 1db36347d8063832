"""Metrics of several workers on one page: sums of all, which never decrease."""

import asyncio
import stat
from pathlib import Path
from typing import Any, Literal

import prometheus_client
import pytest

from proxy.kit import clock
from proxy.telemetry import merging, metrics

PARTS = 'v3bridge_parts_returned_total{application="demo"}'


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def worker(tmp_path: Path, time: clock.ManualClock) -> Any:
    """`worker(n)` starts the process of place n: its metrics, and the page of all."""

    def start(number: int) -> tuple[metrics.Metrics, merging.WorkerMetrics]:
        own = metrics.Metrics(prometheus_client.CollectorRegistry(), time)
        return own, merging.WorkerMetrics(own, merging.WorkerSlot(tmp_path, number))

    return start


def value(merged: merging.WorkerMetrics, sample: str) -> float | None:
    """One sample of the page; None where it is not there."""
    found = [line for line in merged.text().decode().splitlines() if line.startswith(f"{sample} ")]
    return float(found[0].rpartition(" ")[2]) if found else None


def test_any_worker_shows_the_sum_of_all(worker: Any) -> None:
    (one, first), (two, second) = worker(1), worker(2)
    one.parts["demo",] += 3
    two.parts["demo",] += 4
    for own in (one, two):
        own.request_seconds.observe("/v3/parts/match", 0.02)
    first.write()
    second.write()
    assert (value(first, PARTS), value(second, PARTS)) == (7, 7)
    bucket = 'v3bridge_request_duration_seconds_bucket{le="0.025",route="/v3/parts/match"}'
    assert (value(first, bucket), value(first, bucket.replace("0.025", "0.01"))) == (2, 0)
    assert value(second, 'v3bridge_request_duration_seconds_sum{route="/v3/parts/match"}') == 0.04


def test_shown_counts_survive_their_worker(worker: Any) -> None:
    (one, first), (_, second) = worker(1), worker(2)
    one.parts["demo",] += 3
    assert value(first, PARTS) == 3
    del first  # killed: no word more
    assert value(second, PARTS) == 3
    one_again, first_again = worker(1)
    one_again.parts["demo",] += 1
    first_again.write()
    assert value(second, PARTS) == 4


def test_replacement_worker_continues_counters_but_not_gauges(worker: Any) -> None:
    own, merged = worker(1)
    own.token_age.mark("demo")
    own.parts["demo",] += 3
    merged.write()
    _, again = worker(1)
    assert value(again, 'v3bridge_token_age_seconds{application="demo"}') is None
    assert value(again, PARTS) == 3


def test_token_age_is_that_of_the_newest_token(worker: Any, time: clock.ManualClock) -> None:
    (one, first), (two, second) = worker(1), worker(2)
    one.token_age.mark("demo")
    time.advance(50)
    two.token_age.mark("demo")
    time.advance(10)
    first.write()
    second.write()
    shown = {value(each, 'v3bridge_token_age_seconds{application="demo"}') for each in (first, second)}
    assert shown == {10}


@pytest.mark.parametrize("merged, total", [("sum", 9.0), ("max", 5.0), ("last", 4.0)])
def test_gauges_merge_by_sum_max_or_last(merged: Literal["sum", "max", "last"], total: float) -> None:
    gauge = metrics.Gauge("a", "An a", "application", merged=merged)
    for each in (5.0, 4.0):
        gauge.merge(("demo",), each)
    assert gauge["demo",] == total


def test_files_are_readable_by_the_owner_only(worker: Any, tmp_path: Path) -> None:
    own, merged = worker(1)
    own.parts["demo",] += 3
    merged.write()
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_missing_folder_leaves_own_metrics(worker: Any, tmp_path: Path) -> None:
    own, merged = worker(1)
    own.parts["demo",] += 3
    tmp_path.rmdir()
    assert value(merged, PARTS) == 3


async def test_event_loop_tasks_are_sampled_on_each_scrape(worker: Any) -> None:
    (_, first), (_, second) = worker(1), worker(2)
    before = value(first, "v3bridge_event_loop_tasks")
    waiting = [asyncio.create_task(asyncio.sleep(60)) for _ in range(3)]
    second.write()
    assert (before, value(first, "v3bridge_event_loop_tasks")) == (1, 8)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    second.write()
    assert value(first, "v3bridge_event_loop_tasks") == 2


async def test_metrics_are_shared_when_a_worker_ends(worker: Any) -> None:
    (one, first), (_, second) = worker(1), worker(2)
    first.start()
    one.parts["demo",] += 3
    await first.close()
    assert value(second, PARTS) == 3


async def test_failed_write_is_not_the_last_one(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (one, first), (_, second) = worker(1), worker(2)
    failed = asyncio.Event()

    def fail(*_: object) -> None:
        monkeypatch.undo()
        failed.set()
        raise MemoryError

    monkeypatch.setattr(merging, "snapshot", fail)
    first.start()
    await failed.wait()
    one.parts["demo",] += 3
    await first.close()
    assert value(second, PARTS) == 3


async def test_lag_of_a_blocked_event_loop_is_measured(worker: Any) -> None:
    own, first = worker(1)
    measuring = asyncio.create_task(first.measure_lag())
    await asyncio.sleep(0)
    clock_now = asyncio.get_running_loop().time
    end = clock_now() + 3 * merging.LAG_SECONDS
    while clock_now() < end:
        pass
    await measuring
    assert own.event_loop_lag[()] == pytest.approx(2 * merging.LAG_SECONDS, rel=0.5)
