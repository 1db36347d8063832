"""Event loop of a simulated process: virtual time, and one step at a time.

Callbacks run in the order in which they were registered, as asyncio promises; which process runs next, and when I/O
ends, is the world's choice. Work for threads is done in the loop, a seeded moment later.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

Loop: Any = asyncio.AbstractEventLoop  # most of whose methods no gateway uses


class SimulatedLoop(Loop):  # type: ignore[misc] # see above
    """Loop whose `clock` moves by itself; `delay` returns how long a thread takes."""

    def __init__(self, clock: Callable[[], float], delay: Callable[[], float]) -> None:
        self._clock = clock
        self._delay = delay
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()
        self._busy_until: dict[object, float] = {}  # threads, which do one thing after the other
        self.failures: list[str] = []

    @property
    def is_ready(self) -> bool:
        """Whether a callback can run now."""
        now = self._clock()
        while self._timers and (self._timers[0][0] <= now or self._timers[0][2].cancelled()):
            _, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._ready.append(timer)
        return bool(self._ready)

    @property
    def due(self) -> float:
        """When the next timer is due."""
        return self._timers[0][0] if self._timers else float("inf")

    def step(self) -> None:
        """Run one callback: what a process does between two awaits."""
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        asyncio.events._set_running_loop(self)
        try:
            handle._run()
        finally:
            asyncio.events._set_running_loop(None)

    def end(self) -> None:
        """Cancel all tasks and run them to their end, without waiting. For a process that is dead: nothing that it
        does has an effect any more."""
        for _ in range(50):
            for task in asyncio.all_tasks(self):
                task.cancel()
            while self._ready:
                self.step()
            if not asyncio.all_tasks(self):
                break
        self._timers.clear()

    def time(self) -> float:
        return self._clock()

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._clock() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        result = self.create_future()

        def work() -> None:
            try:  # also where nobody waits any more: a thread that has begun is not cancelled
                outcome, error = func(*args), None
            except Exception as raised:
                outcome, error = None, raised
            if not result.done():
                result.set_result(outcome) if error is None else result.set_exception(error)

        when = max(self._clock() + self._delay(), self._busy_until.get(executor, 0.0))
        if executor is not None:
            self._busy_until[executor] = when
        self.call_at(when, work)
        return result

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(f"{context['message']}: {context.get('exception') or context.get('task')!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)
