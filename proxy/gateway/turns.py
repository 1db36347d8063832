"""Gathering: what comes in successive turns of the event loop is done in one call.

Nothing waits on a clock: the call is made as soon as a turn has brought nothing further, which for a single request
takes microseconds. Under load turns bring many requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

TURNS_MAX = 8  # under load every turn may bring more


class Gathered(Generic[T, R]):
    """Function of one value that calls `work` with all values of some turns. An error of `work` is that of all."""

    def __init__(self, name: str, work: Callable[[list[T]], Awaitable[Sequence[R]]]) -> None:
        self._name = name
        self._work = work
        self._values: list[tuple[T, asyncio.Future[R]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, value: T) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._values.append((value, future))
        if len(self._values) == 1:
            task = asyncio.create_task(self._do(), name=self._name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _do(self) -> None:
        await quiet(lambda: len(self._values))
        values, self._values = self._values, []
        try:
            results = await self._work([value for value, _ in values])
        except Exception as error:
            for _, future in values:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), result in zip(values, results, strict=True):
                if not future.done():
                    future.set_result(result)
        finally:
            for _, future in values:
                future.cancel()  # has an effect only where the task was cancelled, or has a mistake


async def quiet(size: Callable[[], int]) -> None:
    """Return after a turn in which a size has not grown, or after TURNS_MAX."""
    before = 0
    for _ in range(TURNS_MAX):
        if size() == before:
            return
        before = size()
        await asyncio.sleep(0)
