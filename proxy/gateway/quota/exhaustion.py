"""Applications of which the service has said that their parts are used up. It is believed until they begin anew; on the
1st of a month for a quarter of an hour, lest a service whose month turns a moment later closes the new one.

Kept in the store, so that no worker and no restart asks in vain; this process learns of the others' within the second
that quota.py takes between two looks. `v3bridge usage --reopen` takes one back.
"""

import math
from datetime import UTC, datetime

import structlog

from proxy import errors
from proxy.gateway.quota.accounts import BillingPeriods, QuotaAccount
from proxy.kit.clock import Clock
from proxy.stores.protocols import ExhaustedQuota, Store

FAR = 253_370_764_800.0  # the year 9999: the end of a closure without an end
WITHOUT_END_SECONDS = 86_400  # Retry-After where nothing says when
TURNING_SECONDS = 900.0  # between two requests on the 1st, of which nobody says at what hour it begins there

log = structlog.get_logger()


class ExhaustedQuotas:
    """Who is closed, by account. What could not be stored is tried again with the next look."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._closed: dict[str, ExhaustedQuota] = {}
        self._unsaved: dict[str, ExhaustedQuota] = {}

    def check(self, account: QuotaAccount) -> None:
        """Raises QuotaExhausted while the account is closed."""
        if not self._closed:
            return
        closure = self._closed.get(account.name)
        if closure is not None and closure.until > self._clock.now():
            raise errors.QuotaExhausted(closure.reason, retry_after=self._wait(closure))

    async def close(self, account: QuotaAccount, dates: BillingPeriods, error: errors.QuotaExhausted) -> None:
        """The service refuses it: nothing more until its reset date, on any worker. The error learns that date.

        On the 1st the refusal may be about the month before, by the service's clock.
        """
        known = self._closed.get(account.name)
        if known is not None and known.until > self._clock.now():
            error.retry_after = self._wait(known)
            return
        closure = ExhaustedQuota(account.name, self._until(account, dates), error.message)
        error.retry_after = self._wait(closure)
        log.warning("quota exhausted", quota_account=account.name, until=_date(closure))
        self._closed[account.name] = self._unsaved[account.name] = closure
        await self.save()

    async def save(self) -> None:
        """Store what is not stored yet. Raises StoreUnavailable."""
        for account, closure in list(self._unsaved.items()):
            await self._store.close_account(closure)
            self._unsaved.pop(account, None)

    async def look(self) -> None:
        """Learn of closures and reopenings elsewhere. Raises StoreUnavailable."""
        await self.save()
        found = {closure.account: closure for closure in await self._store.closures()}
        self._closed = found | self._unsaved

    def _until(self, account: QuotaAccount, dates: BillingPeriods) -> float:
        if account.period != "month":
            return FAR
        return self._clock.now() + TURNING_SECONDS if dates.day == f"{dates.month}-01" else dates.month_ends

    def _wait(self, closure: ExhaustedQuota) -> int:
        if closure.until >= FAR:
            return WITHOUT_END_SECONDS
        return max(1, math.ceil(closure.until - self._clock.now()))


def _date(closure: ExhaustedQuota) -> str:
    return "for ever" if closure.until >= FAR else datetime.fromtimestamp(closure.until, UTC).strftime("%Y-%m-%d")
