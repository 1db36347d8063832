"""Tests of cache entries: expiry, byte limit, and reuse for projections of fewer fields."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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


def test_entry_is_fresh_then_stale_for_its_seconds(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    assert cache.get(KEY, renderer("mpn")) is None
    first = store(cache, renderer("mpn"), details="counts")
    assert first.until == time.monotonic() + 60
    time.advance(59.9)
    assert cache.get(KEY, renderer("mpn")) == replace(first, projection=renderer("mpn").key)
    time.advance(0.1)
    assert cache.get(KEY, renderer("mpn")) is None
    assert cache.get(KEY, renderer("mpn"), stale=True) == replace(
        first, until=0.0, projection=renderer("mpn").key, parts=0
    )
    time.advance(600)
    assert cache.get(KEY, renderer("mpn"), stale=True) is None


def test_smaller_projection_is_served_from_the_entry(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store(cache, renderer("mpn", "octopart_url", "uid"))
    poorer = cache.get(KEY, renderer("octopart_url"))
    assert poorer is not None
    assert (shown(poorer), poorer.hits) == ([{"octopart_url": "https://octopart.com/x"}], 7)
    assert cache.get(KEY, renderer("octopart_url")) == poorer


def test_larger_projection_is_a_miss(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store(cache, renderer("mpn"))
    assert cache.get(KEY, renderer("mpn", "octopart_url")) is None
    held = [cache.holds(KEY, renderer(*fields)) for fields in (("mpn",), ("octopart_url",), ("mpn", "octopart_url"))]
    assert held == [True, False, False]


def test_disjoint_projections_keep_separate_entries(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store(cache, renderer("mpn"))
    store(cache, renderer("octopart_url"))
    assert shown(cache.get(KEY, renderer("mpn"))) == [{"mpn": "SN74S74N"}]
    assert shown(cache.get(KEY, renderer("octopart_url"))) == [{"octopart_url": "https://octopart.com/x"}]
    assert cache.get(KEY, renderer("mpn", "octopart_url")) is None


def test_larger_result_replaces_a_smaller_one(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store(cache, renderer("mpn"))
    time.advance(30)
    store(cache, renderer("mpn", "octopart_url"))
    time.advance(59)
    assert shown(cache.get(KEY, renderer("mpn"))) == [{"mpn": "SN74S74N"}]


def test_applications_have_separate_entries(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time)
    store(cache, renderer("mpn"))
    assert cache.get(OTHER, renderer("mpn")) is None


def test_oldest_entry_is_evicted(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time, bytes=2_200)
    questions = [CacheKey(("demo", number), KEY.context) for number in range(6)]
    for key in questions:
        store(cache, renderer("mpn"), key)
    left = [key.key[1] for key in questions if cache.get(key, renderer("mpn"))]  # type: ignore[index]
    assert left == [3, 4, 5]


def test_entry_larger_than_the_cache_is_not_stored(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time, bytes=300)
    store(cache, renderer("mpn"))
    assert cache.get(KEY, renderer("mpn")) is None


def test_items_of_every_projection_count(time: clock.ManualClock, renderer: Renderers) -> None:
    cache = memory(time, bytes=700)
    store(cache, renderer("mpn", "octopart_url", "uid"))
    store(cache, renderer("mpn"), OTHER)
    assert cache.get(KEY, renderer("mpn", "octopart_url", "uid")) is None
    assert cache.get(OTHER, renderer("mpn")) is not None


@pytest.mark.parametrize("projections", [("mpn",), ("mpn", "uid")])
def test_repeated_response_is_the_same_bytes_object(
    time: clock.ManualClock, renderer: Renderers, projections: tuple[str, ...]
) -> None:
    cache = memory(time)
    store(cache, renderer("mpn", "octopart_url", "uid"))
    first, second = (cache.get(KEY, renderer(*projections)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.items is second.items


def test_entry_that_expires_during_a_read_is_served(renderer: Renderers) -> None:
    class Running(clock.ManualClock):
        """Every look takes a second."""

        def monotonic(self) -> float:
            self.advance(1)
            return super().monotonic()

    cache = memory(Running(), seconds=8, stale_seconds=0)
    store(cache, renderer("mpn", "uid"))
    found = []
    while (result := cache.get(KEY, renderer("mpn"))) is not None:
        found.append(shown(result))
        cache = memory(Running(), seconds=8 - len(found), stale_seconds=0)
        store(cache, renderer("mpn", "uid"))
    assert found
    assert all(each == [{"mpn": "SN74S74N"}] for each in found)


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
