"""Load shedding: new work is refused early while this process has more to do than it can, or nears its memory limit.

New work is any that needs upstream requests; cached responses, lists and health checks are always served. While the
event loop is late a share of the new work is admitted: the share falls by a third with each late check, and rises
slowly otherwise (additive increase, multiplicative decrease), so that what is admitted stays near what can be done in
time. Above the memory limit nothing is admitted.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import structlog

from proxy import config, errors
from proxy.telemetry.metrics import Metrics

CHECK_SECONDS = 0.1  # between two readings of lag and memory
LATE_CHECKS = 3  # in a row that begin overload: a single pause is not overload
# LEAST admits enough to notice that the overload is over.
FALL, RISE, LEAST = 2 / 3, 0.02, 0.02  # of the admitted share, a check
# Two thresholds, so that overload does not begin and end with every check.
MEMORY_BEGIN, MEMORY_END = 0.9, 0.8  # of the limit
EARLY_ADMISSIONS_MAX = 1_000  # admitted and not yet parsed
RETRY_SECONDS = 1  # Retry-After
MESSAGE = "the service is overloaded; try again shortly"

STATM = Path("/proc/self/statm")

log = structlog.get_logger()


def memory_used() -> int:
    """Return bytes of resident memory of this process; 0 where the system has no statm (it is Linux's)."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class LoadShedding:
    """Admits or refuses new work. `memory` reads the bytes in use."""

    def __init__(
        self, settings: config.OverloadSettings, metrics: Metrics, memory: Callable[[], int] | None = None
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._memory = memory or memory_used
        self._share, self._credit = 1.0, 0.0
        self._late = 0
        self._early_admissions = 0
        self._full = False
        self.overloaded = False
        self._refused = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch lag and memory from now on."""
        if self._settings.lag_seconds or self._settings.memory_bytes:
            self._task = asyncio.create_task(self._watch(), name="lag and memory of this process")

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def refusal(self) -> errors.Overloaded | None:
        """Return why new work is refused; None admits it."""
        if not self.overloaded:
            return None
        if self._early_admissions:
            self._early_admissions -= 1
            return None
        return None if self.admits() else errors.Overloaded(MESSAGE, retry_after=RETRY_SECONDS)

    def admits(self) -> bool:
        """Return whether new work is admitted under overload; count it where it is not."""
        # The share accumulates to whole requests: evenly spread, without a random number for each.
        self._credit += 0.0 if self._full else self._share
        if self._credit >= 1:
            self._credit -= 1
            return True
        self._refused += 1
        self._metrics.overload_refused[()] += 1
        return False

    def admit_unparsed(self) -> None:
        """Admit a request before it is parsed. If it needs no new work, the admission is left for another; their
        number is bounded."""
        self._early_admissions = min(self._early_admissions + 1, EARLY_ADMISSIONS_MAX)

    def check(self, lag: float) -> None:
        """Adapt to a lag of the event loop, in seconds, and to the memory in use."""
        self._metrics.event_loop_lag[()] = lag
        self._check_lag(lag)
        self._check_memory()
        overloaded = self._full or self._share < 1
        if overloaded != self.overloaded:
            self.overloaded = overloaded
            self._report(lag)
        self._metrics.overload[()] = float(overloaded)

    def _check_lag(self, lag: float) -> None:
        limit = self._settings.lag_seconds
        if limit and lag > limit:
            self._late += 1
            # Once work is being shed, one late check is enough to shed more.
            if self._late >= LATE_CHECKS or self._share < 1:
                self._share = max(LEAST, self._share * FALL)
        else:
            self._late = 0
            self._share = min(1.0, self._share + RISE)

    def _check_memory(self) -> None:
        if limit := self._settings.memory_bytes:
            used = self._memory() / limit
            self._full = used >= (MEMORY_END if self._full else MEMORY_BEGIN)

    def _report(self, lag: float) -> None:
        if self.overloaded:
            self._refused, self._early_admissions, self._credit = 0, 0, 0.0
            reason = "memory" if self._full else "event loop lag"
            memory = self._memory() // 1_000_000
            log.warning("overload began", reason=reason, lag_seconds=round(lag, 3), memory_mb=memory)
        else:
            log.warning("overload ended", refused=self._refused)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + CHECK_SECONDS
            await asyncio.sleep(CHECK_SECONDS)
            self.check(max(0.0, loop.time() - due))
