"""Tests of usage rows read from the store."""

import datetime
from typing import Any, Literal

from proxy import config
from proxy.gateway.quota import usage
from proxy.gateway.quota.exhaustion import NEVER
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, LedgerEntry

NOW = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC).timestamp()


def apikey(text: Any, **changes: Any) -> Any:
    return config.ApiKeySettings(config.digest(text), **changes)


def states(**figures: Any) -> Any:
    """`demo__erp=5` is a key's figure of the month."""
    return [EntryUsage(LedgerEntry(name.replace("__", "/"), "2026-11"), used, 0, 0) for name, used in figures.items()]


def test_row_of_an_application_precedes_its_keys() -> None:
    applications = {
        "demo": config.ApplicationSettings(apikeys=(apikey("a", name="erp", parts=50), apikey("b")), parts=200),
        "other": config.ApplicationSettings(apikeys=(apikey("c"),), period="lifetime"),
    }
    rows = usage.rows(applications, states(demo=60, demo__erp=40), [], NOW)
    assert [
        (row.application, row.key, row.period, row.used, row.limit, row.remaining, row.percent) for row in rows
    ] == [
        ("demo", None, "2026-11", 60, 200, 140, 30.0),
        ("demo", "erp", "2026-11", 40, 50, 10, 80.0),
        ("demo", "2", "2026-11", 0, None, None, None),
        ("other", None, "lifetime", 0, None, None, None),
        ("other", "1", "lifetime", 0, None, None, None),
    ]
    assert {row.resets_at for row in rows} == {"2026-12-01T00:00:00Z", None}


def test_uncertain_usage_is_shown_separately_and_reduces_remaining() -> None:
    applications = {"demo": config.ApplicationSettings(apikeys=(apikey("a"),), parts=100)}
    row, _ = usage.rows(applications, [EntryUsage(LedgerEntry("demo", "2026-11"), 60, 30, 5)], [], NOW)
    assert (row.used, row.uncertain, row.reserved, row.remaining, row.percent) == (60, 30, 5, 10, 90.0)


def test_exhausted_application_shows_its_end() -> None:
    periods: dict[str, Literal["month", "lifetime"]] = {"demo": "month", "other": "lifetime", "free": "month"}
    applications = {
        name: config.ApplicationSettings(apikeys=(apikey(name),), period=period) for name, period in periods.items()
    }
    closures = [ExhaustedQuota("demo", NOW + 60, "spent"), ExhaustedQuota("other", NEVER, "spent")]
    rows = usage.rows(applications, [], closures, NOW)
    assert {row.application: row.exhausted_until for row in rows if row.key is None} == {
        "demo": "2026-11-21T12:01:00Z",
        "other": "ever",
        "free": None,
    }
