"""Rate limit windows, with a manual clock and against a plain model."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.kit import clock, windows


def taken(limiter: windows.Windows, times: int) -> int:
    return sum(limiter.try_take() == 0.0 for _ in range(times))


def test_refusal_returns_seconds_until_allowed() -> None:
    turned = clock.ManualClock(100.0)
    limiter = windows.Windows([windows.Window(1, 10.0)], turned)
    limiter.try_take()
    turned.advance(4.0)
    assert limiter.try_take() == 6.0
    turned.advance(6.0)
    assert limiter.try_take() == 0.0


def test_longest_wait_of_all_windows_is_returned() -> None:
    turned = clock.ManualClock(0.0)
    limiter = windows.Windows([windows.Window(2, 1.0), windows.Window(3, 60.0)], turned)
    assert taken(limiter, 3) == 2
    turned.advance(1.0)
    assert taken(limiter, 2) == 1
    assert limiter.try_take() == 59.0


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8)), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), max_size=60),
)
def test_windows_agree_with_counting_all_requests(limits: list[tuple[int, int]], steps: list[int]) -> None:
    turned = clock.ManualClock(0.0)
    limiter = windows.Windows([windows.Window(count, seconds) for count, seconds in limits], turned)
    log: list[float] = []
    for step in steps:
        turned.advance(step)
        free = all(sum(at > turned.now() - seconds for at in log) < count for count, seconds in limits)
        assert (limiter.try_take() == 0.0) == free
        if free:
            log.append(turned.now())
