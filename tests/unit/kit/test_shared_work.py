"""Pieces of work that several callers want: each is done once, by whoever came first."""

import asyncio

import pytest

from proxy.kit.shared_work import SharedWork


class Worker:
    """Does pieces when it is let go, and notes each."""

    def __init__(self) -> None:
        self.shared: SharedWork[str, str] = SharedWork()
        self.done: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def want(self, *keys: str) -> tuple[list[str], int]:
        async def work(positions: list[int]) -> list[str]:
            self.done.append([keys[n] for n in positions])
            await self.gate.wait()
            if self.error:
                raise self.error
            return [keys[n].upper() for n in positions]

        return await self.shared.run(keys, work)

    async def start(self, *keys: str) -> "asyncio.Task[tuple[list[str], int]]":
        """A caller that is on its way."""
        task = asyncio.create_task(self.want(*keys))
        await asyncio.sleep(0)
        return task


@pytest.fixture
def worker() -> Worker:
    return Worker()


async def test_a_lone_caller_does_its_pieces_in_one_go(worker: Worker) -> None:
    assert await worker.want("a", "b") == (["A", "B"], 0)
    assert worker.done == [["a", "b"]]


async def test_a_piece_that_is_wanted_twice_is_done_once(worker: Worker) -> None:
    assert await worker.want("a", "b", "a") == (["A", "B", "A"], 1)
    assert worker.done == [["a", "b"]]


async def test_what_is_under_way_is_waited_for_and_the_rest_done(worker: Worker) -> None:
    worker.gate.clear()
    first = await worker.start("a", "b")
    second = await worker.start("c", "b", "a")
    third = await worker.start("a")
    worker.gate.set()
    assert await asyncio.gather(first, second, third) == [(["A", "B"], 0), (["C", "B", "A"], 2), (["A"], 1)]
    assert worker.done == [["a", "b"], ["c"]]


async def test_nothing_is_kept_once_it_is_done(worker: Worker) -> None:
    await worker.want("a")
    await worker.want("a")
    assert worker.done == [["a"], ["a"]]


async def test_an_error_is_everybodys_and_the_next_caller_tries_again(worker: Worker) -> None:
    worker.gate.clear()
    worker.error = ValueError("no")
    callers = [await worker.start("a") for _ in range(3)]
    worker.gate.set()
    failed = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(error) for error in failed] == ["no"] * 3
    worker.error = None
    assert await worker.want("a") == (["A"], 0)
    assert worker.done == [["a"], ["a"]]


async def test_who_waits_does_the_work_of_one_that_was_cancelled(worker: Worker) -> None:
    worker.gate.clear()
    first = await worker.start("a", "b")
    second = await worker.start("c", "a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    worker.gate.set()
    assert await second == (["C", "A"], 0)
    assert worker.done == [["a", "b"], ["c"], ["a"]]


async def test_a_caller_that_is_cancelled_while_it_waits_leaves_the_others_alone(worker: Worker) -> None:
    worker.gate.clear()
    first, second, third = [await worker.start("a") for _ in range(3)]
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    worker.gate.set()
    assert await asyncio.gather(first, third) == [(["A"], 0), (["A"], 1)]
