"""Time limit of a test: a test that hangs fails like any other, with the stacks of its threads and tasks.

The limit is a signal, which ends blocking calls too (a read of a pipe, `Popen.wait`). It cannot end another thread:
`asyncio.timeout` around `asyncio.to_thread(read)` waits for the thread, and so does the end of the event loop. Tests
wait for a descriptor with `loop.add_reader`, or read with a timeout. faulthandler_timeout (Makefile) ends such a
process, as the last resort.
"""

import asyncio
import contextlib
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

# A failure that something swallows, such as a callback of the event loop, is raised again.
AGAIN_SECONDS = 5.0


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Fail the test if the block takes longer; in the main thread only, the only one that gets signals."""

    def fail(_number: int, frame: FrameType | None) -> None:
        sys.stderr.write(_stacks())
        raise pytest.fail.Exception(f"the test took longer than {seconds:g} s; all stacks are in its standard error")

    handler = signal.signal(signal.SIGALRM, fail)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, AGAIN_SECONDS)  # of an enclosing limit; 0 is none
        signal.signal(signal.SIGALRM, handler)


async def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)


def _stacks() -> str:
    """The stacks of all threads, and of the tasks of the event loop, whose thread only shows that it waits."""
    parts = [
        f"thread {number}:\n{''.join(traceback.format_stack(frame))}" for number, frame in sys._current_frames().items()
    ]
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # no event loop runs
        tasks = set()
    for task in tasks:
        frames = "".join(traceback.format_stack(frame)[-1] for frame in task.get_stack())
        parts.append(f"task {task.get_name()} of {task.get_coro()}:\n{frames}")
    return "\n".join(parts)
