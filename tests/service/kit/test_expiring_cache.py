"""Cache bounded by size and time, compared with a plain model of it on random operations."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from proxy.kit.clock import ManualClock
from proxy.kit.expiring_cache import ExpiringCache

SIZE_MAX = 10

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(1, SIZE_MAX + 2), st.integers(0, 5)),
        st.tuples(st.just("get"), st.integers(0, 5)),
        st.tuples(st.just("advance"), st.integers(1, 3)),
    )
)


@given(OPERATIONS)
@example([("put", 0, 1, 1), ("put", 1, 1, 0), ("put", 0, SIZE_MAX + 1, 0)])  # expired, and nothing is stored
def test_entries_last_until_they_expire_or_the_least_recently_used_are_evicted(
    operations: list[tuple[object, ...]],
) -> None:
    clock = ManualClock()
    cache: ExpiringCache[object, int] = ExpiringCache(SIZE_MAX, clock)
    expected: list[tuple[object, int, int, float]] = []  # key, value, size and expiry, the most recently used last
    for number, operation in enumerate(operations):
        match operation:
            case ("advance", int(seconds)):
                clock.advance(seconds)
            case ("get", key):
                found = [each for each in expected if each[0] == key and each[3] > clock.monotonic()]
                expected = [each for each in expected if each[0] != key] + found
                assert cache.get(key) == (found[0][1] if found else None)
            case ("put", key, int(size), int(seconds)):
                until = clock.monotonic() + seconds
                cache.put(key, number, size, until)
                expected = [each for each in expected if each[0] != key]
                if size <= SIZE_MAX:
                    expected.append((key, number, size, until))
                while expected and (_size(expected) > SIZE_MAX or expected[0][3] <= clock.monotonic()):
                    del expected[0]
        assert cache.size == _size(expected) <= SIZE_MAX


def _size(entries: list[tuple[object, int, int, float]]) -> int:
    return sum(size for _, _, size, _ in entries)


def test_clear_removes_what_fulfils_the_condition_and_its_size() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(SIZE_MAX, ManualClock())
    for number, key in enumerate(("a1", "b1", "a2")):
        cache.put(key, number, 2, math.inf)
    cache.clear(lambda key: key.startswith("a"))
    assert (len(cache), cache.size, cache.get("b1"), cache.get("a1")) == (1, 2, 1, None)
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)
