"""Serves the sandbox on a socket, for commands and tests.

`composition.py` creates its services; paths are those of the contract's services (graphql.md §3, §4).
"""

import logging
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import http_exceptions, web

from nexar_sandbox import applications, composition, journal, part_usage, user_directory
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.catalog import store
from nexar_sandbox.design import services as design_services
from nexar_sandbox.graphql import schema, transport
from nexar_sandbox.identity import discovery, keys, login
from nexar_sandbox.injection import injector
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.kit import ports
from nexar_sandbox.legacy_v3 import disturbances
from nexar_sandbox.legacy_v3 import service as legacy_service
from nexar_sandbox.portal import responder

# Bytes of a request line or header: the old service says by itself what is too long for it.
MAX_LINE = 65_536
# Seconds that requests in progress have at the end: some faults would take minutes.
SHUTDOWN = 1.0


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox. `default_application` is the first configured application; `port` the one that it listens on.

    `faults`, the disturbances of `legacy`, `applications`, `users` and `keys` can be changed at run time. `journal`
    records requests. `design_urls` are the URLs of the design services by name; they accept requests of the query
    service only.
    """

    url: str
    port: int
    default_application: applications.SandboxApplication
    part_usage: part_usage.PartUsage
    request_counts: journal.RequestCounts
    faults: injector.FaultInjector
    journal: journal.RequestJournal
    legacy: legacy_service.LegacyService
    applications: applications.ApplicationRegistry
    users: user_directory.UserDirectory
    keys: keys.KeyRing
    design_urls: Mapping[str, str]

    @property
    def client_id(self) -> str:
        return self.default_application.client_id

    @property
    def client_secret(self) -> str:
        return self.default_application.client_secret

    @property
    def billed_parts(self) -> int:
        """Parts billed to the default application in this month."""
        return self.part_usage.used(self.default_application.application_id)

    @property
    def legacy_url(self) -> str:
        """Base URL of the legacy v3 service, without /v3."""
        return self.url

    @property
    def graphql_url(self) -> str:
        return self.url + transport.PATHS[0]

    @property
    def token_url(self) -> str:
        return self.url + discovery.TOKEN_PATH

    @property
    def account_url(self) -> str:
        """URL of the signed-in user's page."""
        return self.url + login.ACCOUNT_PATH

    @property
    def portal_url(self) -> str:
        return self.url + responder.PATH

    @property
    def documents(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """The last GraphQL documents with their variables, oldest first."""
        return tuple(self.request_counts.documents)


def check_settings(settings: sandbox_settings.SandboxSettings, host: str, port: int) -> None:
    """Raise the errors that `serve` would raise for these addresses, faults and disturbances, without creating a
    catalog."""
    ports.check(host, port)
    design_services.check(settings.design_port)
    injector.FaultInjector(settings.faults, random.Random(), schema.removable_fields(schema.complete()))  # noqa: S311 - draws nothing
    disturbances.DisturbanceInjector(settings.legacy.disturbances, clocks.SystemClock(), settings.seed)


@asynccontextmanager
async def serve(
    settings: sandbox_settings.SandboxSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    clock: clocks.Clock | None = None,
    rng: random.Random | None = None,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> AsyncIterator[Sandbox]:
    """Yield the sandbox on a socket, until the block ends. Port 0 is a free one. OSError for a port that is taken;
    where it is a design service's, PortError."""
    app = composition.create_app(
        settings or sandbox_settings.SandboxSettings(), clock or clocks.SystemClock(), rng, catalog=catalog, key=key
    )
    # A caller that hangs up ends its request, which a fault may hold for minutes.
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=SHUTDOWN,
        max_line_size=MAX_LINE,
        logger=_without_request_lines(),
    )
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        bound = runner.addresses[0][1]
        host_in_url = f"[{host}]" if ":" in host else host
        url = f"http://{host_in_url}:{bound}"
        yield _sandbox(url, bound, app[composition.SERVICES])
    finally:
        await runner.cleanup()


def _sandbox(url: str, port: int, services: composition.Services) -> Sandbox:
    shared = services.shared
    return Sandbox(
        url=url,
        port=port,
        default_application=next(iter(shared.applications.all), shared.settings.applications[0]),
        part_usage=shared.part_usage,
        request_counts=shared.request_counts,
        faults=shared.faults,
        journal=shared.journal,
        legacy=services.legacy,
        applications=shared.applications,
        users=shared.users,
        keys=services.identity.key_ring,
        design_urls=services.design.client.urls,
    )


def _without_request_lines() -> logging.Logger:
    """Aiohttp's log, but for requests that it cannot parse: it would repeat them, and an apikey of the old service."""
    log = logging.getLogger(__name__)
    log.addFilter(_was_http)  # one filter is added once
    return log


def _was_http(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], http_exceptions.HttpProcessingError))
