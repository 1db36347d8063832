"""A sandbox on a socket with a clock that can be turned, and a caller that holds a token of it."""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from sandbox.page_browser import PageBrowser
from support.running_commands import run_command, start_command
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import app, applications, settings
from nexar_sandbox.catalog import store
from nexar_sandbox.identity import tokens
from nexar_sandbox.legacy_v3 import service as legacy_service
from proxy.kit import clock
from sandbox import code_flow as desks
from sandbox import design_client as designers
from sandbox import legacy_client

__all__ = ["run_command", "start_command"]  # fixtures of the whole folder


@pytest.fixture(scope="session")
def catalog() -> Iterator[store.Catalog]:
    opened = store.open_catalog()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def signing_key() -> tokens.SigningKey:
    return tokens.generate_key()


@pytest.fixture
def manual_clock() -> clock.ManualClock:
    """2023-11-14T22:13:20Z, until it is turned."""
    return clock.ManualClock()


@pytest.fixture
def start(catalog: store.Catalog, signing_key: tokens.SigningKey, manual_clock: clock.ManualClock) -> StartSandbox:
    """Starts a sandbox with the settings given, and logs in. `rng` is its random source."""

    @asynccontextmanager
    async def started(rng: random.Random | None = None, **chosen: Any) -> AsyncIterator[SandboxClient]:
        running = app.serve(
            settings.SandboxSettings(**chosen), clock=manual_clock, rng=rng, catalog=catalog, key=signing_key
        )
        async with running as sandbox, aiohttp.ClientSession() as session:
            caller = SandboxClient(sandbox, session)
            await caller.log_in()
            yield caller

    return started


@pytest.fixture
async def caller(start: StartSandbox) -> AsyncIterator[SandboxClient]:
    """A caller of a sandbox with the usual settings."""
    async with start() as ready:
        yield ready


@pytest.fixture
def start_legacy(
    catalog: store.Catalog, signing_key: tokens.SigningKey, manual_clock: clock.ManualClock
) -> legacy_client.StartLegacy:
    """Starts a sandbox whose old v3 service has these settings; without a rate limit by default."""

    @asynccontextmanager
    async def started(**chosen: Any) -> AsyncIterator[legacy_client.LegacyClient]:
        legacy = legacy_service.LegacySettings(**{"requests_per_second": None, **chosen})
        running = app.serve(
            settings.SandboxSettings(legacy=legacy), clock=manual_clock, catalog=catalog, key=signing_key
        )
        async with running as sandbox, aiohttp.ClientSession() as session:
            yield legacy_client.LegacyClient(sandbox, session)

    return started


@pytest.fixture
async def legacy(start_legacy: legacy_client.StartLegacy) -> AsyncIterator[legacy_client.LegacyClient]:
    """The old v3 service without a rate limit."""
    async with start_legacy() as ready:
        yield ready


DeskOpens = Callable[[], AbstractAsyncContextManager[desks.CodeFlow]]


@pytest.fixture
def opens(start: StartSandbox) -> DeskOpens:
    """Starts a sandbox with several applications, and a person's browser at it."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[desks.CodeFlow]:
        known = (applications.DEFAULT_APPLICATION, desks.DESIGN, desks.OTHER, desks.PLAIN)
        async with start(applications=known, token_windows=()) as caller, PageBrowser(caller.sandbox.url) as visitor:
            yield desks.CodeFlow(caller, visitor)

    return opened


@pytest.fixture
async def flow(opens: DeskOpens) -> AsyncIterator[desks.CodeFlow]:
    """An authorization code flow on its own sandbox."""
    async with opens() as opened:
        yield opened


@pytest.fixture
def start_design(
    catalog: store.Catalog, signing_key: tokens.SigningKey, manual_clock: clock.ManualClock
) -> designers.StartDesignSandbox:
    """Starts a sandbox whose first application may use design data, and signs a user in."""

    @asynccontextmanager
    async def started(**chosen: Any) -> AsyncIterator[designers.DesignClient]:
        chosen_settings = settings.SandboxSettings(
            **{"applications": (designers.APPLICATION,), "token_windows": (), **chosen}
        )
        running = app.serve(chosen_settings, clock=manual_clock, catalog=catalog, key=signing_key)
        async with running as sandbox, aiohttp.ClientSession() as session:
            ready = designers.DesignClient(sandbox, session)
            await ready.sign_in()
            yield ready

    return started


@pytest.fixture
async def designer(start_design: designers.StartDesignSandbox) -> AsyncIterator[designers.DesignClient]:
    """A user of a sandbox with the usual settings."""
    async with start_design() as ready:
        yield ready
