"""What goes on while a test blocks: servers, by an event loop in a thread; and the messages of a browser's console."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from selenium import webdriver

T = TypeVar("T")

PATIENCE = 30.0  # seconds for a server to start or to end


class Background:
    """Event loop in a thread, for asynchronous servers. They are stopped at the end, the last one first."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="servers", daemon=True)
        self._stack = AsyncExitStack()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.run(self._stack.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()

    def enter(self, server: AbstractAsyncContextManager[T]) -> T:
        """Start a server; return the value of its `async with`."""
        return self.run(self._stack.enter_async_context(server))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the servers; return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)


def read_console(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return the entries since the last call."""
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]
