"""Comment events, from whoever changes a comment to everybody who listens. Nothing is kept for those who come later."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from proxy.sandbox.design import records

WAITING = 1000


class Events:
    """A listener that does not read loses what is more than WAITING events behind."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[records.Event | None]] = set()

    def tell(self, event: records.Event) -> None:
        """To all who listen now."""
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    def close(self) -> None:
        """End all streams."""
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    @contextmanager
    def listening(self) -> Iterator[AsyncIterator[records.Event]]:
        """The events from now on, until the block ends or the service closes."""
        queue: asyncio.Queue[records.Event | None] = asyncio.Queue(WAITING)
        self._listeners.add(queue)
        try:
            yield _from(queue)
        finally:
            self._listeners.discard(queue)


async def _from(queue: asyncio.Queue[records.Event | None]) -> AsyncIterator[records.Event]:
    while (event := await queue.get()) is not None:
        yield event
