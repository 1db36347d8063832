"""Fixtures: the stores of the contract, with what asks them, and a clock that the test moves."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from support import store_client
from support.store_client import Client

from proxy.kit import clock
from proxy.store.store import Store

CACHE_BYTES = 2_000_000
NOW = 1_701_342_000.0  # 2023-11-30 11:00 UTC

Opens = Callable[..., Awaitable[Client]]


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock(NOW)


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    """Implementation that a test of the contract runs with."""
    return str(request.param)


@pytest.fixture
def address(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if kind == "redis":
        return str(request.getfixturevalue("redis_server").url)
    return str(tmp_path / "store.sqlite") if kind == "sqlite" else ""


@pytest.fixture
async def open_client(address: str, time: clock.ManualClock) -> AsyncIterator[Opens]:
    """Open the store once more, as another process, there or elsewhere; closed with the test."""
    opened: list[Store] = []

    async def open_(worker: str = "", at: str = address) -> Client:
        worker = worker or f"worker {len(opened) + 1}"
        opened.append(await store_client.open_store(at, time, worker, CACHE_BYTES))
        return Client(opened[-1], time)

    yield open_
    for store in opened:
        await store.aclose()


@pytest.fixture
async def client(open_client: Opens) -> Client:
    return await open_client()


@pytest.fixture
def store(client: Client) -> Store:
    return client.store
