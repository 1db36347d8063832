"""Tests of quota accounts from the configuration, and of their periods."""

import datetime
from typing import Any

import pytest

from proxy import config
from proxy.gateway.quota import accounts
from proxy.kit import clock
from proxy.stores.protocols import LedgerEntry


def at(text: Any) -> Any:
    return datetime.datetime.fromisoformat(text).timestamp()


def application(*keys: Any, **changes: Any) -> Any:
    return config.ApplicationSettings(apikeys=keys, **changes)


def apikey(text: Any, **changes: Any) -> Any:
    return config.ApiKeySettings(config.digest(text), **changes)


def test_every_key_has_a_quota_account_beside_its_application() -> None:
    keys = accounts.charged_accounts("demo", application(apikey("a"), apikey("b", name="erp", parts=5), parts=10))
    assert {name: (pair.application, pair.key) for name, pair in keys.items()} == {
        "1": (accounts.QuotaAccount("demo", 10, "month"), accounts.QuotaAccount("demo/1", None, "month")),
        "erp": (accounts.QuotaAccount("demo", 10, "month"), accounts.QuotaAccount("demo/erp", 5, "month")),
    }


def test_keys_have_the_period_of_their_application() -> None:
    (pair,) = accounts.charged_accounts("demo", application(apikey("a", parts=5), period="lifetime")).values()
    dates = accounts.billing_periods(at("2026-11-21T12:00:00Z"))
    assert pair.key.entry(dates) == LedgerEntry("demo/1", "lifetime")
    assert pair.key.reset(dates, 0.0) is None


@pytest.mark.parametrize(
    "now,day,month,left",
    [
        ("2026-11-21T12:00:00Z", "2026-11-21", "2026-11", 9.5 * 86_400),
        ("2026-12-31T23:59:59Z", "2026-12-31", "2026-12", 1),
        ("2028-02-29T00:00:00Z", "2028-02-29", "2028-02", 86_400),
        ("2026-11-30T23:59:59.900Z", "2026-11-30", "2026-11", 1),
        ("2026-12-01T00:00:00Z", "2026-12-01", "2026-12", 31 * 86_400),
    ],
)
def test_periods_are_in_utc(now: str, day: str, month: str, left: Any) -> None:
    dates = accounts.billing_periods(at(now))
    assert (dates.day, dates.month) == (day, month)
    assert dates.day_begins <= at(now) < dates.day_ends
    account = accounts.QuotaAccount("demo", 1, "month")
    assert account.reset(dates, at(now)) == left
    assert account.entries(dates) == (
        LedgerEntry("demo", day),
        LedgerEntry("demo", month),
        LedgerEntry("demo", "lifetime"),
    )


def test_billing_period_follows_the_clock_in_both_directions() -> None:
    time = clock.ManualClock(at("2026-11-30T23:59:59Z"))
    calendar = accounts.BillingCalendar(time)
    before = calendar.today()
    assert calendar.today() is before
    time.advance(1)
    assert calendar.today().day == "2026-12-01"
    time.advance(-1)
    assert calendar.today() == before
