"""The supervisor restarts a worker."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from proxy.config import loader
from proxy.kit import clock, shipped
from proxy.telemetry import merging
from proxy.workers import messages, supervisor

SECONDS = 60.0  # that a condition may take before its test fails
REPORT = msgspec.json.encode(messages.StartReport(url="http://127.0.0.1:1")).decode()
ONCE = (sys.executable, "-c", f"print('{REPORT}', flush=True)")


async def test_restart_is_retried_when_the_system_refuses_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = loader.load(shipped.path("config.yaml"), {})
    worker = supervisor._Worker(messages.StartMessage(settings, merging.WorkerSlot(Path(), 1)), clock.SystemClock())
    monkeypatch.setattr(supervisor, "BACKOFF_FIRST", 0.0)
    monkeypatch.setattr(supervisor, "COMMAND", ONCE)
    assert (await worker.start()).public == "http://127.0.0.1:1"
    first = worker._process
    tried = asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def refused(*_: object, **__: object) -> asyncio.subprocess.Process:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
        tried.set()
        raise BlockingIOError("no more processes for now")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    restarts = asyncio.create_task(worker.restart_when_ended())
    try:
        async with asyncio.timeout(SECONDS):
            await tried.wait()
            while worker._process is first and not restarts.done():
                await asyncio.sleep(0.01)
        assert not restarts.done()
    finally:
        restarts.cancel()
        await asyncio.wait((restarts,))
        await worker.stop()
