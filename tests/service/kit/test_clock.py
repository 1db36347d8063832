"""The clock: monotonic time goes on while the machine is suspended; rate limit windows against a plain model."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.kit import clock

SUSPENDED = 100_000
PROGRAM = "import time; from proxy.kit import clock; print(clock.Clock().monotonic() - time.monotonic())"


def test_monotonic_time_counts_suspends() -> None:
    as_if_suspended = ["unshare", "-Ur", "--fork", "--time", "--boottime", str(SUSPENDED)]
    if subprocess.run([*as_if_suspended, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a time namespace is not permitted")
    ahead = subprocess.run([*as_if_suspended, sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout
    assert float(ahead) == pytest.approx(SUSPENDED, abs=1)


def test_refusal_returns_seconds_until_allowed() -> None:
    turned = clock.ManualClock(100.0)
    limiter = clock.SlidingWindow(clock.Window(1, 10.0), turned)
    limiter.try_take()
    turned.advance(4.0)
    assert limiter.try_take() == 6.0
    turned.advance(6.0)
    assert limiter.try_take() == 0.0


@given(st.integers(1, 4), st.integers(1, 8), st.lists(st.integers(0, 4), max_size=60))
def test_window_agrees_with_counting_all_requests(count: int, seconds: int, steps: list[int]) -> None:
    turned = clock.ManualClock(0.0)
    limiter = clock.SlidingWindow(clock.Window(count, seconds), turned)
    log: list[float] = []
    for step in steps:
        turned.advance(step)
        free = sum(at > turned.now() - seconds for at in log) < count
        assert (limiter.try_take() == 0.0) == free
        if free:
            log.append(turned.now())
