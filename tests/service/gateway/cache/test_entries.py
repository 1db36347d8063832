"""Tests of cache entries: expiry, byte limit, and reuse for projections of fewer fields."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import config, model
from proxy.gateway.cache.cached_records import CachedRecords
from proxy.gateway.cache.entries import CacheKey, ItemRenderer, RenderedResult, ResponseCache
from proxy.kit import clock

Renderers = Callable[..., ItemRenderer]
KEY = CacheKey(("demo", "SN74S74N"), model.MappingContext("US", "USD"))
OTHER = CacheKey(("other", "SN74S74N"), model.MappingContext("US", "USD"))
PART = {"v3uid": "5ec397c9af088104", "mpn": "SN74S74N", "octopartUrl": "https://octopart.com/x"}


def memory(time: clock.ManualClock, **settings: Any) -> ResponseCache:
    return ResponseCache(config.CacheSettings(**{"seconds": 60, "stale_seconds": 600, **settings}), time)


def store(cache: ResponseCache, renderer: ItemRenderer, key: CacheKey = KEY, details: Any = None) -> RenderedResult:
    records = msgspec.convert([PART], list[renderer.part.record])  # type: ignore[name-defined]
    encoded = msgspec.json.encode(records)
    result = RenderedResult(
        renderer.items(records, key.context),
        7,
        details=details,
        records=encoded,
        parts=1,
        names=renderer.names(records, encoded),
    )
    return cache.store(key, renderer, result)


def shown(result: RenderedResult | None) -> Any:
    return result and json.loads(result.items)


def test_newer_variant_does_not_let_an_older_one_live_longer(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time, seconds=60, stale_seconds=86_400)
    store(cache, renderer("mpn"))
    time.advance(86_000)
    store(cache, renderer("octopart_url"))
    time.advance(399)
    assert cache.get(KEY, renderer("mpn"), stale=True) is not None
    time.advance(1)
    assert cache.get(KEY, renderer("mpn"), stale=True) is None
    assert cache.get(KEY, renderer("octopart_url"), stale=True) is not None


STORED = st.lists(st.tuples(st.floats(-90_000, 90_000), st.sets(st.sampled_from("abc"), min_size=1)), max_size=5)


@given(ages=STORED, lifetime=st.tuples(st.integers(1, 86_400), st.integers(0, 86_400)), later=st.integers(0, 200_000))
def test_no_shared_record_is_used_beyond_its_lifetime(
    renderer: Renderers, ages: Iterable[tuple[float, set[str]]], lifetime: tuple[int, int], later: int
) -> None:
    """Whenever it was stored, by whatever clock: fresh for `seconds`, stale for the rest, gone after a day."""
    time = clock.ManualClock()
    seconds, stale = lifetime
    memory = ResponseCache(config.CacheSettings(seconds=seconds, stale_seconds=stale), time)
    asked = renderer("mpn")
    records = b'[{"mpn": "SN74S74N"}]'
    found = [CachedRecords(asked.part.fields | extra, records, 1, age, time.now() - age) for age, extra in ages]
    memory.add(KEY, found)
    time.advance(later)
    usable = [max(0.0, age) + later for age, _ in ages if age >= -5]
    fresh = memory.get(KEY, asked)
    assert (fresh is not None) == any(age < seconds for age in usable)
    assert fresh is None or fresh.until <= time.monotonic() + seconds
    old = memory.get(KEY, asked, stale=True)
    if old is not None:
        assert max(0.0, old.details) + later < min(seconds + stale, 86_400) + 0.01


def test_clear_removes_the_entries_of_one_application_or_all(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store(cache, renderer("mpn"))
    store(cache, renderer("mpn"), OTHER)
    entries, size = cache.usage()
    assert entries == 2
    cache.clear("demo")
    assert cache.get(KEY, renderer("mpn"), stale=True) is None
    assert cache.get(OTHER, renderer("mpn")) is not None
    assert cache.usage() == (1, size // 2)
    cache.clear(None)
    assert cache.usage() == (0, 0)


def page(start: int, limit: int) -> CacheKey:
    return CacheKey(("demo", "match", "SN74*", start, limit), KEY.context)


def store_page(
    cache: ResponseCache, renderer: ItemRenderer, key: CacheKey, numbers: Iterable[int], hits: int, head: Any = None
) -> RenderedResult:
    records = msgspec.json.encode([{**PART, "v3uid": f"{n:016x}", "mpn": str(n)} for n in numbers])
    parts = renderer.part.decode_list(records)
    items, names = renderer.items(parts, key.context), renderer.names(parts, records)
    return cache.store(key, renderer, RenderedResult(items, hits, records=records, parts=len(parts), names=names), head)


def numbers(result: RenderedResult | None) -> list[int] | None:
    return None if result is None else [int(item["mpn"]) for item in json.loads(result.items)]


def test_page_is_put_together_of_fresh_pages_beside_its_own_stale_entry(
    time: clock.ManualClock, renderer: Renderers
) -> None:
    cache = memory(time)
    store_page(cache, renderer("mpn"), page(0, 2), [1, 2], 9)
    time.advance(61)
    store_page(cache, renderer("mpn"), page(0, 4), [3, 4, 5, 6], 9)
    assert numbers(cache.get(page(0, 2), renderer("mpn"))) == [3, 4]


def test_page_is_put_together_of_pages_with_its_fields(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store_page(cache, renderer("mpn", "uid"), page(0, 4), [1, 2, 3, 4], 9)
    store_page(cache, renderer("mpn"), page(4, 2), [5, 6], 9)
    assert numbers(cache.get(page(1, 2), renderer("mpn", "uid"))) == [2, 3]


def test_page_has_no_more_parts_than_hits(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store_page(cache, renderer("mpn"), page(0, 3), [1, 2, 3], 9)
    head = cache.head(page(0, 5), renderer("mpn"))
    assert head is not None
    shrunk = store_page(cache, renderer("mpn"), page(0, 5), [], 2, head)
    assert (numbers(shrunk), shrunk.hits) == ([1, 2, 3], 3)
    store_page(cache, renderer("mpn"), page(3, 2), [], 2)
    found = cache.get(page(0, 4), renderer("mpn"))
    assert found is not None
    assert (numbers(found), found.hits) == ([1, 2], 2)


def test_part_is_found_in_an_older_entry_with_its_fields(time: clock.ManualClock, renderer: Renderers) -> None:
    cache, part = memory(time), CacheKey(("demo", "part", f"{1:016x}"), KEY.context)
    store_page(cache, renderer("mpn", "uid"), page(0, 1), [1], 9)
    store_page(cache, renderer("mpn"), KEY, [1, 2], 2)
    assert numbers(cache.get(part, renderer("mpn", "uid"))) == [1]


def test_page_is_found_in_a_newer_one_than_that_which_covers_it(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time, stale_seconds=0)
    store_page(cache, renderer("mpn"), page(0, 2), [1, 2], 9)
    time.advance(50)
    store_page(cache, renderer("mpn"), page(2, 2), [3, 4], 9)
    head = cache.head(page(0, 5), renderer("mpn"))
    store_page(cache, renderer("mpn"), page(0, 5), [5], 9, head)
    time.advance(20)
    assert cache.get(page(0, 5), renderer("mpn")) is None
    assert numbers(cache.get(page(2, 1), renderer("mpn"))) == [3]


def test_page_lists_no_part_twice_that_has_moved(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store_page(cache, renderer("mpn"), page(0, 2), [1, 2], 9)
    store_page(cache, renderer("mpn"), page(2, 2), [2, 3], 9)
    assert cache.get(page(0, 4), renderer("mpn")) is None
    head = cache.head(page(0, 4), renderer("mpn"))
    assert numbers(store_page(cache, renderer("mpn"), page(0, 4), [2, 3], 9, head)) == [1, 2, 3]


def test_head_of_a_page_does_not_come_back_after_a_clearing(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store_page(cache, renderer("mpn"), page(0, 2), [1, 2], 9)
    head = cache.head(page(0, 4), renderer("mpn"))
    cache.clear("demo")
    result = store_page(cache, renderer("mpn"), page(0, 4), [3, 4], 9, head)
    assert (numbers(result), result.until) == ([1, 2, 3, 4], 0.0)
    assert cache.get(page(0, 4), renderer("mpn")) is None


@pytest.mark.parametrize("newer", [("part", f"{1:016x}"), ("match", "other", 0, 1)])
def test_older_page_does_not_replace_a_newer_part(
    time: clock.ManualClock, renderer: Renderers, newer: tuple[Any, ...]
) -> None:
    cache = memory(time)
    store_page(cache, renderer("mpn", "uid"), page(0, 2), [1, 2], 9)
    head = cache.head(page(0, 4), renderer("mpn", "uid"))
    time.advance(50)
    store_page(cache, renderer("mpn", "uid"), CacheKey(("demo", *newer), KEY.context), [1], 1)
    store_page(cache, renderer("mpn", "uid"), page(0, 4), [3, 4], 9, head)
    found = cache.get(CacheKey(("demo", "part", f"{1:016x}"), KEY.context), renderer("mpn", "uid"))
    assert found is not None
    assert found.stored == time.monotonic()
