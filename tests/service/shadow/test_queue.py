"""Tests of the shadow queue: selected, waiting and dropped requests, and the switch."""

import asyncio
import random
from typing import Any

import pytest
from support.fault_injection import until

from proxy import config
from proxy.shadow import queue as shadowing
from proxy.shadow.job import ComparisonJob
from proxy.traffic.v3_response import SideResponse
from proxy.upstream.policies import CircuitBreaker


class _RecordedJobs:
    """Records the jobs that run; each waits until `gate` is open, and a job named `fails` raises."""

    def __init__(self) -> None:
        self.run_: list[Any] = []
        self.gate = asyncio.Event()
        self.ended = 0

    async def run(self, seen: Any) -> None:
        self.run_.append(seen.target)
        if seen.target == "fails":
            raise RuntimeError("within")
        try:
            await self.gate.wait()
        finally:
            self.ended += 1


@pytest.fixture
def jobs() -> Any:
    return _RecordedJobs()


@pytest.fixture
async def make_shadow(clock: Any, metrics: Any, jobs: Any) -> Any:
    """Makes a shadow that is on, of these settings."""
    shadows = []

    async def make(shares: Any = None, on: bool = True, **settings: Any) -> Any:
        rng = random.Random(7)
        off = config.BreakerSettings(failures=0)
        breaker = CircuitBreaker("shadow", "it", off, clock=clock, rng=rng, metrics=metrics)
        shares = {"demo": 1.0} if shares is None else shares
        chosen = config.ShadowSettings(**{"rate": 0, "connections": 1, **settings})
        shadow = shadowing.ShadowQueue(chosen, shares, jobs, breaker, clock=clock, rng=rng, metrics=metrics)
        shadows.append(shadow)
        await shadow.switch(on)
        return shadow

    yield make
    for shadow in shadows:
        await shadow.switch(False)


def seen(target: str = "a", body: bytes = b"") -> Any:
    return ComparisonJob("demo", target, SideResponse(200, body, 0.0), 0.0)


def dropped(metrics: Any) -> Any:
    return {reason: count for (_, reason), count in metrics.shadow_dropped.items()}


async def test_configured_share_of_requests_is_selected(make_shadow: Any) -> None:
    shadow = await make_shadow({"half": 0.5, "all": 1.0, "none": 0.0})
    chosen = {name: sum(shadow.wants(name) for _ in range(1000)) for name in ("half", "all", "none", "other")}
    assert 400 < chosen.pop("half") < 600
    assert chosen == {"all": 1000, "none": 0, "other": 0}


async def test_requests_are_compared_in_order(make_shadow: Any, jobs: Any) -> None:
    shadow = await make_shadow()
    jobs.gate.set()
    for target in "abc":
        shadow.offer(seen(target))
    await until(lambda: jobs.ended == 3)
    assert jobs.run_ == ["a", "b", "c"]


async def test_requests_beyond_the_queue_are_dropped(make_shadow: Any, jobs: Any, metrics: Any) -> None:
    shadow = await make_shadow(queue=2)
    shadow.offer(seen())
    await until(lambda: jobs.run_)
    for _ in range(5):
        shadow.offer(seen())
    assert dropped(metrics) == {"queue": 3}
    assert metrics.shadow_queue_length[()] == 2


async def test_queued_bytes_are_bounded(
    make_shadow: Any, jobs: Any, metrics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadowing, "BYTES_MAX", 100)
    shadow = await make_shadow()
    shadow.offer(seen())
    await until(lambda: jobs.run_)
    for _ in range(3):
        shadow.offer(seen(body=b"x" * 50))
    assert dropped(metrics) == {"queue": 1}
    jobs.gate.set()
    await until(lambda: jobs.ended == 3)
    shadow.offer(seen(body=b"x" * 100))
    assert dropped(metrics) == {"queue": 1}


async def test_requests_per_second_are_limited(make_shadow: Any, clock: Any, metrics: Any) -> None:
    shadow = await make_shadow(rate=2)
    for _ in range(5):
        shadow.offer(seen())
    assert dropped(metrics) == {"rate": 3}
    clock.advance(1)
    shadow.offer(seen())
    assert dropped(metrics) == {"rate": 3}


async def test_switching_off_cancels_queued_and_running_comparisons(make_shadow: Any, jobs: Any, metrics: Any) -> None:
    shadow = await make_shadow()
    for _ in range(3):
        shadow.offer(seen())
    await until(lambda: jobs.run_)
    await shadow.switch(False)
    assert (len(jobs.run_), jobs.ended, dropped(metrics)) == (1, 1, {"off": 2})
    assert not shadow.wants("demo")
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("shadow ")]
    await shadow.switch(True)
    jobs.gate.set()
    shadow.offer(seen("again"))
    await until(lambda: jobs.run_[-1] == "again")


async def test_failed_comparison_does_not_stop_the_queue(make_shadow: Any, jobs: Any, metrics: Any) -> None:
    shadow = await make_shadow()
    jobs.gate.set()
    for target in ("fails", "goes on"):
        shadow.offer(seen(target))
    await until(lambda: jobs.ended)
    assert jobs.run_ == ["fails", "goes on"]
    assert metrics.shadow_errors == {("demo", "internal"): 1}
