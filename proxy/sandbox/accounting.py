"""Parts used, by application and calendar month (UTC).

The query service asks before a request and books after it; the admin queries show the figures (contract
graphql.md §6). What was used in a past month is forgotten: the count starts again at 0 on the 1st.
"""

import datetime
from collections.abc import Callable

from proxy.kit import clock as clocks
from proxy.sandbox import accounts, faults


class Accounting:
    """A counter an application. A request passes while it is below the limit, so the last may go over.

    `quota` says whether a fault cuts the limits, at this moment.
    """

    def __init__(self, clock: clocks.Clock, quota: Callable[[], faults.Quota | None] = lambda: None) -> None:
        self._clock, self._quota = clock, quota
        self._month = self._this_month()
        self._used: dict[str, int] = {}

    def used(self, application_id: str) -> int:
        """Parts returned to the application in this calendar month."""
        return self._counters().get(application_id, 0)

    def limit(self, account: accounts.Account) -> int:
        """Parts that the account may use in a month: its plan's, unless a fault cuts it."""
        quota = self._quota()
        if quota is None:
            return account.part_limit
        return min(account.part_limit, self.used(account.application_id) if quota.at is None else quota.at)

    def used_up(self, account: accounts.Account) -> bool:
        """Whether the next request for parts has to be refused."""
        return self.used(account.application_id) >= self.limit(account)

    def book(self, application_id: str, parts: int) -> None:
        """Count `parts` that were returned."""
        self._counters()[application_id] = self.used(application_id) + parts

    def _counters(self) -> dict[str, int]:
        month = self._this_month()
        if month != self._month:
            self._month = month
            self._used.clear()
        return self._used

    def _this_month(self) -> tuple[int, int]:
        today = datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC)
        return today.year, today.month
