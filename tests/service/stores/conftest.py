"""Fixtures: a store of each kind."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.stores.protocols import Store
from proxy.stores.redis import RedisStore
from proxy.stores.sqlite import SqliteStore


@pytest.fixture
def manual_clock() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "redis"])
def persistent_kind(request: pytest.FixtureRequest) -> str:
    """The kinds that several processes share, and that outlive them."""
    return str(request.param)


Opens = Callable[[str], Awaitable[Store]]


@pytest.fixture
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Return the setting `store` for a kind; it is constant within a test."""

    def of(kind: str) -> str:
        if kind == "redis":
            return str(request.getfixturevalue("redis_server").url)
        return f"sqlite:{tmp_path}/store.sqlite" if kind == "sqlite" else "memory:"

    return of


@pytest.fixture
async def open_store(store_address: Callable[[str], str], manual_clock: clock.ManualClock) -> AsyncIterator[Opens]:
    """Opens a store of a kind; closed with the test."""
    opened: list[Store] = []

    async def open_(kind: str) -> Store:
        opened.append(await open_at(store_address(kind), manual_clock))
        return opened[-1]

    yield open_
    for store in opened:
        await store.aclose()


async def open_at(url: str, time_: clock.Clock) -> Store:
    """The store at an address of `address`."""
    if url.startswith("sqlite:"):
        return await SqliteStore.open(Path(url.removeprefix("sqlite:")), time_)
    return MemoryStore(time_) if url == "memory:" else RedisStore(url, time_)


@pytest.fixture
async def store(open_store: Opens, kind: str) -> Store:
    return await open_store(kind)
