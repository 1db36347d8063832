"""Burn-down of a quota: its usage by day and what remained at the end of each, with the pace of the last days, and when
it will be exhausted at that pace. Pure."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from proxy.gateway.quota import accounts
from proxy.gateway.quota.accounts import BillingPeriods, QuotaAccount
from proxy.stores.protocols import EntryUsage, LedgerEntry

DAYS = 7  # that the pace is taken from, today among them
DAY_SECONDS = 86_400.0


def runs_out(used: int, limit: int | None, ends: float | None, days: Sequence[int], now: float) -> float | None:
    """Return the time (seconds since 1970) at which `used` reaches `limit`; None where the period ends before.

    `ends` is the end of the period, None for a lifetime. `days` are the parts of the last days (UTC), today's last.
    """
    if limit is None:
        return None
    if used >= limit:
        return now
    parts_a_second = parts_pace(days, now)
    if not parts_a_second:  # an idle quota never runs out
        return None
    # Linear: the rest at the pace of the last days.
    moment = now + (limit - used) / parts_a_second
    return moment if ends is None or moment < ends else None


def parts_pace(days: Sequence[int], now: float) -> float:
    """Return the parts a second of the last days (UTC), today's last; 0.0 without any usage.

    The pace is taken from the first day with any usage: a service that began on Thursday is not slower for its idle
    Monday. It is taken over one day at least, so that a busy first hour does not predict too much.
    """
    total = sum(days)
    return total / _elapsed(days, now) if total else 0.0


def _elapsed(days: Sequence[int], now: float) -> float:
    """Return the seconds from midnight before the first day with usage until now, at least a day."""
    first = next(position for position, parts in enumerate(days) if parts)
    return max(DAY_SECONDS, (len(days) - 1 - first) * DAY_SECONDS + now % DAY_SECONDS)


LIFETIME_DAYS = 31  # days that are shown of a quota that is never reset

UsageOf = Callable[[LedgerEntry], EntryUsage]


class BurnDownDay(msgspec.Struct, frozen=True):
    """Usage of a day (UTC), used or uncertain; `remaining` is what was left of the limit at its end, null without
    one."""

    day: str
    parts: int
    remaining: int | None


class BurnDown(msgspec.Struct, frozen=True):
    """Days of the current period, today's last; of a lifetime the last ones.

    `earlier` is usage of the period that is on none of these days, such as that of other programs, which a
    reconciliation adds. `parts_per_day` is the pace of the last days; `expected` is what will be used at the end of the
    period at this pace, null for a lifetime. `starts` and `ends` are the first day and the last one of the period, null
    for a lifetime.
    """

    days: tuple[BurnDownDay, ...]
    earlier: int
    parts_per_day: float
    expected: int | None
    starts: str | None
    ends: str | None


def of_account(account: QuotaAccount, usage_of: UsageOf, periods: BillingPeriods, now: float) -> BurnDown:
    """Return the burn-down of an account at `now`; `usage_of` returns the usage of a ledger entry."""

    def parts(day: str) -> int:
        return _parts(usage_of(LedgerEntry(account.name, day)))

    total = _parts(usage_of(account.entry(periods)))
    is_monthly = account.period == "month"
    names = accounts.last_days(now, int(periods.day[-2:]) if is_monthly else LIFETIME_DAYS)
    pace = parts_pace([parts(day) for day in accounts.last_days(now, DAYS)], now)
    days = [(day, parts(day)) for day in names]
    counted = earlier = max(0, total - sum(number for _, number in days))
    shown = []
    for day, number in days:
        counted += number
        shown.append(BurnDownDay(day, number, None if account.limit is None else max(0, account.limit - counted)))
    return BurnDown(
        days=tuple(shown),
        earlier=earlier,
        parts_per_day=round(pace * DAY_SECONDS, 1),
        expected=round(total + pace * (periods.month_ends - now)) if is_monthly else None,
        starts=names[0] if is_monthly else None,
        ends=_day_before(periods.month_ends) if is_monthly else None,
    )


def _parts(usage: EntryUsage) -> int:
    return usage.used + usage.uncertain


def _day_before(moment: float) -> str:
    return (datetime.fromtimestamp(moment, UTC) - timedelta(days=1)).strftime("%Y-%m-%d")
