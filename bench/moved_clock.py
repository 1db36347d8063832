"""`python -m bench.moved_clock FILE ARGUMENT …`: the program `v3bridge ARGUMENT …` with a clock that FILE moves.

The file holds the seconds that wall clock and monotonic clock of the program are ahead. Timers of the event loop keep
their own time, so that nothing waits less.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

from proxy.kit import clock

_SECONDS = struct.Struct("d")


class MovedClock:
    """Clock that is ahead by the seconds in a file, which processes share."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(_SECONDS.pack(0.0))
        with file.open("r+b") as opened:
            self._ahead = mmap.mmap(opened.fileno(), _SECONDS.size)

    def move(self, seconds: float) -> None:
        """Let the clock be so many seconds ahead."""
        self._ahead[:] = _SECONDS.pack(seconds)

    def now(self) -> float:
        return time.time() + float(_SECONDS.unpack(self._ahead)[0])

    def monotonic(self) -> float:
        return time.monotonic() + float(_SECONDS.unpack(self._ahead)[0])


if __name__ == "__main__":
    from proxy.cli import main

    moved = MovedClock(Path(sys.argv.pop(1)))
    clock.SystemClock = lambda: moved  # type: ignore[misc,assignment,return-value]
    main.main()
