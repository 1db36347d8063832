"""Metrics of a machine with several workers: any worker has the history, and it survives the one that makes it."""

import asyncio
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from proxy.kit import clock
from proxy.stores import open
from proxy.telemetry import activity, merging, metrics
from proxy.web import cluster_metrics


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def worker(tmp_path: Path, time: clock.ManualClock) -> Any:
    """`worker(n)` starts the process of slot n: its metrics, and the figures of all."""
    folder = tmp_path / "v3bridge-abc123"
    folder.mkdir()
    store = open.MemoryStore(time)

    def start(number: int) -> tuple[metrics.Metrics, cluster_metrics.ClusterMetrics]:
        own = metrics.Metrics(prometheus_client.CollectorRegistry(), time)
        local = merging.WorkerFigures(own, activity.Activity(time), merging.WorkerSlot(folder, number))
        return own, cluster_metrics.ClusterMetrics(local, store, time, shared=False)

    return start


async def test_history_is_that_of_all_workers_for_any_of_them(worker: Any, time: clock.ManualClock) -> None:
    (one, first), (two, second) = worker(1), worker(2)
    await first.publish()
    for seconds, count in enumerate((3, 4), 1):
        for own in (one, two):
            own.requests["/v3/parts/match", "200"] += count
        second.local.write()
        time.advance(5 * seconds)
        await first.publish()
    for each in (first, second):
        assert [sample.counts.requests for sample in each.history().samples] == [6, 8]
    assert first.name == second.name
    assert first.name.endswith("-abc123")


async def test_worker_that_replaces_another_continues_its_history(worker: Any, time: clock.ManualClock) -> None:
    own, first = worker(1)
    await first.publish()
    own.requests["/v3/parts/match", "200"] += 3
    first.local.write()
    time.advance(5)
    await first.publish()
    again, replacement = worker(1)
    assert replacement.history().window(time.now(), 60).counts.requests == 3
    again.requests["/v3/parts/match", "200"] += 2
    time.advance(5)
    await replacement.publish()
    # Neither what was counted before nor what was counted since is counted twice.
    assert replacement.history().window(time.now(), 60).counts.requests == 5


async def test_damaged_history_begins_anew(worker: Any, tmp_path: Path) -> None:
    _, first = worker(1)
    await first.publish()
    (tmp_path / "v3bridge-abc123" / cluster_metrics.HISTORY_FILE).write_bytes(b"{")
    assert worker(1)[1].history().samples == []


async def test_figures_are_shared_when_a_worker_ends(worker: Any) -> None:
    (one, first), (_, second) = worker(1), worker(2)
    first.start()
    one.parts["demo",] += 3
    await first.close()
    assert b'v3bridge_parts_returned_total{application="demo"} 3.0' in second.local.text()


async def test_failed_write_is_not_the_last_one(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (one, first), (_, second) = worker(1), worker(2)
    monkeypatch.setattr(merging, "WRITE_SECONDS", 0.0)
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
    assert b'v3bridge_parts_returned_total{application="demo"} 3.0' in second.local.text()


async def test_lag_of_a_blocked_event_loop_is_measured(worker: Any) -> None:
    own, first = worker(1)
    measuring = asyncio.create_task(first.measure_lag())
    await asyncio.sleep(0)
    clock_now = asyncio.get_running_loop().time
    end = clock_now() + 3 * cluster_metrics.LAG_SECONDS
    while clock_now() < end:
        pass
    await measuring
    assert own.event_loop_lag[()] == pytest.approx(2 * cluster_metrics.LAG_SECONDS, rel=0.5)
