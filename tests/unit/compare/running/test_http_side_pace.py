"""Turns at a side, by a clock that moves only when somebody waits."""

import asyncio
from typing import Any

from proxy.compare.running.http_side import RequestPacer
from proxy.kit import clock


def waiting(time: Any) -> Any:
    async def sleep(seconds: Any) -> None:
        time.advance(seconds)

    return sleep


async def test_turns_are_evenly_spread() -> None:
    time = clock.ManualClock(0.0)
    pace, began = RequestPacer(4, time, waiting(time)), []
    for _ in range(5):
        await pace.turn()
        began.append(time.monotonic())
    assert began == [0.0, 0.25, 0.5, 0.75, 1.0]


async def test_what_was_not_used_is_not_made_up_for() -> None:
    time = clock.ManualClock(0.0)
    pace = RequestPacer(2, time, waiting(time))
    await pace.turn()
    time.advance(100)
    await pace.turn()
    await pace.turn()
    assert time.monotonic() == 100.5


async def test_those_who_come_together_have_turns_of_their_own() -> None:
    time, slept = clock.ManualClock(0.0), []

    async def sleep(seconds: Any) -> None:
        slept.append(seconds)

    pace = RequestPacer(2, time, sleep)
    await asyncio.gather(*(pace.turn() for _ in range(4)))
    assert slept == [0.5, 1.0, 1.5]


async def test_without_a_rate_nobody_waits() -> None:
    time = clock.ManualClock(0.0)
    pace = RequestPacer(0, time, waiting(time))
    for _ in range(100):
        await pace.turn()
    assert time.monotonic() == 0.0


async def test_a_side_that_asks_for_it_is_left_alone() -> None:
    time = clock.ManualClock(0.0)
    pace = RequestPacer(0, time, waiting(time))
    pace.hold(7)
    await pace.turn()
    assert time.monotonic() == 7
