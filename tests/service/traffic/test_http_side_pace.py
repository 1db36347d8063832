"""Tests of the pace of requests to a side, with a manual clock."""

import asyncio
from typing import Any

from proxy.kit import clock
from proxy.traffic.http_side import RequestPacer


def waiting(time: Any) -> Any:
    async def sleep(seconds: Any) -> None:
        time.advance(seconds)

    return sleep


async def test_requests_are_evenly_spaced() -> None:
    time = clock.ManualClock(0.0)
    pace, began = RequestPacer(4, time, waiting(time)), []
    for _ in range(5):
        await pace.turn()
        began.append(time.monotonic())
    assert began == [0.0, 0.25, 0.5, 0.75, 1.0]


async def test_unused_rate_is_not_accumulated() -> None:
    time = clock.ManualClock(0.0)
    pace = RequestPacer(2, time, waiting(time))
    await pace.turn()
    time.advance(100)
    await pace.turn()
    await pace.turn()
    assert time.monotonic() == 100.5


async def test_concurrent_requests_get_distinct_times() -> None:
    time, slept = clock.ManualClock(0.0), []

    async def sleep(seconds: Any) -> None:
        slept.append(seconds)

    pace = RequestPacer(2, time, sleep)
    await asyncio.gather(*(pace.turn() for _ in range(4)))
    assert slept == [0.5, 1.0, 1.5]


async def test_missing_rate_causes_no_delay() -> None:
    time = clock.ManualClock(0.0)
    pace = RequestPacer(0, time, waiting(time))
    for _ in range(100):
        await pace.turn()
    assert time.monotonic() == 0.0


async def test_requested_pause_is_respected() -> None:
    time = clock.ManualClock(0.0)
    pace = RequestPacer(0, time, waiting(time))
    pace.hold(7)
    await pace.turn()
    assert time.monotonic() == 7
