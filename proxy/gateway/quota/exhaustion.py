"""Quotas that upstream has refused as exhausted. Nothing more is sent for them until they are reset.

They are stored, so that neither another worker nor a restarted one sends a request in vain; this process learns of
other workers' within a second. `v3bridge usage --set` clears one.
"""

import math
from datetime import UTC, datetime

import structlog

from proxy import errors
from proxy.gateway.quota.accounts import BillingPeriods, QuotaAccount
from proxy.kit.clock import Clock
from proxy.stores.protocols import ExhaustedQuota, Store
from proxy.upstream import classify

NEVER = 253_370_764_800.0  # the year 9999: `until` of a quota that is never reset
WITHOUT_END_SECONDS = 86_400  # Retry-After of a quota that is never reset
FIRST_DAY_SECONDS = 900.0  # that a refusal on the 1st of a month holds
WITHOUT_PARTS_SECONDS = 900.0  # that a refusal of a plan without parts holds

log = structlog.get_logger()


class ExhaustedQuotas:
    """Exhausted quotas by account. One that could not be stored is stored with the next refresh."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._exhausted: dict[str, ExhaustedQuota] = {}
        self._unsaved: dict[str, ExhaustedQuota] = {}

    def active(self) -> list[ExhaustedQuota]:
        """Return the quotas that are exhausted now, as known here."""
        now = self._clock.now()
        return [quota for quota in self._exhausted.values() if quota.until > now]

    def check(self, account: QuotaAccount) -> None:
        """Raise QuotaExhausted while the account's quota is exhausted."""
        if not self._exhausted:
            return
        quota = self._exhausted.get(account.name)
        if quota is not None and quota.until > self._clock.now():
            raise errors.QuotaExhausted(quota.reason, retry_after=self._retry_after(quota))

    async def mark(self, account: QuotaAccount, periods: BillingPeriods, error: errors.QuotaExhausted) -> None:
        """Mark a quota as exhausted, for all workers. Sets the error's retry_after. Raises StoreUnavailable."""
        marked = self._exhausted.get(account.name)
        # Several requests in flight may be refused at once: the first refusal is logged and stored.
        if marked is not None and marked.until > self._clock.now():
            error.retry_after = self._retry_after(marked)
            return
        part_limit = classify.part_limit(error.message)
        quota = ExhaustedQuota(account.name, self._until(account, periods, part_limit), error.message)
        error.retry_after = self._retry_after(quota)
        log.warning("quota exhausted", quota_account=account.name, part_limit=part_limit, until=_date(quota))
        self._exhausted[account.name] = self._unsaved[account.name] = quota
        await self._save()

    async def refresh(self) -> None:
        """Store what is not stored yet, and learn what other workers marked or cleared. Raises StoreUnavailable."""
        await self._save()
        stored = {quota.account: quota for quota in await self._store.exhausted_quotas()}
        # Replaced, not extended: what `v3bridge usage --set` cleared must go.
        self._exhausted = stored | self._unsaved

    async def _save(self) -> None:
        # A copy: `mark` may add one while this awaits the store.
        for account, quota in list(self._unsaved.items()):
            await self._store.mark_exhausted(quota)
            self._unsaved.pop(account, None)

    def _until(self, account: QuotaAccount, periods: BillingPeriods, part_limit: int | None) -> float:
        # No date resets a limit of 0, only a larger plan does. One request in a while, which is free when it is
        # refused, finds that out.
        if part_limit == 0:
            return self._clock.now() + WITHOUT_PARTS_SECONDS
        if account.period != "month":
            return NEVER
        # At what hour a month begins upstream is not documented: a refusal on the 1st may be about the month before.
        is_first_day = periods.day == f"{periods.month}-01"
        return self._clock.now() + FIRST_DAY_SECONDS if is_first_day else periods.month_ends

    def _retry_after(self, quota: ExhaustedQuota) -> int | None:
        if classify.part_limit(quota.reason) == 0:
            return None
        if quota.until >= NEVER:
            return WITHOUT_END_SECONDS
        return max(1, math.ceil(quota.until - self._clock.now()))


def _date(quota: ExhaustedQuota) -> str:
    if classify.part_limit(quota.reason) == 0:
        return "the plan has parts"
    return "for ever" if quota.until >= NEVER else datetime.fromtimestamp(quota.until, UTC).strftime("%Y-%m-%d")
