"""Verdicts on clients: by what their requests of the report's days name, in JSON and as CSV."""

import csv

import pytest

from proxy import config
from proxy.gateway import client_report, client_verdicts
from proxy.gateway.client_report import ClientReport
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen, UnsupportedUse

NOW = clock.ManualClock().now()
TODAY = int(NOW // DAY_SECONDS)
NAMES = ("changed", "erp", "fine", "gone", "never")
APPLICATIONS = {
    "demo": config.ApplicationSettings(
        apikeys=tuple(config.ApiKeySettings(config.digest(name), name=name) for name in NAMES)
    )
}


@pytest.fixture
async def report() -> ClientReport:
    """The last 30 days: one client names an unsupported field, one did so before, one is gone, one never came."""
    store = MemoryStore(clock.ManualClock())
    for number, (key, day) in enumerate((("changed", TODAY), ("erp", TODAY), ("fine", TODAY), ("gone", TODAY - 31))):
        caller, at = Caller("demo", key, "parts/match", ""), day * DAY_SECONDS
        await store.add_callers(str(number), [CallerSeen(caller, at, at)], [CallerCount(day, caller, 1, 0, 0)])
    anonymous = Caller("", "", "parts/match", "")
    seen, counts = [CallerSeen(anonymous, 0, int(NOW))], [CallerCount(TODAY, anonymous, 9, 9, 0)]
    old, today = (TODAY - 30) * DAY_SECONDS, TODAY * DAY_SECONDS
    uses = [
        UnsupportedUse("demo", "changed", "sortby=price", 5, old, old),
        UnsupportedUse("demo", "erp", "=show[] (no source)", 2, old, today),
        UnsupportedUse("demo", "gone", "sortby=price", 1, old, old),
    ]
    await store.add_callers("more", seen, counts, unsupported=uses)
    return await client_report.read(store, APPLICATIONS, 30, NOW)


def test_client_breaks_by_what_it_names_now(report: ClientReport) -> None:
    assert [(each.client, each.verdict) for each in client_verdicts.verdicts(report)] == [
        ("demo/erp", "breaks"),
        ("demo/changed", "runs unchanged"),
        ("demo/fine", "runs unchanged"),
        ("demo/gone", "not seen"),
        ("demo/never", "not seen"),
    ]
    texts = {client.name: client.verdict_text for client in report.clients}
    assert (texts["demo/erp"], texts["demo/never"]) == ("breaks", "never seen")
    assert texts["demo/gone"] == "not seen since 2023-10-14"
    assert texts["(no valid API key)"] == ""


def test_file_has_a_row_for_each_use_and_no_formula(report: ClientReport) -> None:
    heading, *rows = csv.reader(client_verdicts.csv_text(report).splitlines())
    assert heading == list(client_verdicts.CSV_COLUMNS)
    assert [row[1:3] + row[4:6] for row in rows] == [
        ["erp", "breaks", "'=show[] (no source)", "2"],
        ["changed", "runs unchanged", "sortby=price", "5"],
        ["fine", "runs unchanged", "", ""],
        ["gone", "not seen", "sortby=price", "1"],
        ["never", "not seen", "", ""],
    ]
