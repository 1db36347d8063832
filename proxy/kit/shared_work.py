"""Many callers, one piece of work, done by whoever came first: no task is made for a caller that stays alone.

For the hot path, where a task would cost more than it saves; single_flight.py is for work that must outlive its caller.
A caller brings several pieces, does those that nobody does in one go, and waits for the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SharedWork(Generic[K, V]):
    """Work under way, by key, with those who wait for it. Keeps nothing once it is done."""

    def __init__(self) -> None:
        self._under_way: dict[K, list[asyncio.Future[V]]] = {}

    async def run(self, keys: Sequence[K], work: Callable[[list[int]], Awaitable[Sequence[V]]]) -> tuple[list[V], int]:
        """The outcome for every key, and for how many of them it was somebody else's.

        `work` is given the positions of the keys that nobody works at, and answers in their order; its errors are
        shared. Where who works at a key is cancelled, it is worked at anew.
        """
        joined = {n: self._join(key) for n, key in enumerate(keys) if not self._claim(key)}
        if not joined:
            return list(await self._lead(keys, work, list(range(len(keys))))), 0
        mine = [n for n in range(len(keys)) if n not in joined]
        outcomes = dict(zip(mine, await self._lead(keys, work, mine), strict=True)) if mine else {}
        left = []
        for n, outcome in joined.items():
            await asyncio.wait((outcome,))
            if outcome.cancelled():
                left.append(n)
            else:
                outcomes[n] = outcome.result()
        if left:
            again, _ = await self.run([keys[n] for n in left], lambda some: work([left[n] for n in some]))
            outcomes |= dict(zip(left, again, strict=True))
        return [outcomes[n] for n in range(len(keys))], len(joined) - len(left)

    def _claim(self, key: K) -> bool:
        """Whether the work is the caller's from now on."""
        if key in self._under_way:
            return False
        self._under_way[key] = []
        return True

    def _join(self, key: K) -> asyncio.Future[V]:
        outcome: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self._under_way[key].append(outcome)
        return outcome

    async def _lead(
        self, keys: Sequence[K], work: Callable[[list[int]], Awaitable[Sequence[V]]], mine: list[int]
    ) -> Sequence[V]:
        try:
            outcomes = await work(mine)
        except BaseException as error:
            for n in mine:
                for waiting in self._under_way.pop(keys[n]):
                    _pass_on(waiting, error)
            raise
        for n, outcome in zip(mine, outcomes, strict=True):
            for waiting in self._under_way.pop(keys[n]):
                if not waiting.done():
                    waiting.set_result(outcome)
        return outcomes


def _pass_on(outcome: asyncio.Future[V], error: BaseException) -> None:
    """An error is everybody's; a caller that was cancelled leaves the work to the others."""
    if outcome.done():
        return
    if isinstance(error, Exception):
        outcome.set_exception(error)
        outcome.exception()  # looked at here: whoever waits may be gone, and then it is nobody's fault
    else:
        outcome.cancel()
