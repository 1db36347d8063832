"""Running a program's coroutine: on uvloop where it installs, until a signal says stop."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_STDIN = 0


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Exit code 1 where a second signal cut it off."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            return runner.run(main)
        except asyncio.CancelledError:
            sys.exit(1)


def on_signal() -> asyncio.Event:
    """What the first SIGINT or SIGTERM sets; the second cancels the calling task.

    Called before a command says that it is up: from then on it ends cleanly.
    """
    stop = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one

    def told() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    for name in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C interrupts the wait by itself
            loop.add_signal_handler(name, told)
    return stop


def on_hangup(stop: asyncio.Event, ignored: Callable[[], None]) -> None:
    """Have `ignored` called for each SIGHUP, which then ends nothing.

    A program whose terminal has gone is another matter: nobody could end it there any more, so it is stopped.
    """
    at_terminal = os.isatty(_STDIN)

    def told() -> None:
        if at_terminal and not os.isatty(_STDIN):
            stop.set()
        else:
            ignored()

    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, told)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
