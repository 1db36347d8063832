"""Controller of shadowing: every second it reads the switch and the epoch from the store, and saves the tally.

While the store is unreachable, the last state applies, and the tally is saved later.
"""

import asyncio
import contextlib

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.shadow.daily_budget import DailyBudget
from proxy.shadow.judge_client import JudgeClient
from proxy.shadow.queue import ShadowQueue
from proxy.shadow.results import ResultSlot

LOOK_SECONDS = 1.0
RENEWAL_SECONDS = 3600.0
NOTE_SECONDS = 5.0  # minimum interval of saving the tally
LAST_SECONDS = 2.0  # time limit of the last save

log = structlog.get_logger()


class ShadowController:
    """Controller task. Must be closed before the store."""

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
        self._due = clock.monotonic()
        self._epoch: str | None = None
        self._noted = 0
        self._renewal = clock.monotonic() + RENEWAL_SECONDS
        self._refreshing = PeriodicTask("shadow", self.refresh, every, delay=every)

    async def start(self) -> None:
        """Refresh, then continue periodically. Shadowing is on while the store is unreachable."""
        await self._shadow.switch(True)
        await self.refresh()
        self._refreshing.start()

    async def close(self) -> None:
        await self._refreshing.close()
        await self._rest()
        with contextlib.suppress(errors.StoreUnavailable):
            await self._gathering.close()
        await self._budget.close()

    async def refresh(self) -> None:
        with contextlib.suppress(errors.StoreUnavailable):  # the quota logs an unreachable store
            control = await self._gathering.refresh()
            if control.epoch != self._epoch or not self._gathering.placed:
                await self._judge.close()  # its tally is of an old epoch, or of a slot that another worker may hold now
            self._epoch = control.epoch
            await self._budget.refresh()
            if control.on:
                await self._shadow.switch(True)
                if self._clock.monotonic() >= self._due:
                    await self._note()
            else:
                await self._rest()

    async def _rest(self) -> None:
        """Stop the tasks and the judge process. The tally is saved first: a process that is stopped loses it."""
        with contextlib.suppress(errors.BridgeError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._note()
        await self._shadow.switch(False)
        await self._judge.close()

    async def _note(self) -> None:
        """Save the tally if it has grown, and once an hour, because its samples end."""
        judged, now = self._judge.judged, self._clock.monotonic()
        if judged == self._noted and now < self._renewal:
            return
        self._renewal = now + RENEWAL_SECONDS
        self._due = self._clock.monotonic() + NOTE_SECONDS
        text = await self._judge.tally_text()
        if text is not None:
            await self._gathering.put(text)
            self._noted = judged
