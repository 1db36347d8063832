"""Many callers, one piece of work, done by whoever came first: no task is made for a caller that stays alone.

For the hot path, where a task would cost more than it saves; single_flight.py is for work that must outlive its caller.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SharedWork(Generic[K, V]):
    """Work under way, by key, with those who wait for it. Keeps nothing once it is done."""

    def __init__(self) -> None:
        self._under_way: dict[K, list[asyncio.Future[V]]] = {}

    async def run(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        """The outcome of the work under way for `key`, or of `work` when there is none. Errors are shared.

        Where the first caller is cancelled, the next one that waits does the work instead.
        """
        while (waiting := self._under_way.get(key)) is not None:
            outcome: asyncio.Future[V] = asyncio.get_running_loop().create_future()
            waiting.append(outcome)
            await asyncio.wait((outcome,))
            if not outcome.cancelled():
                return outcome.result()
        return await self._lead(key, work)

    async def _lead(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        waiting = self._under_way[key] = []
        try:
            result = await work()
        except BaseException as error:
            del self._under_way[key]
            for outcome in waiting:
                _pass_on(outcome, error)
            raise
        del self._under_way[key]
        for outcome in waiting:
            if not outcome.done():
                outcome.set_result(result)
        return result


def _pass_on(outcome: asyncio.Future[V], error: BaseException) -> None:
    """An error is everybody's; a caller that was cancelled leaves the work to the others."""
    if outcome.done():
        return
    if isinstance(error, Exception):
        outcome.set_exception(error)
        outcome.exception()  # looked at here: whoever waits may be gone, and then it is nobody's fault
    else:
        outcome.cancel()
