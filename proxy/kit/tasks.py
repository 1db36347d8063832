"""Background tasks: work that a process repeats until it stops, and single flight."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

import structlog

K = TypeVar("K")
V = TypeVar("V")

log = structlog.get_logger()


class PeriodicTask:
    """Calls `work` every `seconds`, the first time after `delay` seconds.

    An error is logged and does not end the task: it may be over the next time. Those of the type `logged` have been
    logged where they came from.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        seconds: float,
        *,
        delay: float = 0.0,
        logged: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> None:
        self._name, self._work, self._seconds, self._delay, self._logged = name, work, seconds, delay, logged
        self._is_closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._repeat(), name=self._name)

    async def close(self, grace: float | None = 0.0) -> None:
        """End the task. Work under way has `grace` seconds to finish before it is cancelled; None: as long as it
        takes."""
        self._is_closing.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=grace)
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def call(self) -> None:
        """Do the work once, out of turn."""
        try:
            await self._work()
        except self._logged:
            pass
        except Exception as error:
            log.error("background task failed", task=self._name, exc_info=error)

    async def _repeat(self) -> None:
        pause = self._delay
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._is_closing.wait()
                return
            await self.call()
            pause = self._seconds


class SingleFlight(Generic[K, V]):
    """Executions in flight by key, in tasks of their own: callers with the same key share one, which outlives
    them. Not a cache: an entry goes when its execution ends. `name` is that of the tasks, which logs may show."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, V]], seconds: float | None = None) -> V:
        """Return the result of the execution in flight for `key`, or start `work` if there is none. Errors are shared.

        Raises TimeoutError after `seconds`. Neither that nor cancelling a caller ends the execution.
        """
        task = self.start(key, work)
        # Not `await task`, which would cancel it together with this caller.
        done, _ = await asyncio.wait((task,), timeout=seconds)
        if not done:
            raise TimeoutError
        return task.result()

    def start(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> asyncio.Task[V]:
        """Return the task for `key`, started if there is none, for a caller that does not wait."""
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(work(), name=self._name)
            self._tasks[key].add_done_callback(lambda task: self._forget(key, task))
        return self._tasks[key]

    async def close(self) -> None:
        """Cancel all executions and wait for their end."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: K, task: asyncio.Task[V]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it if all callers are gone
