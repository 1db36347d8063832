"""Reports to the service manager's watchdog: as long as the event loop and all workers respond, and no longer.

A program that hangs still exists, so that only its silence lets the manager replace it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from proxy.kit import service_manager

REPORTS = 4  # in the time after which the manager ends a silent program
SILENT_SHARE = 0.5  # of that time, after which a worker without a sign of life does not respond

log = structlog.get_logger()


@asynccontextmanager
async def reporting(
    manager: service_manager.ServiceManager, unresponsive: Callable[[float], Sequence[int]]
) -> AsyncIterator[None]:
    """Report while the block runs, if the manager watches. `unresponsive` returns the numbers of workers that gave no
    sign of life for so many seconds."""
    if manager.watchdog_seconds is None:
        yield
        return
    task = asyncio.create_task(_report(manager, manager.watchdog_seconds, unresponsive), name="watchdog")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _report(
    manager: service_manager.ServiceManager, seconds: float, unresponsive: Callable[[float], Sequence[int]]
) -> None:
    logged: Sequence[int] = ()
    while True:
        silent = unresponsive(seconds * SILENT_SHARE)
        if not silent:
            manager.alive()
        elif silent != logged:
            log.error("workers unresponsive", workers=list(silent))
            manager.status(f"workers that do not respond: {', '.join(map(str, silent))}")
        logged = silent
        await asyncio.sleep(seconds / REPORTS)
