"""Fixtures for tests of upstream clients: a manual clock, tokens, and a service on loopback."""

import asyncio
import io
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from service.upstream import identity_service
from support import log_lines
from support.store_client import BrokenStore

from proxy import config
from proxy import metrics as metering
from proxy.kit import clock as clocks
from proxy.store.sqlite import SqliteStore
from proxy.upstream import http_post, sending, tokens


@pytest.fixture(autouse=True)
def log_output() -> Iterator[io.StringIO]:
    with log_lines.collected() as stream:
        yield stream


@pytest.fixture
def clock() -> clocks.ManualClock:
    return clocks.ManualClock()


@pytest.fixture
def metrics() -> metering.Metrics:
    return metering.Metrics()


@pytest.fixture
def make_breaker(clock: clocks.ManualClock, metrics: metering.Metrics) -> Any:
    """A breaker of the GraphQL service; its pauses are as short as they can be."""

    def make(failures: int = 1_000_000, rng: Any = None) -> sending.CircuitBreaker:
        rng = rng or SimpleNamespace(random=lambda: 0.0)
        return sending.CircuitBreaker(clock=clock, rng=rng, metrics=metrics, failures=failures)

    return make


@pytest.fixture
def open_session() -> Callable[..., aiohttp.ClientSession]:
    """The real session of the service, with the settings given."""

    def open_(**settings: Any) -> aiohttp.ClientSession:
        return http_post.open_session(config.UpstreamSettings("https://a/", "https://a/", **settings))

    return open_


@pytest.fixture
def service(clock: clocks.ManualClock) -> Any:
    service = identity_service.ScriptedIdentityService(clock)
    with service.mock:
        yield service


@pytest.fixture
async def shared_store(clock: clocks.ManualClock) -> Any:
    """The store that all workers of a test share."""
    store = await SqliteStore.open(None, clock, "worker", 2**20)
    yield BrokenStore(store)
    await store.aclose()


@pytest.fixture
async def start(clock: clocks.ManualClock, metrics: metering.Metrics, shared_store: Any) -> Any:
    """Starts a process that has tokens of applications; all share a store. Waiting turns the clock."""

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)
        await asyncio.sleep(0)

    processes: list[tokens.Tokens] = []
    async with aiohttp.ClientSession() as session:

        def started(*owners: tokens.Credentials) -> tokens.Tokens:
            rng = random.Random(len(processes) + 1)
            shared: dict[str, Any] = {"store": shared_store, "clock": clock, "rng": rng, "metrics": metrics}
            known = owners or (identity_service.CREDENTIALS,)
            processes.append(tokens.Tokens(session, identity_service.URL, known, sleep=sleep, **shared))
            return processes[-1]

        yield started
        for process in processes:
            await process.close()


@pytest.fixture
async def worker(start: Any) -> Any:
    return start()
