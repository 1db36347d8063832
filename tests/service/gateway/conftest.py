"""Fixtures: a world of the core, in which a test runs in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import redis.asyncio
from service.gateway.world import START, Upstream, VirtualLoop, World, virtual_clock
from support import store_client

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.documents import ProjectionCache
from proxy.store.store import Store

CACHE_BYTES = 50_000_000
OpenWorld = Callable[..., Awaitable[World]]


def pytest_asyncio_loop_factories(item: Any) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"loop": VirtualLoop if "open_world" in item.fixturenames else asyncio.new_event_loop}


class Redis(redis.asyncio.Redis):
    """Client whose commands are carried out in the order in which they are given, on whatever connections."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        async with virtual_clock().redis:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def projections() -> ProjectionCache:
    return ProjectionCache(loader.load(shipped("mappings")))


@pytest.fixture
async def open_world(projections: ProjectionCache, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenWorld]:
    """Open a world that begins at `start`, with the store in a file, in the Redis at an address, or in memory ("")."""
    monkeypatch.setattr("redis.asyncio.Redis", Redis)
    clock, opened = virtual_clock(), list[Store]()

    async def of(upstream: Upstream, start: float = START, address: str = "") -> World:
        async def open_(worker: str) -> Store:
            if address or not opened:
                opened.append(await store_client.open_store(address, clock, worker, CACHE_BYTES))
            return opened[-1]

        clock.start = start
        return World(projections, upstream, clock, open_, await open_("observer"))

    yield of
    for store in opened:
        await store.aclose()


@pytest.fixture
async def world(open_world: OpenWorld, upstream: Upstream) -> World:
    return await open_world(upstream)
