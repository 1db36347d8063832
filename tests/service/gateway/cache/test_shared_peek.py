"""Tests of look-ups that claim nothing, and of waiting until results are stored."""

from service.gateway.cache.test_shared import SETTINGS, DictionaryCache, application, query, records

from proxy.gateway.cache import shared
from proxy.telemetry import metrics


def key_of(cache: shared.SharedCache, *parts: object) -> bytes:
    key = cache.key(application(), query(*parts))
    assert key is not None
    return key


def opened(store: DictionaryCache, counts: metrics.Metrics) -> shared.SharedCache:
    return shared.SharedCache(store, SETTINGS, b"", claims=True, metrics=counts)


async def test_peek_finds_what_was_flushed_and_claims_nothing(counted: metrics.Metrics) -> None:
    store = DictionaryCache()
    cache = opened(store, counted)
    await cache.flush()  # nothing to store
    cache.put(application(), key_of(cache, "known"), records(counted.clock.now()))
    await cache.flush()
    known, unknown = key_of(cache, "known"), key_of(cache, "unknown")
    assert list(store.entries) == [known]
    found, missing = await cache.peek([known, unknown])
    assert [len(found), missing] == [1, []]
    assert store.claims == {}
    assert await cache.peek([]) == []
    await cache.close()


async def test_peek_tries_a_store_again_that_has_just_failed(counted: metrics.Metrics) -> None:
    store = DictionaryCache()
    cache = opened(store, counted)
    cache.put(application(), key_of(cache, "known"), records(counted.clock.now()))
    await cache.flush()
    known = key_of(cache, "known")
    store.away = True
    assert await cache.peek([known]) == [[]]
    store.away = False
    assert len((await cache.peek([known]))[0]) == 1
    await cache.close()


async def test_close_stores_what_waits(counted: metrics.Metrics) -> None:
    store = DictionaryCache()
    cache = opened(store, counted)
    cache.start()
    cache.put(application(), key_of(cache, 1), records(counted.clock.now()))
    await cache.close()
    assert list(store.entries) == [key_of(cache, 1)]
    assert store.operations[-1] == "aclose"


async def test_entry_ends_with_its_oldest_selection(counted: metrics.Metrics) -> None:
    store, now = DictionaryCache(), counted.clock.now()
    cache = opened(store, counted)
    cache.put(application(), key_of(cache, 1), [*records(now), *records(now - 50)])
    await cache.close()
    entry = store.entries[key_of(cache, 1)]
    assert (entry.stored, entry.until) == (now, now - 50 + SETTINGS.lifetime)
