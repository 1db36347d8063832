"""Work in tasks: repeated in the background, and shared by all that ask for it."""

import asyncio
import json
from typing import Any

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


class Work:
    """Work that runs until it is let go, and counts how often it was begun."""

    def __init__(self, outcome: str | Exception = "done") -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self.outcome = outcome

    async def __call__(self) -> str:
        self.begun += 1
        await self.go.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def flight() -> tasks.SingleFlight[str, str]:
    return tasks.SingleFlight("test flight")


async def callers(flight: Any, work: Any, count: Any, key: str = "key") -> Any:
    tasks = [asyncio.create_task(flight.run(key, work)) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_callers_of_one_key_share_one_execution(flight: tasks.SingleFlight[str, str]) -> None:
    work = Work()
    tasks = await callers(flight, work, 5)
    work.go.set()
    assert await asyncio.gather(*tasks) == ["done"] * 5
    assert work.begun == 1


async def test_result_is_not_kept_afterwards(flight: tasks.SingleFlight[str, str]) -> None:
    work = Work()
    work.go.set()
    await flight.run("key", work)
    await flight.run("key", work)
    assert work.begun == 2


async def test_error_is_shared_and_not_kept(flight: tasks.SingleFlight[str, str]) -> None:
    work = Work(ValueError("no"))
    tasks = await callers(flight, work, 3)
    work.go.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["no"] * 3
    work.outcome = "better"
    assert await flight.run("key", work) == "better"


@pytest.mark.parametrize("leaving", [0, 1])
async def test_cancelled_caller_does_not_cancel_the_execution(
    flight: tasks.SingleFlight[str, str], leaving: int
) -> None:
    work = Work()
    tasks = await callers(flight, work, 2)
    tasks[leaving].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[leaving]
    work.go.set()
    assert await tasks[1 - leaving] == "done"
    assert work.begun == 1


async def test_error_without_callers_is_not_reported_as_unhandled(
    flight: tasks.SingleFlight[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(ValueError("nobody hears"))
    (task,) = await callers(flight, work, 1)
    task.cancel()
    work.go.set()
    await asyncio.sleep(0.01)
    assert task.cancelled()
    assert not caplog.records
    work.outcome = "again"
    assert await flight.run("key", work) == "again"


async def test_close_cancels_executions(flight: tasks.SingleFlight[str, str]) -> None:
    running = flight.start("running", Work())
    await asyncio.sleep(0)
    unstarted = flight.start("unstarted", Work())
    await flight.close()
    assert running.cancelled()
    assert unstarted.cancelled()
    work = Work()
    work.go.set()
    assert await flight.run("running", work) == "done"
