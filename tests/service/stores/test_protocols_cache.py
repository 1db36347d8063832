"""The contract of a shared cache: what SQLite and Redis do alike. A store in memory has none: nobody shares it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from proxy import config
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.stores.protocols import CacheLookup, CacheRecord, CacheStore, CacheUsage

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
SIZE = 1_048_576
NOW = clock.ManualClock().now()
LEASE = 0.6
ALWAYS = float("inf")  # fresh from: no entry is

OpenCache = Callable[..., CacheStore]


@pytest.fixture
async def open_cache(
    store_address: Callable[[str], str], manual_clock: clock.ManualClock, persistent_kind: str
) -> AsyncIterator[OpenCache]:
    """Opens a cache at the same place each time, as another process would; closed with the test."""
    async with contextlib.AsyncExitStack() as stack:

        def opened(size: int = SIZE) -> CacheStore:
            url = config.StoreUrl(store_address(persistent_kind))
            cache = opening.open_cache(url, size, LEASE, manual_clock)
            assert cache is not None
            stack.push_async_callback(cache.aclose)
            return cache

        yield opened


@pytest.fixture
def cache(open_cache: OpenCache) -> CacheStore:
    return open_cache()


def record(
    key: bytes,
    content: bytes = b"content",
    *,
    stored: float = NOW,
    name: str = "demo",
    life: float = 60,
    aliases: tuple[bytes, ...] = (),
) -> CacheRecord:
    return CacheRecord(key, name, stored, stored + life, content, aliases)


async def contents(cache: CacheStore, *keys: bytes) -> list[bytes | None]:
    return [content for content, _ in await cache.look_up(keys, 0.0, claim=False)]


async def claims(cache: CacheStore, *keys: bytes, fresh_from: float = 0.0) -> list[bool]:
    return [claimed for _, claimed in await cache.look_up(keys, fresh_from, claim=True)]


def test_store_in_memory_has_no_shared_cache(manual_clock: clock.ManualClock) -> None:
    assert opening.open_cache(config.StoreUrl("memory:"), SIZE, LEASE, manual_clock) is None


async def test_entries_are_found_by_others_in_the_order_asked(cache: CacheStore, open_cache: OpenCache) -> None:
    await cache.put([record(A, b"a\0\xff"), record(B, b"")])
    assert await contents(open_cache(), C, B, A) == [None, b"", b"a\0\xff"]


async def test_later_entry_replaces_the_one_before(cache: CacheStore, manual_clock: clock.ManualClock) -> None:
    await cache.put([record(A, b"first")])
    manual_clock.advance(5)
    await cache.put([record(A, b"second, longer", stored=manual_clock.now())])
    assert await contents(cache, A) == [b"second, longer"]
    (usage,) = await cache.cache_usage()
    now = manual_clock.now()
    assert usage == CacheUsage("demo", 1, usage.bytes, now, now)


async def test_entry_is_found_by_its_aliases_unless_another_is_newer(cache: CacheStore, open_cache: OpenCache) -> None:
    await cache.put([record(A, b"first", aliases=(B, C)), record(B, b"older", stored=NOW - 10)])
    assert await contents(open_cache(), B, C) == [b"first", b"first"]
    await cache.put([record(B, b"newer", stored=NOW + 1, aliases=(C,))])
    assert await contents(open_cache(), B, C, A) == [b"newer", b"newer", b"first"]


async def test_aliases_of_an_entry_that_is_gone_find_nothing_and_are_claimed(
    cache: CacheStore, manual_clock: clock.ManualClock
) -> None:
    await cache.put([record(A, aliases=(B,))])
    assert await claims(cache, B) == [False]
    manual_clock.advance(61)
    await cache.put([])
    assert await contents(cache, B) == [None]
    assert await claims(cache, B) == [True]
    await cache.put([record(A, stored=manual_clock.now(), aliases=(C,))])
    assert await cache.clear("demo") == 1
    assert await contents(cache, A, C) == [None, None]


async def test_missing_and_old_entries_are_claimed_by_one_owner(cache: CacheStore, open_cache: OpenCache) -> None:
    other = open_cache()
    await cache.put([record(A), record(B, stored=NOW - 30)])
    found = await cache.look_up([A, B, C], NOW - 10, claim=True)
    assert found == [CacheLookup(b"content", False), CacheLookup(b"content", True), CacheLookup(None, True)]
    assert await claims(other, A, B, C, fresh_from=NOW - 10) == [False, False, False]
    assert await claims(other, A, fresh_from=ALWAYS) == [True]


async def test_without_claim_nothing_is_claimed(cache: CacheStore, open_cache: OpenCache) -> None:
    assert await cache.look_up([A], ALWAYS, claim=False) == [CacheLookup(None, False)]
    assert await claims(open_cache(), A) == [True]


async def test_claim_ends_when_its_entry_is_stored(cache: CacheStore, open_cache: OpenCache) -> None:
    other = open_cache()
    await claims(cache, A, B)
    await cache.put([record(A)])
    assert await other.look_up([A, B], 1.0, claim=True) == [CacheLookup(b"content", False), CacheLookup(None, False)]


async def test_released_claim_is_free_and_others_stay(cache: CacheStore, open_cache: OpenCache) -> None:
    other = open_cache()
    assert await claims(cache, A, B) == [True, True]
    await cache.release([A, C])
    assert await claims(other, A, B) == [True, False]
    await cache.release([A])  # of the other owner: no effect
    assert await claims(open_cache(), A) == [False]


async def test_claims_of_a_closed_owner_end(cache: CacheStore, open_cache: OpenCache) -> None:
    await claims(cache, A)
    await cache.aclose()
    await asyncio.sleep(2 * LEASE)
    assert await claims(open_cache(), A) == [True]


async def test_renewed_claim_lasts_longer_than_its_lease(cache: CacheStore, open_cache: OpenCache) -> None:
    await claims(cache, A)
    for _ in range(6):
        await asyncio.sleep(LEASE / 3)
        await cache.renew([A, B])
    other = open_cache()
    assert await claims(other, A, B) == [False, True]


async def test_look_up_at_once_finds_the_same(cache: CacheStore, open_cache: OpenCache, persistent_kind: str) -> None:
    other = open_cache()
    assert cache.look_up_now([A], NOW, True) is None  # the file has to be opened
    await cache.put([record(A), record(B, stored=NOW - 30)])
    await claims(cache)
    found = cache.look_up_now([A, B, C], NOW - 10, True)
    expected = [CacheLookup(b"content", False), CacheLookup(b"content", True), CacheLookup(None, True)]
    assert found == (None if persistent_kind == "redis" else expected)
    assert await claims(other, B, C, fresh_from=NOW - 10) == [found is None] * 2


async def test_entry_that_would_replace_many_is_not_stored(cache: CacheStore, open_cache: OpenCache) -> None:
    await cache.put([record(A)])
    await claims(cache, B)
    await cache.put([record(B, bytes(SIZE // 3)), record(C)])
    assert await contents(cache, A, B, C) == [b"content", None, b"content"]
    assert await claims(open_cache(), B) == [True]


async def test_usage_is_by_application(cache: CacheStore) -> None:
    assert await cache.cache_usage() == []
    await cache.put([record(A), record(B, stored=NOW - 20), record(C, b"x" * 1000, name="other")])
    demo, other = await cache.cache_usage()
    assert (demo.application, demo.entries, demo.oldest, demo.newest) == ("demo", 2, NOW - 20, NOW)
    assert (other.application, other.entries) == ("other", 1)
    assert other.bytes >= 1000 > demo.bytes >= 14


async def test_clear_deletes_one_application_or_all(cache: CacheStore) -> None:
    await cache.put([record(A), record(B, name="other"), record(C)])
    assert await cache.clear("nobody") == 0
    assert await cache.clear("demo") == 2
    assert await contents(cache, A, B, C) == [None, b"content", None]
    assert await cache.clear(None) == 1
    assert await cache.cache_usage() == []


async def test_clear_deletes_thousands(cache: CacheStore) -> None:
    keys = [number.to_bytes(16, "big") for number in range(2_500)]
    await cache.put([record(key, name="other" if number % 5 == 0 else "demo") for number, key in enumerate(keys)])
    assert await cache.clear("demo") == 2_000
    assert [usage.entries for usage in await cache.cache_usage()] == [500]


async def test_oldest_entries_make_room(
    open_cache: OpenCache, manual_clock: clock.ManualClock, cache: CacheStore
) -> None:
    cache, content = open_cache(SIZE), bytes(range(256)) * 40  # about 10 KB
    keys = [number.to_bytes(16, "big") for number in range(300)]
    for key in keys:
        await cache.put([record(key, content, stored=manual_clock.now())])
        manual_clock.advance(0.01)
    kept = [content is not None for content in await contents(cache, *keys)]
    first = kept.index(True)
    assert all(kept[first:])
    assert 60 <= kept.count(True) <= SIZE // len(content)


KEYS = st.sampled_from([A, B, C])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(1, 100), st.binary(max_size=50)),
        st.tuples(st.just("pass"), st.integers(0, 80)),
    ),
    max_size=15,
)


@given(steps=STEPS)
@hypothesis_settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_look_up_agrees_with_a_dictionary(
    cache: CacheStore, manual_clock: clock.ManualClock, steps: list[tuple[object, ...]]
) -> None:
    """Whatever is stored, replaced and expires: an entry is the last one stored, and gone after it has expired."""
    await cache.clear(None)
    expected: dict[bytes, tuple[float, bytes]] = {}
    for step in steps:
        match step:
            case ("put", bytes(key), int(life), bytes(content)):
                await cache.put([record(key, content, stored=manual_clock.now(), life=life)])
                expected[key] = manual_clock.now() + life, content
            case ("pass", int(seconds)):
                manual_clock.advance(seconds)
                await cache.put([])
        expected = {key: entry for key, entry in expected.items() if entry[0] > manual_clock.now()}
        found = await contents(cache, A, B, C)
        assert found == [expected[key][1] if key in expected else None for key in (A, B, C)]
        assert sum(usage.entries for usage in await cache.cache_usage()) == len(expected)
