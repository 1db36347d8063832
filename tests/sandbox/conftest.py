"""A sandbox on a socket with a clock that can be turned, and a caller that holds a token of it."""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from sandbox.page_browser import PageBrowser
from support import small_catalog
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import app, applications, settings
from nexar_sandbox.catalog import store
from nexar_sandbox.identity import tokens
from nexar_sandbox.legacy_v3 import projection
from nexar_sandbox.legacy_v3 import service as legacy_service
from proxy.kit import clock
from sandbox import code_flow as desks
from sandbox import design_client as designers
from sandbox import legacy_client


@pytest.fixture(scope="session")
def catalog() -> Iterator[store.Catalog]:
    opened = store.open_catalog()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> store.Catalog:
    """The catalog of a dozen parts."""
    return small_catalog.opened(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def signing_key() -> tokens.SigningKey:
    return tokens.generate_key()


@pytest.fixture
def manual_clock() -> clock.ManualClock:
    """2023-11-14T22:13:20Z, until it is turned."""
    return clock.ManualClock()


Serve = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def serve(catalog: store.Catalog, signing_key: tokens.SigningKey, manual_clock: clock.ManualClock) -> Serve:
    """Starts a sandbox with the settings given, and a client of some kind. `rng` is its random source."""

    @asynccontextmanager
    async def served(kind: type, rng: random.Random | None = None, **chosen: Any) -> AsyncIterator[Any]:
        running = app.serve(
            settings.SandboxSettings(**chosen), clock=manual_clock, rng=rng, catalog=catalog, key=signing_key
        )
        async with running as sandbox, aiohttp.ClientSession() as session:
            yield kind(sandbox, session)

    return served


@pytest.fixture
def start(serve: Serve) -> StartSandbox:
    """Starts a sandbox with the settings given, and logs in."""

    @asynccontextmanager
    async def started(**chosen: Any) -> AsyncIterator[SandboxClient]:
        async with serve(SandboxClient, **chosen) as caller:
            await caller.log_in()
            yield caller

    return started


@pytest.fixture
async def caller(start: StartSandbox) -> AsyncIterator[SandboxClient]:
    """A caller of a sandbox with the usual settings."""
    async with start() as ready:
        yield ready


@pytest.fixture
async def visitor(caller: SandboxClient) -> AsyncIterator[PageBrowser]:
    """A browser at that sandbox."""
    async with PageBrowser(caller.sandbox.url) as opened:
        yield opened


@pytest.fixture
def start_legacy(serve: Serve) -> legacy_client.StartLegacy:
    """Starts a sandbox whose old v3 service has these settings; without a rate limit by default."""

    def started(**chosen: Any) -> AbstractAsyncContextManager[legacy_client.LegacyClient]:
        legacy = legacy_service.LegacySettings(**{"requests_per_second": None, **chosen})
        return serve(legacy_client.LegacyClient, legacy=legacy)

    return started


@pytest.fixture
async def legacy(start_legacy: legacy_client.StartLegacy) -> AsyncIterator[legacy_client.LegacyClient]:
    """The old v3 service without a rate limit."""
    async with start_legacy() as ready:
        yield ready


@pytest.fixture(scope="session")
def parts_read() -> list[dict[str, Any]]:
    """The parts of `all_parts`, read by the first test that needs them: every test has the same catalog."""
    return []


@pytest.fixture
async def all_parts(legacy: legacy_client.LegacyClient, parts_read: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every part of the catalog with all its fields, from the old v3 service."""
    included, hits = "".join(f"&include[]={name}" for name in projection.INCLUDED["Part"]), 1
    while len(parts_read) < hits:
        body = await legacy.read(f"/parts/search?q=&limit=100&start={len(parts_read)}{included}")
        parts_read += [result["item"] for result in body["results"]]
        hits = body["hits"]
    return parts_read


@pytest.fixture
async def flow(start: StartSandbox) -> AsyncIterator[desks.CodeFlow]:
    """An authorization code flow on its own sandbox, which has several applications, and a person's browser."""
    known = (applications.DEFAULT_APPLICATION, desks.DESIGN, desks.OTHER, desks.PLAIN)
    async with start(applications=known, token_windows=()) as caller, PageBrowser(caller.sandbox.url) as visitor:
        yield desks.CodeFlow(caller, visitor)


@pytest.fixture
def start_design(serve: Serve) -> designers.StartDesignSandbox:
    """Starts a sandbox whose first application may use design data, and signs a user in."""

    @asynccontextmanager
    async def started(**chosen: Any) -> AsyncIterator[designers.DesignClient]:
        usual = {"applications": (designers.APPLICATION,), "token_windows": ()}
        async with serve(designers.DesignClient, **{**usual, **chosen}) as ready:
            await ready.sign_in()
            yield ready

    return started


@pytest.fixture
async def designer(start_design: designers.StartDesignSandbox) -> AsyncIterator[designers.DesignClient]:
    """A user of a sandbox with the usual settings."""
    async with start_design() as ready:
        yield ready
