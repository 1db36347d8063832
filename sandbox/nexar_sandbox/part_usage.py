"""Part usage by application and calendar month (UTC).

The query service checks it before a request and records parts after it (contract graphql.md §6). Of a limit for a
lifetime the parts of all months are used.
"""

import asyncio
import contextlib
import datetime
import logging
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from nexar_sandbox import applications, faults, state
from nexar_sandbox.kit import clock as clocks

_log = logging.getLogger(__name__)

# Seconds between two writes to the state file.
WRITE_INTERVAL = 0.5


class PartUsage:
    """Counters by application and month. Requests are admitted while usage is below the limit, so the last may exceed
    it.

    `quota` returns the active quota fault. The state file is written in the background, so no query waits for it.
    """

    def __init__(
        self,
        clock: clocks.Clock,
        quota: Callable[[], faults.QuotaFault | None] = lambda: None,
        state_store: state.StateStore | None = None,
    ) -> None:
        self._clock, self._quota = clock, quota
        self._state_store = state_store or state.StateStore()
        self._rows = self._state_store.rows("usage", int)
        self._parts_by_month = {_month_and_application(key): parts for key, parts in self._rows.items()}
        self._unwritten: set[tuple[str, str]] = set()

    def used(self, application_id: str) -> int:
        """Parts returned to the application in this calendar month."""
        return self._parts_by_month.get((self.month, application_id), 0)

    def used_in_period(self, application: applications.SandboxApplication) -> int:
        """Parts that count towards the application's limit: this month's, or all."""
        id_ = application.application_id
        earlier = self.history(id_) if application.period == "lifetime" else []
        return self.used(id_) + sum(parts for _, parts in earlier)

    def history(self, application_id: str) -> list[tuple[str, int]]:
        """Usage of earlier months, latest first; months as `2026-11`."""
        months = [(month, parts) for (month, id_), parts in self._parts_by_month.items() if id_ == application_id]
        return sorted((month for month in months if month[0] != self.month), reverse=True)

    def limit(self, application: applications.SandboxApplication) -> int:
        """Part limit: the plan's, unless a fault lowers it."""
        quota = self._quota()
        if quota is None:
            return application.part_limit
        return min(application.part_limit, self.used_in_period(application) if quota.at is None else quota.at)

    def is_exhausted(self, application: applications.SandboxApplication) -> bool:
        return self.used_in_period(application) >= self.limit(application)

    def record(self, application_id: str, parts: int) -> None:
        key = self.month, application_id
        self._parts_by_month[key] = self._parts_by_month.get(key, 0) + parts
        self._unwritten.add(key)

    @property
    def month(self) -> str:
        """The current month, as `2026-11`."""
        return datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC).strftime("%Y-%m")

    def write(self) -> None:
        """Write changes to the state file. Failures are logged and retried."""
        try:
            with self._state_store.transaction():
                for month, application_id in self._unwritten:
                    # The sum, and not what has been added: writing it twice does no harm.
                    self._rows[f"{month}/{application_id}"] = self._parts_by_month[month, application_id]
        except state.StateError as error:
            _log.warning("part usage was not written to the state file: %s", error)
        else:
            self._unwritten.clear()

    async def background_writes(self, _app: web.Application) -> AsyncIterator[None]:
        """Write in the background while the sandbox runs, and at its end."""
        task = (
            asyncio.create_task(self._write_behind(), name="sandbox-part-usage")
            if self._state_store.is_persistent
            else None
        )
        yield
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self.write()

    async def _write_behind(self) -> None:
        while True:
            await asyncio.sleep(WRITE_INTERVAL)
            if self._unwritten:
                self.write()


def _month_and_application(key: str) -> tuple[str, str]:
    month, _, application_id = key.partition("/")
    return month, application_id
