"""Tests of work that is repeated in the background."""

import asyncio
import json

import pytest
from support import log_lines

from proxy.kit.tasks import PeriodicTask

SECONDS = 20.0  # that a condition may take before its test fails


class Work:
    """Counts its calls, and fails as told."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.calls = self.finished = 0
        self.error = error
        self.going_on = asyncio.Event()
        self.going_on.set()

    async def __call__(self) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        await self.going_on.wait()
        self.finished += 1

    async def called(self, count: int) -> None:
        async with asyncio.timeout(SECONDS):
            while self.calls < count:
                await asyncio.sleep(0)


@pytest.mark.parametrize("error,events", [(KeyError, {"background task failed"}), (ConnectionError, set())])
async def test_error_does_not_end_the_work(error: type[Exception], events: set[str]) -> None:
    work = Work(error)
    task = PeriodicTask("broken work", work, 0.0, logged=OSError)
    with log_lines.collected() as stream:
        task.start()
        await work.called(3)
        await task.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["event"] for line in lines} == events
    assert all((line["task"], line["error"].split(":")[0]) == ("broken work", "KeyError") for line in lines)


async def test_delay_comes_before_the_first_call() -> None:
    work = Work()
    task = PeriodicTask("later", work, 0.0, delay=3600)
    task.start()
    for _ in range(100):
        await asyncio.sleep(0)
    await task.close()
    assert work.calls == 0


@pytest.mark.parametrize("grace,finished", [(0.0, 0), (SECONDS, 1), (None, 1)])
async def test_work_under_way_has_a_time_to_finish(grace: float | None, finished: int) -> None:
    work = Work()
    work.going_on.clear()
    task = PeriodicTask("slow", work, 0.0)
    task.start()
    await work.called(1)
    asyncio.get_running_loop().call_later(0.05, work.going_on.set)
    await task.close(grace)
    assert (work.calls, work.finished) == (1, finished)
    assert [each for each in asyncio.all_tasks() if each.get_name() == "slow"] == []


async def test_task_that_was_not_started_is_closed() -> None:
    await PeriodicTask("idle", Work(), 1.0).close()
