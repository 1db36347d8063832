"""State of a service as commands use it; what they show and change: together/cli/test_usage."""

from collections.abc import AsyncIterator

import pytest

from proxy import config, errors
from proxy.gateway.applications import Applications
from proxy.gateway.stored_state import StoredState
from proxy.kit import clock
from proxy.store.sqlite import SqliteStore

KEYS = (config.ApiKeySettings(config.digest("a"), name="erp", parts=50), config.ApiKeySettings(config.digest("b")))
APPLICATIONS = {"demo": config.ApplicationSettings(apikeys=KEYS, parts=200)}


@pytest.fixture
async def state() -> AsyncIterator[StoredState]:
    store = await SqliteStore.open(None, clock.ManualClock(), "worker", 1_000_000)
    yield StoredState(store, Applications(APPLICATIONS), clock.ManualClock())
    await store.aclose()


async def test_usage_is_set_for_a_key_alone(state: StoredState) -> None:
    assert [(await state.set_usage("demo/erp", used)).used for used in (30, 20)] == [0, 30]
    rows = [(row.name, row.period, row.used, row.remaining) for row in await state.usage()]
    assert rows == [("demo", "2023-11", 0, 200), ("demo/erp", "2023-11", 20, 30), ("demo/2", "2023-11", 0, None)]


async def test_what_a_run_beside_the_service_may_cost_is_reserved_and_booked(state: StoredState) -> None:
    async with state.booked("demo", 120) as cost:
        assert (await state.usage())[0].reserved == 120
        with pytest.raises(errors.QuotaExhausted, match="demo has 80 of 200 parts left"):
            async with state.booked("demo", 81):
                pass
        cost[:] = 70, 5
    with pytest.raises(RuntimeError):
        async with state.booked("demo", 100):
            raise RuntimeError
    row = (await state.usage())[0]
    assert (row.used, row.uncertain, row.reserved, row.remaining, row.percent) == (70, 105, 0, 25, 87.5)
