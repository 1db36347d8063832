"""Background tasks: work that a process repeats until it stops, and single flight."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog

K = TypeVar("K")
V = TypeVar("V")

log = structlog.get_logger()


@asynccontextmanager
async def repeated(
    name: str, work: Callable[[], Awaitable[object]], seconds: float, logged: type[Exception] | tuple[()] = ()
) -> AsyncIterator[None]:
    """Do `work` every `seconds` while the block runs; its end waits for what is under way. An error is logged, unless
    its type is `logged` where it comes from, and ends nothing: it may be over the next time."""
    is_closing = asyncio.Event()

    async def repeat() -> None:
        while True:
            with suppress(TimeoutError):
                # Not wait_for, which sees no event that is set already where `seconds` are 0.
                async with asyncio.timeout(seconds):
                    await is_closing.wait()
                return
            try:
                await work()
            except logged:
                pass
            except Exception as error:
                log.error("background task failed", task=name, exc_info=error)

    task = asyncio.create_task(repeat(), name=name)
    try:
        yield
    finally:
        is_closing.set()
        await asyncio.wait((task,))


@dataclass(eq=False)
class SingleFlight(Generic[K, V]):
    """Executions in flight by key, in tasks of their own: callers with the same key share one, which outlives
    them. Not a cache: an entry goes when its execution ends. `name` is that of the tasks, which logs may show."""

    name: str
    _tasks: dict[K, asyncio.Task[V]] = field(default_factory=dict)

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, V]], seconds: float | None = None) -> V:
        """Return the result or error of the execution in flight for `key`, or start `work` if there is none. Raises
        TimeoutError after `seconds`. Neither that nor cancelling a caller ends the execution."""
        async with asyncio.timeout(seconds):
            return await asyncio.shield(self.start(key, work))

    def start(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> asyncio.Task[V]:
        """Return the task for `key`, started if there is none, for a caller that does not wait."""
        if key not in self._tasks:
            task = self._tasks[key] = asyncio.create_task(work(), name=self.name)
            task.add_done_callback(lambda _: self._tasks.pop(key))
            # Retrieved, so that asyncio does not log it if all callers are gone.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return self._tasks[key]

    async def close(self) -> None:
        """Cancel all executions and wait for their end."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
