"""Serves the sandbox on a socket, in an event loop or in a thread of its own: for commands, programs and tests.

Composes the services first: what several of them share, then each of them. Paths are those of the contract's services
(graphql.md §3, §4).
"""

import asyncio
import logging
import random
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import http_exceptions, web

from nexar_sandbox import (
    admin,
    applications,
    clocks,
    exchanges,
    faults,
    home_page,
    journal,
    part_usage,
    user_directory,
)
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.catalog import store
from nexar_sandbox.design import design_store, files
from nexar_sandbox.design import services as design_services
from nexar_sandbox.graphql import service, transport, websockets
from nexar_sandbox.ide import endpoints
from nexar_sandbox.identity import endpoints as identity_endpoints
from nexar_sandbox.identity import service as identities
from nexar_sandbox.identity import tokens
from nexar_sandbox.legacy_v3 import endpoints as legacy_endpoints
from nexar_sandbox.legacy_v3 import service as legacy_service
from nexar_sandbox.portal import portal_pages, responder

MAX_BODY = 8 * 2**20
# Bytes of a request line or header: the old service says by itself what is too long for it.
MAX_LINE = 65_536
# Seconds that requests in progress have at the end: some faults would take minutes.
SHUTDOWN = 1.0


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox. `default_application` is the first configured application; `port` the one that it listens on.

    `faults`, `applications` and `users` can be changed at run time. `journal` records requests. `design_urls` are the
    URLs of the design services by name; they accept requests of the query service only.
    """

    url: str
    port: int
    default_application: applications.SandboxApplication
    part_usage: part_usage.PartUsage
    request_counts: journal.RequestCounts
    faults: faults.FaultInjector
    journal: journal.RequestJournal
    legacy: legacy_service.LegacyService
    applications: applications.ApplicationRegistry
    users: user_directory.UserDirectory
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
        return self.url + identity_endpoints.TOKEN_PATH

    @property
    def documents(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """The last GraphQL documents with their variables, oldest first."""
        return tuple(self.request_counts.documents)


@asynccontextmanager
async def serve(
    settings: sandbox_settings.SandboxSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    clock: clocks.Clock | None = None,
    rng: random.Random | None = None,
    catalog: store.Catalog | None = None,
    key: tokens.SigningKey | None = None,
    opened: socket.socket | None = None,
) -> AsyncIterator[Sandbox]:
    """Yield the sandbox on a socket, until the block ends: one that is `opened`, or its own (port 0: a free
    one). OSError for a port that is taken."""
    services = _Services(
        settings or sandbox_settings.SandboxSettings(),
        clock or clocks.SystemClock(),
        rng or random.SystemRandom(),
        catalog,
        key,
    )
    # A caller that hangs up ends its request, which a fault may hold for minutes.
    runner = web.AppRunner(
        services.app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=SHUTDOWN,
        max_line_size=MAX_LINE,
        logger=_without_request_lines(),
    )
    try:
        await runner.setup()
        site = web.SockSite(runner, opened) if opened else web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        host_in_url = f"[{host}]" if ":" in host else host
        url = f"http://{host_in_url}:{bound}"
        yield services.running_at(url, bound)
    finally:
        await runner.cleanup()


@contextmanager
def running(
    settings: sandbox_settings.SandboxSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    catalog: store.Catalog | None = None,
    key: tokens.SigningKey | None = None,
    opened: socket.socket | None = None,
) -> Iterator[Sandbox]:
    """Yield the sandbox, which serves until the block ends. Arguments and errors are those of `serve`."""
    started: Future[Sandbox] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve_until_stopped() -> None:
        async with serve(settings, host, port, catalog=catalog, key=key, opened=opened) as sandbox:
            started.set_result(sandbox)
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(serve_until_stopped())
            except BaseException as error:
                if started.done():
                    raise
                started.set_exception(error)

    thread = threading.Thread(target=run, name="nexar-sandbox", daemon=True)
    thread.start()
    sandbox = started.result()
    try:
        yield sandbox
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def _without_request_lines() -> logging.Logger:
    """Aiohttp's log, but for requests that it cannot parse: it would repeat them, and an API key of the old service."""
    log = logging.getLogger(__name__)
    log.addFilter(_was_http)  # one filter is added once
    return log


def _was_http(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], http_exceptions.HttpProcessingError))


class _Services:
    """The services of one sandbox, with what they share. A given catalog is not closed."""

    def __init__(
        self,
        settings: sandbox_settings.SandboxSettings,
        clock: clocks.Clock,
        rng: random.Random,
        catalog: store.Catalog | None,
        key: tokens.SigningKey | None,
    ) -> None:
        self._settings, self._clock, self._rng = settings, clock, rng
        self._request_counts, self._journal = journal.RequestCounts(), journal.RequestJournal(clock)
        self._faults = faults.FaultInjector(settings.faults, rng)
        self._exchanges = exchanges.ExchangeMiddleware(self._faults, self._journal)
        self._part_usage = part_usage.PartUsage(clock, lambda: self._faults.quota)
        self._applications = applications.ApplicationRegistry(settings.applications)
        self._users = user_directory.UserDirectory(settings.organizations, settings.users)
        self._catalog = catalog or store.open_catalog(settings.catalog)
        self.app = web.Application(
            client_max_size=MAX_BODY,
            middlewares=[admin.require_valid_host, admin.restrict_admin(settings.admin_hosts)],
        )
        self._identity = identities.IdentityService(
            settings,
            self._applications,
            self._users,
            key=key,
            clock=clock,
            rng=rng,
            record_request=self._request_counts.record_token,
            exchange_middleware=self._exchanges,
        )
        self._identity.add_routes(self.app.router)
        self._add_portal()
        self._add_design()
        self._add_queries()
        self._legacy = legacy_service.LegacyService(settings.legacy, self._catalog, clock)
        legacy_endpoints.LegacyEndpoints(self._legacy, self._journal).add_routes(self.app.router)
        self._add_pages()
        # Inside the host checks, which therefore come first at unknown paths, too.
        self.app.middlewares.append(self._identity.pages.not_found)
        if catalog is None:
            self.app.on_cleanup.append(self._close)

    async def _close(self, _app: web.Application) -> None:
        self._catalog.close()

    def running_at(self, url: str, port: int) -> Sandbox:
        return Sandbox(
            url=url,
            port=port,
            default_application=self._settings.applications[0],
            part_usage=self._part_usage,
            request_counts=self._request_counts,
            faults=self._faults,
            journal=self._journal,
            legacy=self._legacy,
            applications=self._applications,
            users=self._users,
            design_urls=self._design.client.urls,
        )

    def _add_portal(self) -> None:
        """Add the portal. Its ids and secrets come from the operating system's random source."""
        identity, clock, rng = self._identity, self._clock, random.SystemRandom()
        portal = responder.PortalResponder(self.app.router, self._users, identity.sessions, identity.pages, clock)
        portal_pages.ApplicationPages(
            self._applications, self._part_usage, identity.authorization_store, clock, rng
        ).add_routes(portal)

    def _add_design(self) -> None:
        design_data = design_store.DesignStore(self._catalog, self._clock, design_store.members_of(self._users))
        self._design = design_services.DesignServices(design_data, self._journal)
        self.app.cleanup_ctx.append(self._design.lifespan)
        files.FileService(design_data, self._identity.token_issuer).add_routes(self.app.router)

    def _add_queries(self) -> None:
        queries = service.QueryService(
            sandbox_settings=self._settings,
            catalog=self._catalog,
            application_registry=self._applications,
            users=self._users,
            usage=self._part_usage,
            issued_tokens=self._identity.token_issuer,
            started=self._clock.now(),
            rng=self._rng,
            record=self._request_counts.record_query,
            design=lambda: self._design.client,
        )
        websocket = websockets.WebSocketTransport(queries, self._exchanges)
        self.app.on_shutdown.append(websocket.close)
        ide = endpoints.Ide(
            self._identity,
            self._applications,
            self._users,
            self._part_usage,
            token_required=not self._settings.no_auth,
        )
        ide.add_routes(self.app.router)
        transport.HttpTransport(queries, ide.page).add_routes(self.app.router, self._exchanges, websocket)

    def _add_pages(self) -> None:
        """Add the admin interface and the home page."""
        identity, router = self._identity, self.app.router
        admin.AdminEndpoints(
            self._faults, self._journal, self._applications, identity.pages, identity.sessions
        ).add_routes(router)
        home_page.HomePage(
            identity.pages,
            self._settings,
            self._applications,
            self._users,
            self._legacy.apikeys,
            lambda: self._design.client.urls,
        ).add_routes(router)
