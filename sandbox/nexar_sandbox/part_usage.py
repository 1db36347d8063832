"""Part usage by application and calendar month (UTC).

The query service checks it before a request and records parts after it (contract graphql.md §6). Of a limit for a
lifetime the parts of all months are used.
"""

import datetime
from collections import Counter
from collections.abc import Callable

from nexar_sandbox import applications, clocks, faults


class PartUsage:
    """Counters by application and month. Requests are admitted while usage is below the limit, so the last may exceed
    it. `quota` returns the active quota fault."""

    def __init__(self, clock: clocks.Clock, quota: Callable[[], faults.QuotaFault | None] = lambda: None) -> None:
        self._clock, self._quota = clock, quota
        self._parts_by_month: Counter[tuple[str, str]] = Counter()

    def used(self, application_id: str) -> int:
        """Parts returned to the application in this calendar month."""
        return self._parts_by_month[self.month, application_id]

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
        self._parts_by_month[self.month, application_id] += parts

    @property
    def month(self) -> str:
        """The current month, as `2026-11`."""
        return datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC).strftime("%Y-%m")
