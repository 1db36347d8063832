"""Waiting for keys that other processes are fetching: one read every 20 ms serves all that wait."""

import asyncio
from collections.abc import Sequence

from proxy.store.protocol import Begin, Busy
from proxy.store.store import Store

READ_SECONDS = 0.02


class Waiting:
    """Wants of this process that are busy."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[tuple[Begin, asyncio.Future[None]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def until_free(self, begin: Begin) -> None:
        """Return when a want of a `begin` is busy no more. Raises StoreUnavailable."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((begin, future))
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="busy")
        await future

    async def _read(self) -> None:
        while self._waiting:
            await asyncio.sleep(READ_SECONDS)
            waiting = [*self._waiting]
            try:
                outcomes = await self._store.quote([begin for begin, _ in waiting])
            except Exception as error:
                self._end(waiting, error)
                continue
            free = [any(not isinstance(each, Busy) for each in of_begin) for of_begin in outcomes]
            self._end([each for each, is_free in zip(waiting, free, strict=True) if is_free], None)

    def _end(self, waiting: Sequence[tuple[Begin, asyncio.Future[None]]], error: Exception | None) -> None:
        for each in waiting:
            self._waiting.remove(each)
            if not each[1].done():
                each[1].set_result(None) if error is None else each[1].set_exception(error)
