"""Known answer? What the service said a moment ago, and what is being asked right now.

Identical operations of one application that are under way are one; answers are kept for seconds, in memory, and not
at all when the configuration says so (the vendor's terms limit storing). Nothing here knows what an answer means.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import cachetools

from proxy.kit.clock import Clock
from proxy.kit.shared_work import SharedWork

Key = tuple[str, bytes]


class Answers:
    """Short-lived answers by application and operation. `seconds` 0 keeps none, sharing calls under way still."""

    def __init__(self, seconds: float, entries: int, clock: Clock) -> None:
        self._under_way: SharedWork[Key, Any] = SharedWork()
        self._kept: cachetools.TTLCache[Key, Any] | None = (
            cachetools.TTLCache(entries, seconds, timer=clock.monotonic) if seconds > 0 and entries > 0 else None
        )

    def known(self, key: Key) -> Any | None:
        """The answer that was kept, if any."""
        return self._kept.get(key) if self._kept is not None else None

    async def get(self, key: Key, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The answer, asked for at most once however many want it."""
        answer = await self._under_way.run(key, ask)
        if self._kept is not None:
            self._kept[key] = answer
        return answer
