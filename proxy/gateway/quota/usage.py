"""Reports of usage: gauges while the service runs, rows for `v3bridge usage` and the status.

API keys that the configuration no longer has are part of their application's figures and have no row.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from proxy import config
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota.accounts import BillingPeriods, QuotaAccount
from proxy.gateway.quota.exhaustion import NEVER
from proxy.kit import wording
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, LedgerEntry
from proxy.upstream import classify


def gauges(usages: Iterable[tuple[QuotaAccount, EntryUsage]]) -> list[Metric]:
    """Return the metrics of the usage of quota accounts."""
    used = _gauge("v3bridge_parts_used", "Parts used in the period, by the ledger")
    uncertain = _gauge("v3bridge_parts_uncertain", "Parts that may have been billed")
    reserved = _gauge("v3bridge_parts_reserved", "Parts reserved by requests in flight")
    remaining = _gauge("v3bridge_parts_remaining", "Parts remaining of the limit")
    for account, usage in usages:
        label = (account.name,)
        used.add_metric(label, usage.used)
        uncertain.add_metric(label, usage.uncertain)
        reserved.add_metric(label, usage.reserved)
        if account.limit is not None:
            remaining.add_metric(label, max(0, account.limit - usage.used - usage.uncertain))
    return [used, uncertain, reserved, remaining]


def _gauge(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=("quota_account",))


class UsageRow(msgspec.Struct, frozen=True):
    """Usage of one quota account in its period. Times are RFC 3339 in UTC.

    `key` is null in the application's own row, `limit`, `remaining` and `percent` where nothing is limited, `resets_at`
    for a lifetime, `exhausted_until` where upstream has not refused the quota as exhausted ("ever": until it is
    cleared); `part_limit` is the limit that it named then, 0 for a plan without parts. `limit` is that of the
    configuration, or `part_limit` where that is lower.
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

    def usage(self, entry: LedgerEntry) -> EntryUsage:
        return self.usages.get(entry) or EntryUsage(entry, 0, 0, 0)


def _row(account: QuotaAccount, application: str, key: str | None, snapshot: _Snapshot) -> UsageRow:
    usage = snapshot.usage(account.entry(snapshot.periods))
    counted = usage.used + usage.uncertain
    ends = snapshot.periods.month_ends if account.period == "month" else None
    exhausted = snapshot.exhausted.get(account.name)
    part_limit = classify.part_limit(exhausted.reason) if exhausted else None
    # What the upstream says holds for the running period: it knows its plan, and who else uses it.
    limit = min((each for each in (account.limit, part_limit) if each is not None), default=None)
    return UsageRow(
        application=application,
        key=key,
        period=usage.entry.period,
        used=usage.used,
        uncertain=usage.uncertain,
        reserved=usage.reserved,
        limit=limit,
        remaining=None if limit is None else max(0, limit - counted),
        percent=None if not limit else round(100 * counted / limit, 1),
        resets_at=_time(ends),
        exhausted_until=_time(exhausted.until if exhausted else None),
        part_limit=part_limit,
    )


def _time(seconds: float | None) -> str | None:
    """Format a time to whole seconds; None stays None. What is too far off for a date is "ever"."""
    if seconds is None:
        return None
    return wording.rfc3339(seconds) if seconds < NEVER else "ever"
