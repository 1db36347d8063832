"""Stored state as commands read it: the report on clients, of programs and of every API key, used or not."""

from proxy import config
from proxy.cli import client_report
from proxy.cli.client_report import ClientRow, KeyRow
from proxy.gateway.core import StoredState
from proxy.kit import clock
from proxy.store.protocol import CLIENT, DAY_SECONDS, Account, Seen
from proxy.store.sqlite import SqliteStore

ERP = ("demo", "erp", "parts/match", "bom/1", "sortby (ignored)")
OLD = ("", "", "parts/search", "curl/8", "")
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
    today = int(time.now() // DAY_SECONDS)
    start = today * DAY_SECONDS
    rows = [
        Seen(CLIENT, today, *ERP, 5, start + 7),
        Seen(CLIENT, today - 29, *ERP, 2, start),
        Seen(CLIENT, today - 30, *ERP, 100, start),
        Seen(CLIENT, today, *OLD, 9, start),
    ]
    store = await SqliteStore.open(None, time, "", 1)
    await store.add_seen("1", rows, 0)
    await store.set_usage(Account(config.digest("a").reveal(), "2023-11"), 12)
    report = await client_report.read(StoredState(store, config.Config(applications=APPLICATIONS), time))
    assert report.first_day == "2023-10-16"
    assert report.clients == [
        ClientRow(*OLD, 9, "2023-11-14T00:00:00Z"),
        ClientRow(*ERP, 7, "2023-11-14T00:00:07Z"),
    ]
    assert report.keys == [KeyRow("demo", "erp", 12, 7, "2023-11-14T00:00:07Z"), KeyRow("demo", "unused", 0, 0, None)]
    await store.aclose()
