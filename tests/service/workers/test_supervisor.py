"""The supervisor restarts workers: those that ended, and those that cannot serve with a new configuration."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.config import ReloadResult, loader
from proxy.kit import clock, shipped
from proxy.workers import messages, supervisor

SECONDS = 60.0  # that a condition may take before its test fails
REPORT = msgspec.json.encode(messages.StartReport(url="http://127.0.0.1:1")).decode()
ONCE = (sys.executable, "-c", f"print('{REPORT}', flush=True)")

FAILING_COMMIT = """
import os
from proxy.workers import messages
send = lambda report: os.write(1, messages.write_report(report))
messages.read_start(0)
send(messages.StartReport(url="http://127.0.0.1:1"))
reader = messages.MessageReader()
while data := os.read(0, 65536):
    for message in reader.read(data):
        if isinstance(message, messages.StopMessage):
            raise SystemExit
        is_commit = isinstance(message, messages.CallMessage) and message.method == "commit"
        send(messages.Acknowledgement(message.number, "internal error: KeyError" if is_commit else ""))
"""
ACKNOWLEDGING = FAILING_COMMIT.replace("if is_commit", "if False")
SILENT = FAILING_COMMIT.partition("        is_commit")[0]


async def test_worker_that_cannot_serve_with_a_configuration_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = loader.load(shipped.path("config.yaml"), {})
    worker = supervisor.Worker(messages.StartMessage(settings, messages.WorkerSlot(Path(), 1)), clock.SystemClock())
    monkeypatch.setattr(supervisor, "COMMAND", (sys.executable, "-c", FAILING_COMMIT))
    service = supervisor.WorkerService(await worker.start(), [worker], lambda each: each)
    try:
        async with asyncio.timeout(SECONDS):
            await service.prepare(settings)
            await service.commit()
            while worker.is_running:
                await asyncio.sleep(0.01)
    finally:
        await worker.stop()


async def test_reload_does_not_wait_for_a_worker_without_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings, time = loader.load(shipped.path("config.yaml"), {}), clock.ManualClock()
    slots = [messages.WorkerSlot(tmp_path, number) for number in (1, 2)]
    slots[1].sign_life()
    workers = [supervisor.Worker(messages.StartMessage(settings, slot), time) for slot in slots]
    for worker, program in zip(workers, (ACKNOWLEDGING, SILENT), strict=True):
        monkeypatch.setattr(supervisor, "COMMAND", (sys.executable, "-c", program))
        urls = await worker.start()
    service = supervisor.WorkerService(urls, workers, lambda each: each)

    async def reload() -> None:
        await service.prepare(settings)
        await service.commit()
        await service.report(ReloadResult("reloaded", 0.0))

    reloading = asyncio.create_task(reload())
    try:
        async with asyncio.timeout(supervisor.PREPARE_SECONDS / 2):
            while not reloading.done():
                time.advance(0.1)
                await asyncio.sleep(0.01)
            await reloading
            while workers[1].is_running:
                await asyncio.sleep(0.01)
        assert workers[0].is_running
    finally:
        reloading.cancel()
        await asyncio.gather(*(worker.stop() for worker in workers))


async def test_restart_is_retried_when_the_system_refuses_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = loader.load(shipped.path("config.yaml"), {})
    worker = supervisor.Worker(messages.StartMessage(settings, messages.WorkerSlot(Path(), 1)), clock.SystemClock())
    monkeypatch.setattr(supervisor, "BACKOFF_FIRST", 0.0)
    monkeypatch.setattr(supervisor, "COMMAND", ONCE)
    assert (await worker.start()).public == "http://127.0.0.1:1"
    start, started = asyncio.create_subprocess_exec, asyncio.Event()

    async def started_again(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        started.set()
        return await start(*arguments, **options)

    async def refused(*_: object, **__: object) -> asyncio.subprocess.Process:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", started_again)
        raise BlockingIOError("no more processes for now")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    restarts = asyncio.create_task(worker.restart_when_ended())
    try:
        async with asyncio.timeout(SECONDS):
            await started.wait()
        assert not restarts.done()
    finally:
        restarts.cancel()
        await asyncio.wait((restarts,))
        await worker.stop()
