"""Clock of whole processes that a bench moves: of the service with its workers, and of the sandbox."""

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "V3BRIDGE_BENCH_CLOCK"  # names the file with the seconds (sitecustomize.py)


class MovedClock:
    """Clock of the processes that are started while `moving` lasts."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._seconds = memoryview(mmap.mmap(opened.fileno(), 8)).cast("d")

    def advance(self, seconds: float) -> None:
        """Move the clock forward at once."""
        self._seconds[0] += seconds

    def move(self, seconds: float) -> None:
        """Let the clock be so many seconds ahead."""
        self._seconds[0] = seconds


@contextmanager
def moving(folder: Path) -> Iterator[MovedClock]:
    """Give processes that are started from now on a clock that moves."""
    file = folder / "clock"
    file.write_bytes(struct.pack("d", 0.0))
    clock, before = MovedClock(file), dict(os.environ)
    paths = [str(Path(__file__).parent), *filter(None, [before.get("PYTHONPATH")])]
    os.environ |= {VARIABLE: str(file), "PYTHONPATH": os.pathsep.join(paths)}
    try:
        yield clock
    finally:
        for name in (VARIABLE, "PYTHONPATH"):
            os.environ.pop(name)
        os.environ |= {name: before[name] for name in ("PYTHONPATH",) if name in before}
