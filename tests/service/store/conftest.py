"""Fixtures: the stores of the contract, and a clock that the test moves."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from proxy.kit import clock
from proxy.store.redis import RedisStore
from proxy.store.sqlite import SqliteStore
from proxy.store.store import Store

CACHE_BYTES = 2_000_000
NOW = 1_701_342_000.0  # 2023-11-30 11:00 UTC

Opens = Callable[..., Awaitable[Store]]


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock(NOW)


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    """Implementation that a test of the contract runs with."""
    return str(request.param)


@pytest.fixture(params=["sqlite", "redis"])
def shared_kind(request: pytest.FixtureRequest) -> str:
    """Implementation that several processes use."""
    return str(request.param)


@pytest.fixture
async def opens(
    tmp_path: Path, time: clock.ManualClock, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[[str], Opens]]:
    """Return for an implementation what opens its store, once more each time; closed with the test."""
    opened: list[Store] = []
    numbers = itertools.count(1)

    def of(kind: str) -> Opens:
        async def open_(worker: str = "") -> Store:
            worker = worker or f"worker {next(numbers)}"
            if kind == "redis":
                url = request.getfixturevalue("redis_server").url
                opened.append(await RedisStore.open(url, time, worker, CACHE_BYTES, now=time.now))
            else:
                path = tmp_path / "store.sqlite" if kind == "sqlite" else None
                opened.append(await SqliteStore.open(path, time, worker, CACHE_BYTES))
            return opened[-1]

        return open_

    yield of
    for store in opened:
        await store.aclose()


@pytest.fixture
def open_shared(opens: Callable[[str], Opens], shared_kind: str) -> Opens:
    """Open the store as one process more."""
    return opens(shared_kind)


@pytest.fixture
def open_store(opens: Callable[[str], Opens], kind: str) -> Opens:
    return opens(kind)


@pytest.fixture
async def store(open_store: Opens) -> Store:
    return await open_store()
