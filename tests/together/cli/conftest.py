"""Fixtures of the commands' tests."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from acceptance import running

from proxy.kit import clock
from proxy.store.sqlite import SqliteStore

Serve = Callable[..., running.Service]
UseStore = Callable[[Callable[[SqliteStore], Awaitable[Any]]], Any]


@pytest.fixture
def serve(processes: running.Processes) -> Serve:
    """`serve(text, *options)` is a service that serves and has said so."""

    def started(*arguments: str, **variables: Any) -> running.Service:
        service = processes.service(*arguments, **variables)
        running.until(lambda: "service started" in service.log, "the log says that it has started")
        return service

    return started


@pytest.fixture
def config_file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Path of a file with CONFIG of the test's module."""
    file = tmp_path / "own.yaml"
    file.write_text(request.module.CONFIG)
    return str(file)


@pytest.fixture
def use_store(tmp_path: Path) -> UseStore:
    """Run an action on the store `sqlite:state.sqlite` of such a file, and return its result."""

    async def use(action: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
        store = await SqliteStore.open(tmp_path / "state.sqlite", clock.Clock(), "test", 2**20)
        try:
            return await action(store)
        finally:
            await store.aclose()

    return lambda action: asyncio.run(use(action))


@pytest.fixture
def within_a_day() -> None:
    """Let no midnight (UTC) fall into a test that names days: one that begins in its last minute waits for the next."""
    left = 86_400 - time.time() % 86_400
    if left < 60:
        time.sleep(left)
