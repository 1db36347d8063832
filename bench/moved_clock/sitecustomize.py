"""Moves the clocks of a Python process, and of those that it starts: imported by Python at its start, before
anything else reads a clock. The file that the environment names has the seconds, which others change meanwhile."""

import mmap
import os
import time
from collections.abc import Callable


def _moved(clock: Callable[[], float], seconds: "memoryview[float]") -> Callable[[], float]:
    def read() -> float:
        return clock() + seconds[0]

    return read


with open(os.environ["V3BRIDGE_BENCH_CLOCK"], "rb") as _file:
    _seconds: "memoryview[float]" = memoryview(mmap.mmap(_file.fileno(), 8, access=mmap.ACCESS_READ)).cast("d")
time.time, time.monotonic = _moved(time.time, _seconds), _moved(time.monotonic, _seconds)
