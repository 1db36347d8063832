"""Tests specific to the Redis store: one hash tag, expiry, and errors without the password."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import redis
from service.stores.test_protocols import NOVEMBER, claim, settlement
from support.redis_server import RedisServer

from proxy import errors
from proxy.kit import clock
from proxy.stores.protocols import CacheRecord, ExhaustedQuota
from proxy.stores.redis import RedisCache, RedisStore

SECRET = "passw0rd-PLANTED"


@pytest.fixture
async def store(redis_server: RedisServer, manual_clock: clock.ManualClock) -> Any:
    opened = RedisStore(redis_server.url, manual_clock)
    yield opened
    await opened.aclose()


@pytest.fixture
def inside(redis_server: RedisServer) -> Any:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        yield client


async def test_every_key_has_the_hash_tag_and_an_expiry_if_temporary(
    store: Any, inside: Any, manual_clock: clock.ManualClock
) -> None:
    await store.heartbeat("worker", 10)
    await store.reserve([claim("a", 5), claim("b", 5)])
    await store.settle(settlement(1, (NOVEMBER, 5, 0), claims="a"))
    await store.mark_exhausted(ExhaustedQuota("demo", manual_clock.now() + 99, "spent"))
    lives = {key.removeprefix("{v3bridge}:core:"): inside.ttl(key) for key in inside.scan_iter()}
    ending = {key: seconds for key, seconds in lives.items() if seconds >= 0}
    assert set(ending) == {"settled:worker"}
    assert ending["settled:worker"] > 6 * 86_400
    assert set(lives) - set(ending) == {
        *("ledger:demo 2023-11", "entries", "owners", "reservations:worker", "exhausted_quotas")
    }


async def test_scripts_are_reloaded_after_a_flush(store: Any, inside: Any) -> None:
    await store.heartbeat("worker", 10)
    inside.script_flush()
    assert await store.reserve([claim("a", 5)]) == [None]


async def test_closed_connection_is_reopened(store: Any, inside: Any) -> None:
    await store.heartbeat("worker", 10)
    inside.client_kill_filter(_type="normal", skipme=True)
    assert await store.reserve([claim("a", 5)]) == [None]


async def test_unreachable_server_is_an_error_without_password(tmp_path: Path, manual_clock: clock.ManualClock) -> None:
    store = RedisStore(f"unix://:{SECRET}@{tmp_path}/nobody.sock", manual_clock)
    for asked in (store.all_usage(), store.heartbeat("worker", 10), store.settle(settlement(1))):
        with pytest.raises(errors.StoreUnavailable, match="Redis") as caught:
            await asked
        assert SECRET not in repr((caught.value, caught.value.__cause__))
    assert SECRET not in repr(store)
    await store.aclose()


async def test_refusing_server_is_an_error(store: Any, inside: Any) -> None:
    inside.set("{v3bridge}:core:entries", "not a set")
    with pytest.raises(errors.StoreUnavailable, match="ResponseError"):
        await store.all_usage()


async def test_invalid_url_is_an_error_without_password(manual_clock: clock.ManualClock) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        RedisStore(f"redis://:{SECRET}@localhost:not-a-port/0", manual_clock)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_cancelled_look_up_leaves_no_response_for_the_next(
    redis_server: RedisServer, inside: Any, manual_clock: clock.ManualClock
) -> None:
    cache = RedisCache(redis_server.url, 2**20, 1.0, manual_clock)
    keys = [bytes([number]) * 16 for number in range(20)]
    now = manual_clock.now()
    await cache.put([CacheRecord(key, "demo", now, now + 60, key) for key in keys])
    inside.client_pause(200, all=True)
    for key in keys[:5]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await cache.look_up([key], 0.0, claim=False)
    for key in keys[5:]:
        assert await cache.look_up([key], 0.0, claim=False) == [(key, False)]
    await cache.aclose()


async def test_every_key_of_the_cache_expires(
    redis_server: RedisServer, inside: Any, manual_clock: clock.ManualClock
) -> None:
    cache = RedisCache(redis_server.url, 2**20, 10.0, manual_clock)
    now = manual_clock.now()
    await cache.put([CacheRecord(b"a" * 16, "demo", now, now + 60, b"content")])
    await cache.look_up([b"b" * 16], 0.0, claim=True)
    lives = {key: inside.ttl(key) for key in inside.scan_iter()}
    assert len(lives) == 4
    assert all(key.startswith("{v3bridge}:core:cache:") and 0 < life <= 86_400 for key, life in lives.items())
    await cache.aclose()
