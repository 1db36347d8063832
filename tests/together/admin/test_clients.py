"""The page Clients: who called, who did not, and one client in full; the same as JSON and as CSV."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support import running_admin
from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config
from proxy.gateway import client_report, client_verdicts
from proxy.kit import clock
from proxy.stores.protocols import LedgerEntry, Settlement, UsageIncrement
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen, KeyDurations

KEYS = (
    config.ApiKeySettings(config.digest("EXAMPLE_KEY"), name="erp", parts=100),
    config.ApiKeySettings(config.digest("old"), name="plm", sunset=config.SunsetSettings(date(2023, 11, 1))),
    config.ApiKeySettings(config.digest("ci"), name="ci", expires=date(2023, 11, 13)),
)
HOSTILE = """=HYPERLINK("x")<script>ruined=1</script>'"&"""
TODAY = int(clock.ManualClock().now() // DAY_SECONDS)  # 2023-11-14
ERP = Caller("demo", "erp", "parts/match", "BOM/1.0")
COUNTS = (
    CallerCount(TODAY, ERP, 70, 2, 30),
    CallerCount(TODAY - 29, ERP, 5, 0, 1),
    CallerCount(TODAY - 30, ERP, 9, 9, 9),
    CallerCount(TODAY - 1, Caller("demo", "erp", "brands/{uid}", "BOM/1.1"), 6, 1, 0),
    CallerCount(TODAY - 60, Caller("demo", "plm", "parts/match", "Java/1.8"), 3, 0, 3),
    CallerCount(TODAY - 2, Caller("demo", "left", "parts/match", HOSTILE), 4, 4, 0),
    CallerCount(TODAY, Caller("", "", "parts/search", HOSTILE), 8, 8, 0),
)


@pytest.fixture
async def store_file(tmp_path: Path, time: clock.ManualClock) -> Path:
    """A store with what others have written."""
    file = tmp_path / "state.sqlite"
    store = await SqliteStore.open(file, time)
    seen = [CallerSeen(each.caller, each.day * DAY_SECONDS, each.day * DAY_SECONDS + 60) for each in COUNTS]
    for number, (each, times) in enumerate(zip(COUNTS, seen, strict=True)):
        await store.add_callers(str(number), [times], [each])
    durations = KeyDurations(TODAY, "demo", "erp", (0, 0, 0, 8, 0, 0, 0, 2, *[0] * 5))
    await store.add_callers("durations", [], [], durations=[durations])
    parts = (("demo", 400), ("demo/erp", 100))
    usage = tuple(UsageIncrement(LedgerEntry(name, "2023-11"), number, 0) for name, number in parts)
    await store.settle(Settlement("other", 1, (), usage))
    await store.aclose()
    return file


@pytest.fixture
async def managed(start: StartEnvironment, store_file: Path) -> AsyncIterator[ProxyEnvironment]:
    application = {"apikeys": KEYS, "parts": 1000, "sunset": config.SunsetSettings(date(2027, 6, 30))}
    async with start(admin=True, store=f"sqlite:{store_file}", application=application) as ready:
        yield ready


async def test_clients_are_listed_with_usage_quota_and_sunset(admin: running_admin.AdminClient) -> None:
    page = await admin.json("/clients.json")
    assert (page["first_day"], page["last_day"], page["recorded_since"]) == (
        "2023-10-16",
        "2023-11-14",
        "2023-09-15T00:00:00Z",
    )
    erp, left = page["clients"]
    assert erp == {
        "application": "demo",
        "key": "erp",
        "configured": True,
        "sunset": "2027-06-30",
        "sunset_passed": False,
        "expires": None,
        "expired": False,
        "today": 70,
        "requests": 81,
        "errors": 3,
        "parts": 31,
        "hits": 0,
        "mean_ms": 0.0,
        "p50_ms": 40.6,
        "p95_ms": 875.0,
        "unsupported": 0,
        "requests_by_day": [5, *[0] * 27, 6, 70],
        "first_seen": "2023-10-15T00:00:00Z",
        "last_seen": "2023-11-14T00:01:00Z",
        "verdict": "runs unchanged",
        "endpoints": ["brands/{uid}", "parts/match"],
        "user_agents": ["BOM/1.0", "BOM/1.1"],
        "more_user_agents": 0,
        "quota": {"period": "2023-11", "used": 100, "limit": 100, "percent": 100.0, "share": 0.25},
    }
    assert (left["key"], left["configured"], left["quota"]) == ("left", False, None)


async def test_percentiles_are_shown_beside_the_mean(admin: running_admin.AdminClient) -> None:
    assert '<br><span class="quiet">41 ms, 875 ms</span>' in await admin.page("/clients")
    assert "<dd>–</dd>" in await admin.page("/clients?application=demo&key=left")
    file = await admin.send("GET", "/clients.csv", headers=running_admin.BEARER)
    rows = csv.DictReader((await file.text()).splitlines())
    assert {(row["key_p50_ms"], row["key_p95_ms"]) for row in rows if row["key"] == "erp"} == {("40.6", "875.0")}


async def test_verdicts_are_a_file(admin: running_admin.AdminClient) -> None:
    response = await admin.send("GET", "/clients.csv?verdicts=1", headers=running_admin.BEARER)
    heading, *rows = csv.reader((await response.text()).splitlines())
    assert heading == list(client_verdicts.CSV_COLUMNS)
    assert [row[:4] for row in rows] == [
        ["demo", "erp", "runs unchanged", "2023-11-14T00:01:00Z"],
        ["demo", "left", "runs unchanged", rows[1][3]],
        ["demo", "plm", "not seen", "2023-09-15T00:01:00Z"],
        ["demo", "ci", "not seen", ""],
    ]
    assert "not seen since 2023-09-15" in await admin.page("/clients")


async def test_keys_that_nobody_uses_are_listed(admin: running_admin.AdminClient) -> None:
    unused = (await admin.json("/clients.json"))["unused"]
    assert [(each["key"], each["last_seen"], each["sunset"], each["sunset_passed"]) for each in unused] == [
        ("plm", "2023-09-15T00:01:00Z", "2023-11-01", True),
        ("ci", None, "2027-06-30", False),
    ]
    assert [each["key"] for each in (await admin.json("/clients.json?days=61"))["unused"]] == ["ci"]


async def test_requests_without_a_valid_key_are_shown(admin: running_admin.AdminClient) -> None:
    unknown = (await admin.json("/clients.json"))["unknown"]
    assert (unknown["application"], unknown["key"], unknown["requests"]) == (None, None, 8)
    selected = (await admin.json("/clients.json?application=&key="))["selected"]
    assert selected == unknown


async def test_one_client_is_shown_with_every_endpoint_and_day(admin: running_admin.AdminClient) -> None:
    selected = (await admin.json("/clients.json?application=demo&key=erp&days=2"))["selected"]
    assert [day["requests"] for day in selected["days"]] == [6, 70]
    assert [(each["endpoint"], each["user_agent"], each["requests"]) for each in selected["callers"]] == [
        ("parts/match", "BOM/1.0", 70),
        ("brands/{uid}", "BOM/1.1", 6),
    ]
    html = await admin.page("/clients?application=demo&key=erp")
    assert "<h2>demo/erp</h2>" in html
    assert "2023-10-15" in html


async def test_texts_of_clients_are_shown_as_text(admin: running_admin.AdminClient) -> None:
    for path in ("/clients", "/clients?application=demo&key=left", "/clients?application=&key="):
        html = await admin.page(path)
        assert "<script>ruined" not in html
        assert "&lt;script&gt;ruined=1&lt;/script&gt;" in html


async def test_page_names_states_of_clients(admin: running_admin.AdminClient) -> None:
    html = await admin.page("/clients")
    for state in ("sunset 2027-06-30", "ended 2023-11-01", "not configured", "expired 2023-11-13"):
        assert f">{state}</span> " in html  # a blank keeps a state from its neighbor


async def test_page_tells_what_it_cannot_know(start: StartEnvironment) -> None:
    async with start(admin=True) as environment:
        assert "Nothing is recorded yet" in await environment.admin.page("/clients")
    async with start(admin=True, clients=config.ClientSettings(days=0)) as environment:
        assert "<code>clients.days</code> is 0" in await environment.admin.page("/clients")


async def test_page_has_what_the_service_has_recorded_before(
    start: StartEnvironment, store_file: Path, time: clock.ManualClock
) -> None:
    async with start(store=f"sqlite:{store_file}") as environment:
        await environment.get(target({"mpn": "SN74S74N"}))
    time.advance(DAY_SECONDS)
    async with start(admin=True, store=f"sqlite:{store_file}") as environment:
        clients = {each["key"]: each for each in (await environment.admin.json("/clients.json"))["clients"]}
        assert (clients["1"]["requests"], clients["1"]["today"]) == (1, 0)
        assert "recorded since" not in await environment.admin.page("/clients?days=30")
        assert "Recorded since 2023-09-15" in await environment.admin.page("/clients?days=396")


@pytest.mark.parametrize(
    "query, days", [("", {"2023-11-14", "2023-11-13", "2023-11-12", "2023-10-16"}), ("?days=1", {"2023-11-14"})]
)
async def test_csv_has_a_row_for_each_day_and_no_formula(
    admin: running_admin.AdminClient, query: str, days: set[str]
) -> None:
    response = await admin.send("GET", f"/clients.csv{query}", headers=running_admin.BEARER)
    assert response.headers["Content-Disposition"] == 'attachment; filename="clients.csv"'
    assert response.content_type == "text/csv"
    rows = list(csv.DictReader(io.StringIO(await response.text())))
    assert {row["day"] for row in rows if row["day"]} == days
    assert {row["requests"] for row in rows if row["key"] == "ci"} == {"0"}
    unknown = next(row for row in rows if not row["key"])
    assert (unknown["user_agent"], unknown["requests"], unknown["errors"]) == (f"'{HOSTILE}", "8", "8")


async def test_csv_of_one_client(admin: running_admin.AdminClient) -> None:
    path = "/clients.csv?application=demo&key=left"
    response = await admin.send("GET", path, headers=running_admin.BEARER)
    rows = list(csv.DictReader(io.StringIO(await response.text())))
    assert [(row["key"], row["day"]) for row in rows] == [("left", "2023-11-12")]
    assert (await admin.send("GET", path)).status == 401


async def test_thousands_of_clients_are_shown_a_page_at_a_time(
    admin: running_admin.AdminClient, store_file: Path, time: clock.ManualClock
) -> None:
    store = await SqliteStore.open(store_file, time)
    keys = [Caller("demo", f"key {number}", "parts/match", f"Program/{number}") for number in range(2_000)]
    programs = [Caller("demo", "key 7", "parts/match", f"Other/{number}") for number in range(150)]
    seen = [CallerSeen(caller, TODAY * DAY_SECONDS, TODAY * DAY_SECONDS) for caller in (*keys, *programs)]
    await store.add_callers("many", seen, [CallerCount(TODAY, caller, 1, 0, 0) for caller, *_ in seen])
    await store.aclose()

    first, last = [await admin.json(f"/clients.json?page={page}") for page in (1, 99)]
    assert ([len(page["clients"]) for page in (first, last)], first["pages"], last["page"]) == ([100, 2], 21, 21)
    assert [each["key"] for each in first["clients"][:2]] == ["key 7", "erp"]  # those with most requests
    assert first["totals"] == {"today": 2_001, "clients": 2_002, "requests": 2_235, "unused": 2}
    html = await admin.page("/clients?page=2")
    assert html.count('viewBox="0 0 120 100"') == 100
    assert "Page 2 of 21" in html

    found = await admin.json("/clients.json?search=program/1234")
    assert ([each["key"] for each in found["clients"]], found["unused"], found["pages"]) == (["key 1234"], [], 1)
    selected = await admin.json("/clients.json?application=demo&key=key+7&page=2")
    assert (len(selected["selected"]["callers"]), selected["pages"]) == (51, 2)
    assert (await admin.send("GET", "/clients.json?page=0", headers=running_admin.BEARER)).status == 400
    response = await admin.send("GET", "/clients.csv?search=PROGRAM/123", headers=running_admin.BEARER)
    assert len((await response.text()).splitlines()) == 1 + 11


@pytest.mark.parametrize(
    "query", ["days=0", "days=397", "days=", "days=٣", "days=1e2", "key=nobody", "application=x&key="]
)
async def test_wrong_parameters_are_refused(admin: running_admin.AdminClient, query: str) -> None:
    for path in (f"/clients.json?{query}", f"/clients.csv?{query}"):
        assert (await admin.send("GET", path, headers=running_admin.BEARER)).status == 400


async def test_reports_are_made_one_at_a_time(
    admin: running_admin.AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty at once would take gigabytes where there are thousands of user agents."""
    read, running, most = client_report.read, 0, 0

    async def counted(*values: Any) -> client_report.ClientReport:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await read(*values)
        finally:
            running -= 1

    monkeypatch.setattr(client_report, "read", counted)
    targets = ("/clients.json", "/clients", "/clients.csv") * 3
    responses = await asyncio.gather(*(admin.send("GET", each, headers=running_admin.BEARER) for each in targets))
    assert ({response.status for response in responses}, most) == ({200}, 1)
