"""Fixtures for tests of upstream clients: a manual clock, tokens, and a service on loopback."""

import io
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import jwt
import pytest
import structlog
from aiohttp import web
from service.upstream import identity_service
from support import served

from proxy import config, log
from proxy import metrics as metering
from proxy.kit import clock as clocks
from proxy.store.sqlite import SqliteStore
from proxy.upstream import connections, identity, policies

SIGNING_KEY = "a key that is long enough for a signature in a test"


@pytest.fixture(autouse=True)
def log_output() -> Iterator[io.StringIO]:
    """Fixture: captured log output."""
    stream = io.StringIO()
    structlog.configure(
        processors=[log.reduce_exception, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    yield stream
    structlog.reset_defaults()


@pytest.fixture
def clock() -> clocks.ManualClock:
    return clocks.ManualClock()


@pytest.fixture
def metrics() -> metering.Metrics:
    return metering.Metrics()


@pytest.fixture
def make_breaker(clock: clocks.ManualClock, metrics: metering.Metrics) -> Any:
    """A breaker of the GraphQL service; its pauses are as short as they can be."""

    def make(failures: int = 1_000_000, rng: Any = None) -> policies.CircuitBreaker:
        rng = rng or SimpleNamespace(random=lambda: 0.0)
        return policies.CircuitBreaker(clock=clock, rng=rng, metrics=metrics, failures=failures)

    return make


@pytest.fixture
def credentials() -> identity.Credentials:
    return identity_service.CREDENTIALS


@pytest.fixture
def make_jwt() -> Callable[..., str]:
    """A signed token of the given claims."""
    return lambda **claims: jwt.encode(claims, SIGNING_KEY, algorithm="HS256")


@pytest.fixture
def open_session() -> Callable[..., aiohttp.ClientSession]:
    """The real session of the service, with the settings given."""

    def open_(**settings: Any) -> aiohttp.ClientSession:
        return connections.open_session(config.UpstreamSettings("https://a/", "https://a/", **settings))

    return open_


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Bound port without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
def serve() -> Any:
    """`async with serve(handler) as url`: an HTTP server on loopback that answers every POST."""

    @asynccontextmanager
    async def serving(handler: Handler) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/{any:.*}", handler)
        async with served.on_loopback(app) as url:
            yield f"{url}/graphql"

    return serving


@pytest.fixture
def service(clock: clocks.ManualClock, make_jwt: Callable[..., str]) -> Any:
    service = identity_service.ScriptedIdentityService(clock, make_jwt)
    with service.mock:
        yield service


@pytest.fixture
async def shared_store(clock: clocks.ManualClock) -> Any:
    """The store that all workers of a test share."""
    store = await SqliteStore.open(None, clock, "worker", 2**20)
    yield identity_service.Away(store)
    await store.aclose()
