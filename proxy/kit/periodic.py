"""Work that a process repeats in the background until it stops."""

import asyncio
import contextlib
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
        self._name = name
        self._work = work
        self._seconds = seconds
        self._delay = delay
        self._logged = logged
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._repeat(), name=self._name)

    async def close(self, grace: float | None = 0.0) -> None:
        """End the task. Work under way has `grace` seconds to finish before it is cancelled; None: as long as it
        takes."""
        if self._task is None:
            return
        self._closing.set()
        await asyncio.wait((self._task,), timeout=grace)
        self._task.cancel()
        await asyncio.wait((self._task,))
        self._task = None

    async def call(self) -> None:
        """Do the work once, out of turn."""
        try:
            await self._work()
        except self._logged:
            pass
        except Exception as error:
            log.error("background task failed", task=self._name, exc_info=error)

    async def _repeat(self) -> None:
        await self._pause(self._delay)
        while not self._closing.is_set():
            await self.call()
            await self._pause(self._seconds)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()
