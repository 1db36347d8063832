"""Measure work in executed lines of this program instead of time, independent of the machine."""

import sys
from collections.abc import Generator
from types import FrameType
from typing import Any


def count_per_slice(work: Generator[None, None, Any]) -> list[int]:
    """The number of lines that each step of a generator executes."""
    found = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if "/proxy/" not in frame.f_code.co_filename:
            return None
        found[-1] += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        while next(work, work) is not work:
            found.append(0)
    finally:
        sys.settrace(before)
    return found
