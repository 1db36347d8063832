"""Controller of shadowing: every second it reads the switch and the epoch from the store, and saves the tally.

A store that cannot be reached changes nothing: the last state holds, and the tally is saved later.
"""

import asyncio
import contextlib

import structlog

from proxy import errors
from proxy.compare.shadow.daily_budget import DailyBudget
from proxy.compare.shadow.judge_client import JudgeClient
from proxy.compare.shadow.queue import ShadowQueue
from proxy.compare.shadow.results import ResultSlot
from proxy.kit.clock import Clock

LOOK_SECONDS = 1.0
NOTE_SECONDS = 5.0  # between two notes
LAST_SECONDS = 2.0  # for what is noted at the end

log = structlog.get_logger()


class ShadowController:
    """Owns the task that looks. Closed before the store is."""

    def __init__(
        self,
        shadow: ShadowQueue,
        judge: JudgeClient,
        gathering: ResultSlot,
        budget: DailyBudget,
        clock: Clock,
        *,
        every: float = LOOK_SECONDS,
    ) -> None:
        self._shadow = shadow
        self._judge = judge
        self._gathering = gathering
        self._budget = budget
        self._clock = clock
        self._every = every
        self._due = clock.monotonic()
        self._epoch: str | None = None
        self._noted = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look, and go on looking. On, where the store cannot say."""
        await self._shadow.switch(True)
        await self.look()
        self._task = asyncio.create_task(self._keep_looking(), name="shadow")

    async def close(self) -> None:
        """End everything, and note what was gathered."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._rest()
        with contextlib.suppress(errors.StoreUnavailable):
            await self._gathering.close()
        await self._budget.close()

    async def look(self) -> None:
        """One round."""
        with contextlib.suppress(errors.StoreUnavailable):  # quota.py tells of it
            told = await self._gathering.look()
            if told.epoch != self._epoch or not self._gathering.placed:
                await self._judge.close()  # what it has gathered is of no use, or somebody else's by now
            self._epoch = told.epoch
            await self._budget.look()
            if told.on:
                await self._shadow.switch(True)
                if self._clock.monotonic() >= self._due:
                    await self._note()
            else:
                await self._rest()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.look()
            except Exception as error:  # a look that fails must not be the last one
                log.error("shadow state refresh failed", exc_info=error)

    async def _rest(self) -> None:
        """Off: nothing runs, and no process is kept. Noted first: a process that is cut off has nothing to tell."""
        with contextlib.suppress(errors.BridgeError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._note()
        await self._shadow.switch(False)
        await self._judge.close()

    async def _note(self) -> None:
        """Keep what was gathered, where there is more of it."""
        judged = self._judge.judged
        if judged == self._noted:
            return
        self._due = self._clock.monotonic() + NOTE_SECONDS
        text = await self._judge.gathered()
        if text is not None:
            await self._gathering.put(text)
            self._noted = judged
