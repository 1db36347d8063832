"""Running a command's coroutine: on uvloop where it installs, until a signal says stop."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def on_signal() -> asyncio.Event:
    """What SIGINT or SIGTERM sets. Called before a command says that it is up: from then on it ends cleanly."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C interrupts the wait by itself
            loop.add_signal_handler(name, stop.set)
    return stop


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
