"""Reports of usage: gauges and log events at thresholds while the service runs, rows for `v3bridge usage`.

API keys that the configuration no longer has are part of their application's figures and have no row.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog

from proxy import config
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota import forecast
from proxy.gateway.quota.accounts import LIFETIME, BillingPeriods, QuotaAccount
from proxy.gateway.quota.exhaustion import NEVER
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, LedgerEntry, OnceStore
from proxy.telemetry.metrics import Metrics
from proxy.upstream import classify

THRESHOLDS = (50, 80, 95)  # per cent of a limit, used or uncertain

_MONTH_SECONDS = 62 * 86_400.0  # longer than a month, so that its thresholds are logged once
# A hundred years: once.
_LIFETIME_SECONDS = 36_525 * 86_400.0

log = structlog.get_logger()


class UsageMonitor:
    """Reports the usage of quota accounts with each refresh. A threshold is logged once a period, by one of all
    workers: the store decides which."""

    def __init__(self, store: OnceStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._logged: set[tuple[str, str, int]] = set()

    def update_gauges(self, usages: Iterable[tuple[QuotaAccount, EntryUsage]]) -> None:
        """Set the gauges of each account."""
        for account, usage in usages:
            label = (account.name,)
            self._metrics.parts_used[label] = usage.used
            self._metrics.parts_uncertain[label] = usage.uncertain
            self._metrics.parts_reserved[label] = usage.reserved
            if account.limit is not None:
                self._metrics.parts_remaining[label] = max(0, account.limit - usage.used - usage.uncertain)

    def remove_gauges(self, before: Iterable[QuotaAccount], current: Iterable[QuotaAccount]) -> None:
        """Remove the gauges of accounts that are no longer there, or no longer limited."""
        names = {account.name for account in current}
        limited = {account.name for account in current if account.limit is not None}
        metrics = self._metrics
        for account in before:
            label = (account.name,)
            if account.name not in limited:
                metrics.parts_remaining.pop(label, None)
            if account.name not in names:
                for gauge in (metrics.parts_used, metrics.parts_uncertain, metrics.parts_reserved):
                    gauge.pop(label, None)

    async def log_thresholds(self, usages: Sequence[tuple[QuotaAccount, EntryUsage]]) -> None:
        """Log each threshold that was reached and that no worker has logged. Raises StoreUnavailable."""
        for account, usage in usages:
            for threshold in reached(usage.used + usage.uncertain, account.limit):
                await self._log(account, usage, threshold)

    async def _log(self, account: QuotaAccount, usage: EntryUsage, threshold: int) -> None:
        period = usage.entry.period
        # Each process asks the store once, not with every refresh of a second.
        logged = (account.name, period, threshold)
        if logged in self._logged:
            return
        seconds = _LIFETIME_SECONDS if period == LIFETIME else _MONTH_SECONDS
        is_first = await self._store.claim_once(f"warned:{account.name} {period} {threshold}", seconds)
        # After the store has answered: where it is unavailable, the next refresh tries again.
        self._logged.add(logged)
        if is_first:
            log.warning(
                "quota threshold reached",
                quota_account=account.name,
                percent=threshold,
                period=period,
                used=usage.used,
                uncertain=usage.uncertain,
                limit=account.limit,
            )


def reached(used: int, limit: int | None) -> list[int]:
    """Return the thresholds that so many parts have reached."""
    return [] if not limit else [threshold for threshold in THRESHOLDS if used * 100 >= threshold * limit]


class UsageRow(msgspec.Struct, frozen=True):
    """Usage of one quota account in its period. Times are RFC 3339 in UTC.

    `key` is null in the application's own row, `limit`, `remaining` and `percent` where nothing is limited, `resets_at`
    for a lifetime. `runs_out_at` is null where the parts last until then, `exhausted_until` where upstream has not
    refused the quota as exhausted ("ever": until it is cleared); `part_limit` is the limit that it named then, 0 for a
    plan without parts.
    """

    application: str
    key: str | None
    period: str
    used: int
    uncertain: int
    reserved: int
    limit: int | None
    remaining: int | None
    percent: float | None
    resets_at: str | None
    runs_out_at: str | None
    exhausted_until: str | None
    part_limit: int | None


def rows(
    applications: Mapping[str, config.ApplicationSettings],
    usages: Iterable[EntryUsage],
    exhausted: Iterable[ExhaustedQuota],
    now: float,
) -> list[UsageRow]:
    """Make a row for each application and one for each of its API keys, in the order of the configuration."""
    snapshot = _Snapshot(
        {usage.entry: usage for usage in usages},
        {quota.account: quota for quota in exhausted},
        quota_accounts.billing_periods(now),
        now,
    )
    usage_rows = []
    for name, entry in applications.items():
        usage_rows.append(_row(quota_accounts.application_account(name, entry), name, None, snapshot))
        charged = quota_accounts.charged_accounts(name, entry)
        usage_rows += [_row(accounts.key, name, key, snapshot) for key, accounts in charged.items()]
    return usage_rows


class _Snapshot(NamedTuple):
    """Ledger and exhausted quotas at one moment."""

    usages: Mapping[LedgerEntry, EntryUsage]
    exhausted: Mapping[str, ExhaustedQuota]
    periods: BillingPeriods
    now: float

    def usage(self, entry: LedgerEntry) -> EntryUsage:
        return self.usages.get(entry) or EntryUsage(entry, 0, 0, 0)

    def counted(self, account: str, day: str) -> int:
        usage = self.usage(LedgerEntry(account, day))
        return usage.used + usage.uncertain


def _row(account: QuotaAccount, application: str, key: str | None, snapshot: _Snapshot) -> UsageRow:
    usage = snapshot.usage(account.entry(snapshot.periods))
    counted = usage.used + usage.uncertain
    ends = snapshot.periods.month_ends if account.period == "month" else None
    days = [snapshot.counted(account.name, day) for day in quota_accounts.last_days(snapshot.now, forecast.DAYS)]
    exhausted = snapshot.exhausted.get(account.name)
    return UsageRow(
        application=application,
        key=key,
        period=usage.entry.period,
        used=usage.used,
        uncertain=usage.uncertain,
        reserved=usage.reserved,
        limit=account.limit,
        remaining=None if account.limit is None else max(0, account.limit - counted),
        percent=None if not account.limit else round(100 * counted / account.limit, 1),
        resets_at=_time(ends),
        runs_out_at=_time(forecast.runs_out(counted, account.limit, ends, days, snapshot.now)),
        exhausted_until=_time(exhausted.until if exhausted else None),
        part_limit=classify.part_limit(exhausted.reason) if exhausted else None,
    )


def _time(seconds: float | None) -> str | None:
    """Format a time to whole seconds; None stays None. What is too far off for a date is "ever"."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds < NEVER else "ever"
