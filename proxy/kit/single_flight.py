"""Single flight in tasks of its own: concurrent callers with the same key share one execution.

Used for tokens and lists, whose work must outlive the caller.
Not a cache: an entry is removed when its execution ends.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Executions in flight by key. `name` is the name of their tasks, which logs may show."""

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
