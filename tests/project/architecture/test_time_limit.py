"""A test that hangs fails with the stacks of its threads and tasks, whatever it waits for."""

import asyncio
import os
import signal
import time
from collections.abc import Callable

import pytest
from support import time_limit


def _sleep() -> None:
    time.sleep(60)


def _read_a_pipe() -> None:
    reading, writing = os.pipe()
    try:
        os.read(reading, 1)
    finally:
        os.close(reading)
        os.close(writing)


def _await() -> None:
    async def wait_for_nothing() -> None:
        await asyncio.Event().wait()

    asyncio.run(wait_for_nothing())


@pytest.mark.parametrize(
    "hang, frame",
    [(_sleep, "in _sleep"), (_read_a_pipe, "in _read_a_pipe"), (_await, "in wait_for_nothing")],
)
def test_a_hanging_test_fails_with_its_stacks(
    hang: Callable[[], None], frame: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"longer than 0\.1 s"), time_limit.limited(0.1):
        hang()
    assert frame in capsys.readouterr().err


def test_a_failure_that_was_swallowed_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "AGAIN_SECONDS", 0.1)
    with time_limit.limited(0.1):
        for _ in range(2):
            with pytest.raises(pytest.fail.Exception):
                _sleep()


def test_a_limit_within_a_limit_leaves_the_outer_one() -> None:
    outer, _ = signal.getitimer(signal.ITIMER_REAL)
    with time_limit.limited(1):
        pass
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= outer
