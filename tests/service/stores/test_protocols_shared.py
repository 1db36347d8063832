"""Tests of a store shared by several processes and restarts: nothing is spent or booked twice."""

from typing import Any

import pytest
from service.stores.test_protocols import NOVEMBER, claim, counts, settlement

from proxy.kit import clock
from proxy.stores.protocols import ExhaustedQuota


async def test_stores_of_one_location_see_equal_data(open_store: Any, persistent_kind: str) -> None:
    one, other = await open_store(persistent_kind), await open_store(persistent_kind)
    assert await one.reserve([claim("a", 60)]) == [None]
    assert await other.reserve([claim("b", 60)]) == [NOVEMBER]
    await other.settle(settlement(1, (NOVEMBER, 5, 0), claims="a"))
    assert await counts(one) == (5, 0, 0)


@pytest.fixture
def reopen_store(request: pytest.FixtureRequest, open_store: Any) -> Any:
    """Open a new store at the same address, after a restart of Redis."""

    async def again(kind: Any, before: Any) -> Any:
        await before.aclose()
        if kind == "redis":
            server = request.getfixturevalue("redis_server")
            server.stop()
            server.start()
        return await open_store(kind)

    return again


async def test_all_data_survives_a_restart(
    open_store: Any, persistent_kind: str, reopen_store: Any, manual_clock: clock.ManualClock
) -> None:
    before = await open_store(persistent_kind)
    closure = ExhaustedQuota("demo", manual_clock.now() + 99, "spent")
    await before.heartbeat("worker", 10)
    await before.reserve([claim("a", 60), claim("b", 10)])
    await before.settle(settlement(1, (NOVEMBER, 7, 2), claims="a"))
    await before.mark_exhausted(closure)
    store = await reopen_store(persistent_kind, before)
    await store.settle(settlement(1, (NOVEMBER, 7, 2), claims="a"))
    assert await counts(store) == (7, 2, 10)
    assert await store.exhausted_quotas() == [closure]
    manual_clock.advance(10)
    await store.heartbeat("another", 10)
    assert await counts(store) == (7, 12, 0)
