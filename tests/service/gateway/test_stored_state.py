"""Stored state as commands read it: the report on clients, of programs and of every API key, used or not."""

from proxy import config
from proxy.cli import client_report
from proxy.cli.client_report import ClientRow, KeyRow
from proxy.gateway.core import StoredState
from proxy.kit import clock
from proxy.store.sqlite import SqliteStore
from proxy.stores.open import MemoryStore
from proxy.stores.protocols import LedgerEntry
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount

ERP = Caller("demo", "erp", "parts/match", "bom/1", "sortby (ignored)")
OLD = Caller("", "", "parts/search", "curl/8", "")
APPLICATIONS = {
    "demo": config.ApplicationSettings(
        apikeys=(
            config.ApiKeySettings(config.digest("a"), name="erp"),
            config.ApiKeySettings(config.digest("b"), name="unused"),
        )
    )
}


async def test_programs_and_keys_of_the_last_days() -> None:
    time = clock.ManualClock()
    store, today = MemoryStore(time), int(time.now() // DAY_SECONDS)
    start = today * DAY_SECONDS
    counts = [
        CallerCount(today, ERP, 5, start + 7),
        CallerCount(today - 29, ERP, 2, start),
        CallerCount(today - 30, ERP, 100, start),
        CallerCount(today, OLD, 9, start),
    ]
    await store.add_callers("1", counts)
    await store.set_usage(LedgerEntry("demo/erp", "2023-11"), 12)
    report = await client_report.read(
        StoredState(await SqliteStore.open(None, time, "", 1), store, config.Config(applications=APPLICATIONS), time)
    )
    assert report.first_day == "2023-10-16"
    assert report.clients == [
        ClientRow(*OLD, 9, "2023-11-14T00:00:00Z"),
        ClientRow(*ERP, 7, "2023-11-14T00:00:07Z"),
    ]
    assert report.keys == [KeyRow("demo", "erp", 12, 7, "2023-11-14T00:00:07Z"), KeyRow("demo", "unused", 0, 0, None)]
