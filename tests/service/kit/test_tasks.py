"""Work in tasks, repeated in the background; shared by all that ask for it: test_free_operations."""

import asyncio
import json

import pytest
from support import log_lines

from proxy.kit import tasks

SECONDS = 20.0  # that a condition may take before its test fails


class RepeatedWork:
    """Counts its calls, and fails as told."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.calls = self.finished = 0
        self.error = error
        self.going_on = asyncio.Event()

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
    work = RepeatedWork(error)
    with log_lines.collected() as stream:
        async with tasks.repeated("broken work", work, 0.0, OSError):
            await work.called(3)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["event"] for line in lines} == events
    assert all((line["task"], line["error"].split(":")[0]) == ("broken work", "KeyError") for line in lines)


async def test_a_pause_comes_before_the_first_call() -> None:
    work = RepeatedWork()
    async with tasks.repeated("later", work, 3600):
        for _ in range(100):
            await asyncio.sleep(0)
    assert work.calls == 0


async def test_work_under_way_is_finished() -> None:
    work = RepeatedWork()
    async with tasks.repeated("slow", work, 0.0):
        await work.called(1)
        asyncio.get_running_loop().call_later(0.05, work.going_on.set)
    assert (work.calls, work.finished) == (1, 1)
    assert [each for each in asyncio.all_tasks() if each.get_name() == "slow"] == []


async def test_error_of_an_execution_without_callers_is_not_reported_as_unhandled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flight, go = tasks.SingleFlight[str, None]("test flight"), asyncio.Event()

    async def fail() -> None:
        await go.wait()
        raise ValueError("nobody hears")

    leaving = asyncio.create_task(flight.run("key", fail))
    await asyncio.sleep(0.01)
    leaving.cancel()
    go.set()
    await asyncio.sleep(0.01)
    assert leaving.cancelled()
    assert not caplog.records
