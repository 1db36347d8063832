"""SIGHUP before the event loop handles it. Imports next to nothing, because it runs before everything else."""

import os
import signal
from collections.abc import Callable
from types import FrameType

_STDIN = 0


def ignore() -> None:
    """Ignore SIGHUP until a command handles it. Where the terminal is gone it ends the process all the same."""
    terminal_is_gone = watch_terminal()

    def handle(number: int, _: FrameType | None) -> None:
        if terminal_is_gone():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGHUP, handle)


def watch_terminal() -> Callable[[], bool]:
    """Return a function that tells whether the terminal at which the process runs now is gone: nothing could stop the
    process there later."""
    at_terminal = os.isatty(_STDIN)
    return lambda: at_terminal and not os.isatty(_STDIN)
