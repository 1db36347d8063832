"""What the tests of this room share: a clock that is turned, tokens made to measure, and a service on loopback."""

import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import aiohttp
import jwt
import prometheus_client
import pytest
import structlog
from aiohttp import web

from proxy import config
from proxy.kit import clock as clocks
from proxy.telemetry import log
from proxy.telemetry import metrics as metering
from proxy.upstream import session as sessions
from proxy.upstream import tokens

SIGNING_KEY = "a key that is long enough for a signature in a test"


@pytest.fixture(autouse=True)
def logged() -> Iterator[io.StringIO]:
    """What was logged, as it would be."""
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
    return metering.Metrics(prometheus_client.CollectorRegistry())


@pytest.fixture
def credentials() -> tokens.Credentials:
    return tokens.Credentials("demo", "the-id", config.Secret("the-secret"))


@pytest.fixture
def make_jwt() -> Callable[..., str]:
    """A signed token of the given claims."""
    return lambda **claims: jwt.encode(claims, SIGNING_KEY, algorithm="HS256")


@pytest.fixture
def open_session() -> Callable[..., aiohttp.ClientSession]:
    """The real session of the service, with the settings given."""

    def open_(**settings: float) -> aiohttp.ClientSession:
        return sessions.open_session(config.Upstream("http://a/", "http://a/", **settings))  # type: ignore[arg-type]

    return open_


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
def serve():
    """`async with serve(handler) as url`: an HTTP server on loopback that answers every POST."""

    @asynccontextmanager
    async def serving(handler: Handler) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/{any:.*}", handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/graphql"
        finally:
            await runner.cleanup()

    return serving
