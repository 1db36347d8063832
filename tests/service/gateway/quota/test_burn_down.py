"""Tests of the burn-down of a quota: usage by day, what remained, and the pace."""

import datetime
from typing import Any

from proxy.gateway.quota import accounts, burn_down
from proxy.stores.protocols import EntryUsage, LedgerEntry

NOW = datetime.datetime(2026, 11, 5, 12, tzinfo=datetime.UTC).timestamp()


def burned(limit: Any, period: Any = "month", **used: Any) -> burn_down.BurnDown:
    """`d03=7`: parts of the third day; `total=90`: those of the period."""
    entries = {("2026-11-" + name[1:]) if name.startswith("d") else name: parts for name, parts in used.items()}
    entries["2026-11" if period == "month" else "lifetime"] = entries.pop("total")

    def usage(entry: LedgerEntry) -> EntryUsage:
        return EntryUsage(entry, entries.get(entry.period, 0), 0, 0)

    account = accounts.QuotaAccount("demo", limit, period)
    return burn_down.of_account(account, usage, accounts.billing_periods(NOW), NOW)


def test_days_of_the_month_count_down_from_the_limit() -> None:
    month = burned(100, total=60, d01=10, d03=30, d05=20)
    assert [(day.day[-2:], day.parts, day.remaining) for day in month.days] == [
        ("01", 10, 90),
        ("02", 0, 90),
        ("03", 30, 60),
        ("04", 0, 60),
        ("05", 20, 40),
    ]
    assert (month.earlier, month.starts, month.ends) == (0, "2026-11-01", "2026-11-30")
    assert month.parts_per_day == round(60 / 4.5, 1)
    assert month.expected == round(60 + 60 / 4.5 * 25.5)


def test_usage_of_no_day_stands_before_the_first() -> None:
    month = burned(100, total=70, d02=10)
    assert month.earlier == 60
    assert [day.remaining for day in month.days] == [40, 30, 30, 30, 30]


def test_unlimited_quota_has_days_and_nothing_remaining() -> None:
    month = burned(None, total=5, d05=5)
    assert [day.remaining for day in month.days] == [None] * 5
    assert [day.parts for day in month.days] == [0, 0, 0, 0, 5]


def test_lifetime_shows_its_last_days_and_has_no_end() -> None:
    lifetime = burned(100, "lifetime", total=99, d01=9)
    assert len(lifetime.days) == burn_down.LIFETIME_DAYS
    assert (lifetime.days[0].day, lifetime.days[-1].day) == ("2026-10-06", "2026-11-05")
    assert (lifetime.earlier, lifetime.days[0].remaining, lifetime.days[-1].remaining) == (90, 10, 1)
    assert (lifetime.expected, lifetime.starts, lifetime.ends) == (None, None, None)


def test_usage_beyond_the_limit_leaves_nothing() -> None:
    month = burned(10, total=25, d04=25)
    assert [day.remaining for day in month.days] == [10, 10, 10, 0, 0]
