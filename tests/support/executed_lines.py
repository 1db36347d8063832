"""How much work is done, counted in executed lines of this program, not in time: the same on every machine."""

import sys
from collections.abc import Generator
from types import FrameType
from typing import Any


def of_slices(work: Generator[None, None, Any]) -> list[int]:
    """The lines that each slice of some work executes."""
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
