"""Running the main coroutine of a command that two signals can stop."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; exit with code 1 if a second signal cancels it."""
    with asyncio.Runner() as runner:
        try:
            return runner.run(main)
        except asyncio.CancelledError:
            sys.exit(1)


def stop_on_signal(announce: Callable[[], object] = lambda: None) -> asyncio.Event:
    """Return an event that the first SIGINT or SIGTERM sets, and `announce` says; the second cancels the calling task.

    To be called before a command reports that it is ready, so that it always stops cleanly from then on.
    """
    stop = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one

    def handle() -> None:
        if stop.is_set():
            task.cancel()
        else:
            announce()
        stop.set()

    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, handle)
    return stop
