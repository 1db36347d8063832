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
QUESTION = CacheKey(("demo", "SN74S74N"), model.MappingContext("US", "USD"))
OTHER = CacheKey(("other", "SN74S74N"), model.MappingContext("US", "USD"))
PART = {"v3uid": "5ec397c9af088104", "mpn": "SN74S74N", "octopartUrl": "https://octopart.com/x"}


def memory(time: clock.ManualClock, **settings: Any) -> ResponseCache:
    return ResponseCache(config.CacheSettings(**{"seconds": 60, "stale_seconds": 600, **settings}), time)


def keep(
    kept: ResponseCache, renderer: ItemRenderer, question: CacheKey = QUESTION, details: Any = None
) -> RenderedResult:
    records = msgspec.convert([PART], list[renderer.part.record])  # type: ignore[name-defined]
    encoded = msgspec.json.encode(records)
    answer = RenderedResult(renderer.items(records, question.context), 7, details=details, records=encoded)
    return kept.store(question, renderer, answer)


def shown(answer: RenderedResult | None) -> Any:
    return answer and json.loads(answer.items)


def test_entry_is_fresh_then_stale_for_its_seconds(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    assert kept.get(QUESTION, renderer("mpn")) is None
    first = keep(kept, renderer("mpn"), details="counts")
    assert first.until == time.monotonic() + 60
    time.advance(59.9)
    assert kept.get(QUESTION, renderer("mpn")) == first._replace(records=b"")
    time.advance(0.1)
    assert kept.get(QUESTION, renderer("mpn")) is None
    assert kept.get(QUESTION, renderer("mpn"), stale=True) == first._replace(until=0.0, records=b"")
    time.advance(600)
    assert kept.get(QUESTION, renderer("mpn"), stale=True) is None


def test_smaller_projection_is_served_from_the_entry(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn", "octopart_url", "uid"))
    poorer = kept.get(QUESTION, renderer("octopart_url"))
    assert poorer is not None
    assert (shown(poorer), poorer.hits) == ([{"octopart_url": "https://octopart.com/x"}], 7)
    assert kept.get(QUESTION, renderer("octopart_url")) == poorer


def test_larger_projection_is_a_miss(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn"))
    assert kept.get(QUESTION, renderer("mpn", "octopart_url")) is None
    held = [
        kept.holds(QUESTION, renderer(*fields)) for fields in (("mpn",), ("octopart_url",), ("mpn", "octopart_url"))
    ]
    assert held == [True, False, False]


def test_disjoint_projections_keep_separate_entries(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn"))
    keep(kept, renderer("octopart_url"))
    assert shown(kept.get(QUESTION, renderer("mpn"))) == [{"mpn": "SN74S74N"}]
    assert shown(kept.get(QUESTION, renderer("octopart_url"))) == [{"octopart_url": "https://octopart.com/x"}]
    assert kept.get(QUESTION, renderer("mpn", "octopart_url")) is None


def test_larger_result_replaces_a_smaller_one(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn"))
    time.advance(30)
    keep(kept, renderer("mpn", "octopart_url"))
    time.advance(59)
    assert shown(kept.get(QUESTION, renderer("mpn"))) == [{"mpn": "SN74S74N"}]


def test_applications_have_separate_entries(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn"))
    assert kept.get(OTHER, renderer("mpn")) is None


def test_oldest_entry_is_evicted(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time, bytes=2_200)
    questions = [CacheKey(("demo", number), QUESTION.context) for number in range(6)]
    for question in questions:
        keep(kept, renderer("mpn"), question)
    left = [question.key[1] for question in questions if kept.get(question, renderer("mpn"))]  # type: ignore[index]
    assert left == [3, 4, 5]


def test_entry_larger_than_the_cache_is_not_stored(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time, bytes=300)
    keep(kept, renderer("mpn"))
    assert kept.get(QUESTION, renderer("mpn")) is None


def test_items_of_every_projection_count(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time, bytes=700)
    keep(kept, renderer("mpn", "octopart_url", "uid"))
    keep(kept, renderer("mpn"), OTHER)
    assert kept.get(QUESTION, renderer("mpn", "octopart_url", "uid")) is None
    assert kept.get(OTHER, renderer("mpn")) is not None


@pytest.mark.parametrize("projections", [("mpn",), ("mpn", "uid")])
def test_repeated_response_is_the_same_bytes_object(
    time: clock.ManualClock, renderer: Renderers, projections: tuple[str, ...]
) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn", "octopart_url", "uid"))
    first, second = (kept.get(QUESTION, renderer(*projections)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.items is second.items


def test_entry_that_expires_during_a_read_is_served(renderer: Renderers) -> None:
    class Running(clock.ManualClock):
        """Every look takes a second."""

        def monotonic(self) -> float:
            self.advance(1)
            return super().monotonic()

    kept = memory(Running(), seconds=8, stale_seconds=0)
    keep(kept, renderer("mpn", "uid"))
    found = []
    while (answer := kept.get(QUESTION, renderer("mpn"))) is not None:
        found.append(shown(answer))
        kept = memory(Running(), seconds=8 - len(found), stale_seconds=0)
        keep(kept, renderer("mpn", "uid"))
    assert found
    assert all(each == [{"mpn": "SN74S74N"}] for each in found)


def test_newer_variant_does_not_let_an_older_one_live_longer(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time, seconds=60, stale_seconds=86_400)
    keep(kept, renderer("mpn"))
    time.advance(86_000)
    keep(kept, renderer("octopart_url"))
    time.advance(399)
    assert kept.get(QUESTION, renderer("mpn"), stale=True) is not None
    time.advance(1)
    assert kept.get(QUESTION, renderer("mpn"), stale=True) is None
    assert kept.get(QUESTION, renderer("octopart_url"), stale=True) is not None


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
    memory.add(QUESTION, found)
    time.advance(later)
    usable = [max(0.0, age) + later for age, _ in ages if age >= -5]
    fresh = memory.get(QUESTION, asked)
    assert (fresh is not None) == any(age < seconds for age in usable)
    assert fresh is None or fresh.until <= time.monotonic() + seconds
    old = memory.get(QUESTION, asked, stale=True)
    if old is not None:
        assert max(0.0, old.details) + later < min(seconds + stale, 86_400) + 0.01


def test_clear_removes_the_entries_of_one_application_or_all(time: clock.ManualClock, renderer: Renderers) -> None:
    kept = memory(time)
    keep(kept, renderer("mpn"))
    keep(kept, renderer("mpn"), OTHER)
    entries, size = kept.usage()
    assert entries == 2
    kept.clear("demo")
    assert kept.get(QUESTION, renderer("mpn"), stale=True) is None
    assert kept.get(OTHER, renderer("mpn")) is not None
    assert kept.usage() == (1, size // 2)
    kept.clear(None)
    assert kept.usage() == (0, 0)
