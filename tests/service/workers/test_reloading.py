"""A reload ends, whatever the files of its configuration do."""

import os
from pathlib import Path

import pytest

from proxy import config
from proxy.config import loader
from proxy.kit import clock, shipped
from proxy.workers import listening, reloading


class IdleService(reloading.Reloadable):
    """Serves with every configuration, as nothing is asked of it."""

    urls = listening.ServiceUrls("http://127.0.0.1:1", "")

    async def prepare(self, settings: config.Config) -> None: ...
    async def commit(self) -> None: ...
    async def drop(self) -> None: ...
    async def report(self, result: config.ReloadResult) -> None: ...


async def test_configuration_that_blocks_fails_the_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "READ_SECONDS", 0.05)
    file = tmp_path / "own.yaml"
    os.mkfifo(file)
    source = reloading.ConfigurationSource(file, lambda: loader.load(file, {}))
    running = loader.load(shipped.path("config.yaml"), {})
    reloader = reloading.Reloader(source, running, IdleService(), apply=lambda _: None, clock=clock.ManualClock())
    try:
        result = await reloader.reload()
    finally:
        os.close(os.open(file, os.O_RDWR | os.O_NONBLOCK))  # ends the thread that reads
    assert result.outcome == "failed"
    assert result.mistakes == (
        f"{file}: it, or a file that it names, could not be read within 0.05 seconds:"
        " use regular files on a file system that responds",
    )
