"""Calls that may block for ever, such as reading a file of a file system that hangs.

In `asyncio.to_thread` such a call would hold the end of the process, too, because that waits for its threads.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def call(function: Callable[[], T], seconds: float) -> T:
    """Call a function in a thread. Raises TimeoutError after so many seconds; the thread then ends when it can."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # a cancelled caller cannot cancel it: the thread sets a result

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="blocking call", daemon=True).start()
    async with asyncio.timeout(seconds):
        return await asyncio.wrap_future(outcome)
