"""Many callers, one transaction: what is wanted while one is under way goes together into the next.

A lone caller's is made at once, in its own task. Used where writing costs more by the time than by the piece.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class GroupCommit(Generic[T, R]):
    """`commit` is given pieces in the order they came, and answers for each. An error of it is the error of all."""

    def __init__(self, name: str, commit: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._name = name
        self._commit = commit
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None
        self._busy = False

    async def run(self, piece: T) -> R:
        """The answer for a piece, once it is committed. A caller that is cancelled takes nothing back."""
        if not self._busy:
            return await self._alone(piece)
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((piece, answer))
        return await answer

    async def close(self) -> None:
        """Wait until every group is committed. A lone piece is its caller's to wait for."""
        while self._task is not None:
            await asyncio.wait((self._task,))

    async def _alone(self, piece: T) -> R:
        self._busy = True
        try:
            return (await self._commit([piece]))[0]
        finally:
            self._next()

    def _next(self) -> None:
        self._busy = bool(self._waiting)
        self._task = asyncio.create_task(self._together(), name=self._name) if self._busy else None

    async def _together(self) -> None:
        group, self._waiting = self._waiting, []
        try:
            answers = await self._commit([piece for piece, _ in group])
        except Exception as error:  # it belongs to those who wait
            for _, waiting in group:
                if not waiting.done():
                    waiting.set_exception(error)
                    waiting.exception()
        else:
            for (_, waiting), answer in zip(group, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)
        self._next()
