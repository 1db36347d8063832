"""Serves the sandbox on a socket, in an event loop or in a thread of its own: for commands, programs and tests.

Composes the services first: what several of them share, then each of them. Paths are those of the contract's services
(graphql.md §3, §4).
"""

import asyncio
import logging
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import http_exceptions, web

from nexar_sandbox import admin, applications, home_page, journal, part_usage, user_directory
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.catalog import store
from nexar_sandbox.design import design_store, files
from nexar_sandbox.design import services as design_services
from nexar_sandbox.graphql import schema, service, transport, websockets
from nexar_sandbox.ide import assets, endpoints, tokens
from nexar_sandbox.identity import discovery, keys, login
from nexar_sandbox.identity import service as identities
from nexar_sandbox.injection import exchanges, injector
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.legacy_v3 import disturbances
from nexar_sandbox.legacy_v3 import endpoints as legacy_endpoints
from nexar_sandbox.legacy_v3 import service as legacy_service
from nexar_sandbox.portal import application_pages, organization_pages, responder
from nexar_sandbox.state import store as state

MAX_BODY = 8 * 2**20
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
    design_services.check_port(host, port)
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
    services = _create(
        settings or sandbox_settings.SandboxSettings(), clock or clocks.SystemClock(), rng, catalog=catalog, key=key
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
        await web.TCPSite(runner, host, port).start()
        bound = runner.addresses[0][1]
        host_in_url = f"[{host}]" if ":" in host else host
        url = f"http://{host_in_url}:{bound}"
        yield _sandbox(url, bound, services)
    finally:
        await runner.cleanup()


@contextmanager
def running(
    settings: sandbox_settings.SandboxSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> Iterator[Sandbox]:
    """Yield the sandbox, which serves until the block ends. Arguments and errors are those of `serve`."""
    started: Future[Sandbox] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve_until_stopped() -> None:
        async with serve(settings, host, port, catalog=catalog, key=key) as sandbox:
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


@dataclass(frozen=True, slots=True)
class _SharedServices:
    settings: sandbox_settings.SandboxSettings
    clock: clocks.Clock
    rng: random.Random
    state_store: state.StateStore
    catalog: store.Catalog
    schema_variants: schema.SchemaVariants
    request_counts: journal.RequestCounts
    journal: journal.RequestJournal
    faults: injector.FaultInjector
    part_usage: part_usage.PartUsage
    applications: applications.ApplicationRegistry
    users: user_directory.UserDirectory

    @property
    def exchange_middleware(self) -> exchanges.ExchangeMiddleware:
        return exchanges.ExchangeMiddleware(self.faults, self.journal)


@dataclass(frozen=True, slots=True)
class _Services:
    app: web.Application
    shared: _SharedServices
    identity: identities.IdentityService
    design: design_services.DesignServices
    legacy: legacy_service.LegacyService


def _sandbox(url: str, port: int, services: _Services) -> Sandbox:
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


def _create(
    settings: sandbox_settings.SandboxSettings,
    clock: clocks.Clock,
    rng: random.Random | None = None,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> _Services:
    """Raise ValueError for a state file that cannot be opened. A given catalog is not closed."""
    state_store = state.StateStore(settings.state)
    with ExitStack() as on_failure:
        on_failure.callback(state_store.close)
        opened_catalog = catalog or store.open_catalog(
            settings.parts, settings.catalog, settings.seed, file=settings.prepared
        )
        services = _assemble(_shared(settings, clock, rng or random.SystemRandom(), state_store, opened_catalog), key)
        if catalog is None:
            services.app.on_cleanup.append(_close_on_cleanup(opened_catalog))
        state_store.complete_creation()
        # After the cleanup contexts, which write their last values.
        services.app.on_cleanup.append(_close_on_cleanup(state_store))
        # From here on the application closes what was opened.
        on_failure.pop_all()
    return services


def _shared(
    settings: sandbox_settings.SandboxSettings,
    clock: clocks.Clock,
    rng: random.Random,
    state_store: state.StateStore,
    catalog: store.Catalog,
) -> _SharedServices:
    full_schema = schema.complete()
    fault_injector = injector.FaultInjector(settings.faults, rng, schema.removable_fields(full_schema))
    return _SharedServices(
        settings=settings,
        clock=clock,
        rng=rng,
        state_store=state_store,
        catalog=catalog,
        schema_variants=schema.SchemaVariants(full_schema, settings.behavior),
        request_counts=journal.RequestCounts(),
        journal=journal.RequestJournal(clock),
        faults=fault_injector,
        part_usage=part_usage.PartUsage(clock, lambda: fault_injector.quota, state_store),
        applications=applications.ApplicationRegistry(settings.applications, state_store),
        users=user_directory.UserDirectory(settings.organizations, settings.users, state_store),
    )


def _assemble(shared: _SharedServices, key: keys.SigningKey | None) -> _Services:
    app = web.Application(
        client_max_size=MAX_BODY,
        middlewares=[admin.require_valid_host, admin.restrict_admin(shared.settings.admin_hosts)],
    )
    identity = _identity(app, shared, key)
    _portal(app, shared, identity)
    design = _design(app, shared, identity)
    _queries(app, shared, identity, design)
    legacy = _legacy(app, shared)
    control = admin.AdminEndpoints(
        shared.faults, shared.journal, shared.applications, identity.pages, identity.sessions, identity.key_ring
    )
    control.add_routes(app.router)
    home_page.HomePage(
        identity.pages,
        shared.settings,
        shared.applications,
        shared.users,
        legacy.apikeys,
        lambda: design.client.urls,
    ).add_routes(app.router)
    # Inside the host checks, which therefore come first at unknown paths, too.
    app.middlewares.append(identity.pages.not_found)
    transport.allow_cross_origin(app, (*transport.PATHS, *discovery.CROSS_ORIGIN_PATHS))
    app.cleanup_ctx.append(shared.part_usage.background_writes)
    return _Services(app, shared, identity, design, legacy)


def _identity(app: web.Application, shared: _SharedServices, key: keys.SigningKey | None) -> identities.IdentityService:
    identity = identities.create_service(
        shared.settings,
        shared.applications,
        shared.users,
        state_store=shared.state_store,
        key=key,
        clock=shared.clock,
        rng=shared.rng,
        record_request=shared.request_counts.record_token,
    )
    identity.add_routes(app.router, shared.exchange_middleware)
    return identity


def _portal(app: web.Application, shared: _SharedServices, identity: identities.IdentityService) -> None:
    """Make the portal. Its ids and secrets come from the operating system's random source."""
    portal = responder.PortalResponder(app.router, shared.users, identity.sessions, identity.pages, shared.clock)
    rng = random.SystemRandom()
    application_pages.ApplicationPages(
        shared.applications, shared.part_usage, identity.authorization_store, shared.clock, rng
    ).add_routes(portal)
    organization_pages.OrganizationPages(shared.users, shared.clock, rng).add_routes(portal)


def _design(
    app: web.Application, shared: _SharedServices, identity: identities.IdentityService
) -> design_services.DesignServices:
    design_data = design_store.DesignStore(
        shared.catalog,
        shared.settings.seed,
        shared.clock,
        lambda: design_store.members_of(shared.users),
        state_store=shared.state_store,
    )
    design = design_services.DesignServices(design_data, shared.journal, shared.settings.design_port)
    app.cleanup_ctx.append(design.lifespan)
    files.FileService(design_data, identity.token_issuer).add_routes(app.router)
    return design


def _queries(
    app: web.Application,
    shared: _SharedServices,
    identity: identities.IdentityService,
    design: design_services.DesignServices,
) -> None:
    queries = service.QueryService(
        sandbox_settings=shared.settings,
        schema_variants=shared.schema_variants,
        fault_injector=shared.faults,
        catalog=shared.catalog,
        application_registry=shared.applications,
        users=shared.users,
        usage=shared.part_usage,
        issued_tokens=identity.token_issuer,
        clock=shared.clock,
        rng=shared.rng,
        record=shared.request_counts.record_query,
        design=lambda: design.client,
    )
    websocket = websockets.WebSocketTransport(queries, shared.exchange_middleware)
    app.on_shutdown.append(websocket.close)
    schema_download = transport.SchemaDownload(lambda: shared.schema_variants.current(shared.faults.missing).schema)
    ide = endpoints.Ide(
        assets.Assets(identity.pages),
        identity,
        tokens.IdeTokenClient(identity.token, shared.exchange_middleware, shared.clock, random.SystemRandom()),
        shared.applications,
        shared.users,
        shared.part_usage,
        shared.settings.issuer,
        token_required=not shared.settings.no_auth,
    )
    ide.add_routes(app.router)
    transport.HttpTransport(queries, ide.files.page, schema_download).add_routes(
        app.router, shared.exchange_middleware, websocket
    )


def _legacy(app: web.Application, shared: _SharedServices) -> legacy_service.LegacyService:
    legacy = legacy_service.LegacyService(shared.settings.legacy, shared.catalog, shared.clock, shared.settings.seed)
    legacy_endpoints.LegacyEndpoints(legacy, shared.journal).add_routes(app.router)
    return legacy


class _Closable(Protocol):
    def close(self) -> None: ...


def _close_on_cleanup(resource: _Closable) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_app: web.Application) -> None:
        resource.close()

    return close
