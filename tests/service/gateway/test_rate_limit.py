"""Tests of the rate limit of an API key: off by default, exact, and shared by workers."""

from typing import Any

import pytest

from proxy import config, errors
from proxy.gateway import applications, rate_limit
from proxy.kit import clock

KEYS = (("a", 3), ("b", 3), ("c", None), ("d", 0))


@pytest.fixture
def served() -> Any:
    apikeys = tuple(config.ApiKeySettings(config.digest(key), rate=rate) for key, rate in KEYS)
    return applications.Applications({"demo": config.ApplicationSettings(apikeys=apikeys, rate=1)})


async def test_api_key_is_limited_in_any_second(store: Any, served: Any, time: clock.ManualClock) -> None:
    limits, client = rate_limit.RateLimits(store), served.client("a")
    for _ in range(3):
        await limits.admit(client)
        time.advance(0.2)
    with pytest.raises(errors.TooManyRequests, match="demo/1 may make no more than 3 requests") as refused:
        await limits.admit(client)
    assert refused.value.retry_after == 1
    await limits.admit(served.client("b"))
    time.advance(0.4)
    await limits.admit(client)


async def test_rate_limit_is_shared_by_workers(store: Any, served: Any) -> None:
    one, other = rate_limit.RateLimits(store), rate_limit.RateLimits(store)
    for worker in (one, other, one):
        await worker.admit(served.client("a"))
    with pytest.raises(errors.TooManyRequests):
        await other.admit(served.client("a"))


async def test_api_key_without_own_rate_has_that_of_its_application(store: Any, served: Any) -> None:
    limits = rate_limit.RateLimits(store)
    await limits.admit(served.client("c"))
    with pytest.raises(errors.TooManyRequests, match="no more than 1 "):
        await limits.admit(served.client("c"))


async def test_disabled_rate_limit_does_not_use_the_store(store: Any, served: Any) -> None:
    for _ in range(50):
        await rate_limit.RateLimits(store).admit(served.client("d"))
    assert store.operations == []


async def test_unavailable_store_blocks_no_request(store: Any, served: Any) -> None:
    store.away = True
    for _ in range(5):
        await rate_limit.RateLimits(store).admit(served.client("a"))
