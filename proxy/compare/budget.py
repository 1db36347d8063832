"""Parts that a run may spend. The worst case of a call is held before it is asked, its real cost booked afterwards."""

import asyncio


class Budget:
    """`limit` None is no limit; `spent` is what a run that goes on has spent before."""

    def __init__(self, limit: int | None, spent: int = 0) -> None:
        self.limit = limit
        self.spent = spent
        self._held = 0
        self._changed = asyncio.Condition()

    async def hold(self, parts: int) -> bool:
        """Hold the most that a call can cost. False where that can never be covered; while others that are under way
        may yet cost less than they hold, that is waited for."""
        async with self._changed:
            while not self._covers(parts):
                if not self._held or not self._could_cover(parts):
                    return False
                await self._changed.wait()
            self._held += parts
            return True

    async def settle(self, held: int, cost: int) -> None:
        """The call is over: what it held is free, and what it cost is spent."""
        async with self._changed:
            self._held -= held
            self.spent += cost
            self._changed.notify_all()

    def _covers(self, parts: int) -> bool:
        return self.limit is None or not parts or self.spent + self._held + parts <= self.limit

    def _could_cover(self, parts: int) -> bool:
        return self.limit is None or self.spent + parts <= self.limit
