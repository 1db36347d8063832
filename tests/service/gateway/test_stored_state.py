"""State of a service as commands and checks use it: usage, and what they change."""

from collections.abc import AsyncIterator

import pytest

from proxy import config, errors
from proxy.gateway.applications import Applications
from proxy.gateway.quota import EXHAUSTED, StoredState, UsageRow
from proxy.kit import clock
from proxy.store.sqlite import SqliteStore

KEYS = (config.ApiKeySettings(config.digest("a"), name="erp", parts=50), config.ApiKeySettings(config.digest("b")))
APPLICATIONS = {
    "demo": config.ApplicationSettings(apikeys=KEYS, parts=200),
    "trial": config.ApplicationSettings(
        apikeys=(config.ApiKeySettings(config.digest("c")),), period="lifetime", parts=100
    ),
}


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(None, clock.ManualClock(), "worker", 1_000_000)
    yield opened
    await opened.aclose()


@pytest.fixture
def state(store: SqliteStore) -> StoredState:
    return StoredState(store, Applications(APPLICATIONS), clock.ManualClock())


async def whole(state: StoredState) -> UsageRow:
    """Return the row of the first application, which precedes those of its keys."""
    return (await state.usage())[0]


async def test_usage_is_set_for_applications_of_both_periods_and_for_their_keys(state: StoredState) -> None:
    assert (await state.set_usage("demo", 150)).used == 0
    assert (await state.set_usage("demo", 160)).used == 150
    await state.set_usage("demo/erp", 20)
    await state.set_usage("trial", 30)
    assert [(row.name, row.period, row.used, row.remaining, row.percent) for row in await state.usage()] == [
        ("demo", "2023-11", 160, 40, 80.0),
        ("demo/erp", "2023-11", 20, 30, 40.0),
        ("demo/2", "2023-11", 0, None, None),
        ("trial", "lifetime", 30, 70, 30.0),
        ("trial/1", "lifetime", 0, None, None),
    ]
    assert [row.resets_at for row in await state.usage()] == ["2023-12-01T00:00:00Z"] * 3 + [None] * 2
    with pytest.raises(LookupError):
        await state.set_usage("other", 1)


async def test_setting_usage_has_requests_sent_again(store: SqliteStore, state: StoredState) -> None:
    account = config.digest("demo").reveal()
    refused = '["You have exceeded your part limit of 100.", 1700000060.0]'
    await store.put_value(f"{EXHAUSTED}{account}", refused, 60.0)
    found = [(row.limit, row.part_limit, row.exhausted_until) for row in await state.usage()]
    assert found[:2] == [(100, 100, "2023-11-14T22:14:20Z"), (50, None, None)]
    await state.set_usage("demo", 40)
    assert (await whole(state)).exhausted_until is None


async def test_what_a_run_beside_the_service_may_cost_is_reserved_and_booked(state: StoredState) -> None:
    async with state.booked("demo", 120) as book:
        assert (await whole(state)).reserved == 120
        with pytest.raises(errors.QuotaExhausted, match="demo has 80 of 200 parts left"):
            async with state.booked("demo", 81):
                pass
        book(70, 5)
    with pytest.raises(RuntimeError):
        async with state.booked("demo", 100):
            raise RuntimeError
    row = await whole(state)
    assert (row.used, row.uncertain, row.reserved, row.remaining, row.percent) == (70, 105, 0, 25, 87.5)
