"""Broadcast of comment events to the subscribers of the collaboration service."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from nexar_sandbox.design import records

# Events that a subscriber may be behind; older ones are dropped.
MAX_QUEUED = 1000


class CommentEvents:
    """Broadcasts comment events to all current subscribers. A slow subscriber loses its oldest events."""

    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[records.Record | None]] = set()

    def publish(self, event: records.Record | None) -> None:
        """Send an event to all current subscribers; None ends their streams."""
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    @contextmanager
    def subscribe(self) -> Iterator[AsyncIterator[records.Record]]:
        """Yield the events from now on, until the block ends or the service stops."""
        queue: asyncio.Queue[records.Record | None] = asyncio.Queue(MAX_QUEUED)
        self._subscribers.add(queue)
        try:
            yield _queued(queue)
        finally:
            self._subscribers.discard(queue)


async def _queued(queue: asyncio.Queue[records.Record | None]) -> AsyncIterator[records.Record]:
    while (event := await queue.get()) is not None:
        yield event
