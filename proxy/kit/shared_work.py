"""Many callers, one piece of work, done by whoever came first: no task is made for a caller that stays alone.

For the hot path, where a task would cost more than it saves; single_flight.py is for work that must outlive its caller.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SharedWork(Generic[K, V]):
    """Work under way, by key. Keeps nothing once it is done."""

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Future[V]] = {}

    async def run(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        """The outcome of the work under way for `key`, or of `work` when there is none. Errors are shared.

        Where the first caller is cancelled, the next one that waits does the work instead.
        """
        while (leader := self._under_way.get(key)) is not None:
            await asyncio.wait((leader,))
            if not leader.cancelled():
                return leader.result()
        outcome = self._under_way[key] = asyncio.get_running_loop().create_future()
        try:
            result = await work()
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        except Exception as error:
            outcome.set_exception(error)
            outcome.exception()  # looked at here: an error that nobody shares is not an unhandled one
            raise
        else:
            outcome.set_result(result)
            return result
        finally:
            del self._under_way[key]
