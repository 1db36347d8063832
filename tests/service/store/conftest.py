"""Fixtures: the stores of the contract, and a clock that the test moves."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.kit import clock
from proxy.store.protocol import Store
from proxy.store.redis import RedisStore
from proxy.store.sqlite import SqliteStore

CACHE_BYTES = 1_000_000
NOW = 1_701_345_600.0 - 3600  # 2023-11-30 11:00 UTC


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock(NOW)


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    """Implementation that a test of the contract runs with."""
    return str(request.param)


Opens = Callable[..., Awaitable[Any]]


@pytest.fixture
async def open_store(
    kind: str, tmp_path: Path, time: clock.ManualClock, request: pytest.FixtureRequest
) -> AsyncIterator[Opens]:
    """Opens the store of the test, once more each time it is called; closed with the test."""
    opened: list[Store] = []
    numbers = itertools.count(1)

    async def open_(worker: str = "") -> Store:
        worker = worker or f"worker {next(numbers)}"
        if kind == "redis":
            url = request.getfixturevalue("redis_server").url
            opened.append(await RedisStore.open(url, time, worker, CACHE_BYTES, now=time.now))
        else:
            path = tmp_path / "store.sqlite" if kind == "sqlite" else None
            opened.append(await SqliteStore.open(path, time, worker, CACHE_BYTES))
        return opened[-1]

    yield open_
    for store in opened:
        await store.aclose()


@pytest.fixture
async def store(open_store: Opens) -> Any:
    return await open_store()
