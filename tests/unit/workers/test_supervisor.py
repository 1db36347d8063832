"""A worker's place is filled again, whatever stood in the way the first time."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from proxy import config
from proxy.kit import clock, shipped
from proxy.telemetry import merging
from proxy.workers import orders, supervisor

SECONDS = 60.0  # that a condition may take before its test fails
REPORT = msgspec.json.encode(orders.Report(url="http://127.0.0.1:1")).decode()
ONCE = (sys.executable, "-c", f"print('{REPORT}', flush=True)")


async def test_a_process_that_the_system_does_not_start_is_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.load(shipped.path("config.yaml"), {})
    worker = supervisor._Worker(orders.Order(settings, merging.Place(Path(), 1)), clock.SystemClock())
    monkeypatch.setattr(supervisor, "PAUSE_FIRST", 0.0)
    monkeypatch.setattr(supervisor, "COMMAND", ONCE)
    assert await worker.start() == "http://127.0.0.1:1"
    first = worker._process
    tried = asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def refused(*_: object, **__: object) -> asyncio.subprocess.Process:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
        tried.set()
        raise BlockingIOError("no more processes for now")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    keeper = asyncio.create_task(worker.keep())
    try:
        async with asyncio.timeout(SECONDS):
            await tried.wait()
            while worker._process is first and not keeper.done():
                await asyncio.sleep(0.01)
        assert not keeper.done()
    finally:
        keeper.cancel()
        await asyncio.wait((keeper,))
        await worker.stop()
