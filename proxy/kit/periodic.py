"""Work that a process repeats in the background until it stops."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger()


class PeriodicTask:
    """Calls `work` every `seconds`, the first time after `delay` seconds.

    An error is logged and does not end the task: it may be over the next time. Those of the type `logged` have been
    logged where they came from.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        seconds: float,
        *,
        delay: float = 0.0,
        logged: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> None:
        self._name, self._work, self._seconds, self._delay, self._logged = name, work, seconds, delay, logged
        self._is_closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._repeat(), name=self._name)

    async def close(self, grace: float | None = 0.0) -> None:
        """End the task. Work under way has `grace` seconds to finish before it is cancelled; None: as long as it
        takes."""
        self._is_closing.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=grace)
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def call(self) -> None:
        """Do the work once, out of turn."""
        try:
            await self._work()
        except self._logged:
            pass
        except Exception as error:
            log.error("background task failed", task=self._name, exc_info=error)

    async def _repeat(self) -> None:
        pause = self._delay
        while not await self._is_closed_within(pause):
            await self.call()
            pause = self._seconds

    async def _is_closed_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._is_closing.wait()
        except TimeoutError:
            return False
