"""Composition of the sandbox: creates all services and registers them in one aiohttp application.

`create_app` first creates what several services share, then each service.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from nexar_sandbox import admin, applications, home_page, journal, part_usage, user_directory
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.catalog import store
from nexar_sandbox.design import design_store, files
from nexar_sandbox.design import services as design_services
from nexar_sandbox.graphql import schema, service, transport, websockets
from nexar_sandbox.ide import assets, endpoints, tokens
from nexar_sandbox.identity import discovery, keys
from nexar_sandbox.identity import service as identities
from nexar_sandbox.injection import exchanges, injector
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.legacy_v3 import endpoints as legacy_endpoints
from nexar_sandbox.legacy_v3 import service as legacy_service
from nexar_sandbox.portal import application_pages, organization_pages, responder
from nexar_sandbox.state import store as state

MAX_BODY = 8 * 2**20


@dataclass(frozen=True, slots=True)
class SharedServices:
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
class Services:
    shared: SharedServices
    identity: identities.IdentityService
    design: design_services.DesignServices
    legacy: legacy_service.LegacyService


SERVICES = web.AppKey("services", Services)


def create_app(
    settings: sandbox_settings.SandboxSettings,
    clock: clocks.Clock,
    rng: random.Random | None = None,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> web.Application:
    """Create the sandbox as an application with its services under SERVICES. A given catalog or key is not closed.
    Raises ValueError for a state file that cannot be opened."""
    state_store = state.StateStore(settings.state)
    with ExitStack() as on_failure:
        on_failure.callback(state_store.close)
        opened_catalog = catalog or store.open_catalog(
            settings.parts, settings.catalog, settings.seed, file=settings.prepared
        )
        app = _assemble(_shared(settings, clock, rng or random.SystemRandom(), state_store, opened_catalog), key)
        if catalog is None:
            app.on_cleanup.append(_close_on_cleanup(opened_catalog))
        state_store.complete_creation()
        # After the cleanup contexts, which write their last values.
        app.on_cleanup.append(_close_on_cleanup(state_store))
        # From here on the application closes what was opened.
        on_failure.pop_all()
    return app


def _shared(
    settings: sandbox_settings.SandboxSettings,
    clock: clocks.Clock,
    rng: random.Random,
    state_store: state.StateStore,
    catalog: store.Catalog,
) -> SharedServices:
    full_schema = schema.complete()
    fault_injector = injector.FaultInjector(settings.faults, rng, schema.removable_fields(full_schema))
    return SharedServices(
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


def _assemble(shared: SharedServices, key: keys.SigningKey | None) -> web.Application:
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
        shared.faults, shared.journal, shared.applications, identity.pages, identity.sessions
    )
    control.add_routes(app.router)
    offer = home_page.DefaultCredentials(shared.settings, shared.applications, shared.users, legacy.apikeys)
    home_page.HomePage(identity.pages, offer, lambda: design.client.urls).add_routes(app.router)
    # Inside the host checks, which therefore come first at unknown paths, too.
    app.middlewares.append(identity.pages.not_found)
    transport.allow_cross_origin(app, (*transport.PATHS, *discovery.CROSS_ORIGIN_PATHS))
    app.cleanup_ctx.append(shared.part_usage.background_writes)
    app[SERVICES] = Services(shared, identity, design, legacy)
    return app


def _identity(app: web.Application, shared: SharedServices, key: keys.SigningKey | None) -> identities.IdentityService:
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
    admin.SigningKeyAdmin(identity.key_ring).add_routes(app.router)
    return identity


def _portal(app: web.Application, shared: SharedServices, identity: identities.IdentityService) -> None:
    """Make the portal. Its ids and secrets come from the operating system's random source."""
    portal = responder.PortalResponder(app.router, shared.users, identity.sessions, identity.pages, shared.clock)
    rng = random.SystemRandom()
    application_pages.ApplicationPages(
        shared.applications, shared.part_usage, identity.authorization_store, shared.clock, rng
    ).add_routes(portal)
    organization_pages.OrganizationPages(shared.users, shared.clock, rng).add_routes(portal)


def _design(
    app: web.Application, shared: SharedServices, identity: identities.IdentityService
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
    shared: SharedServices,
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
    transport.HttpTransport(queries, ide.page, schema_download).add_routes(
        app.router, shared.exchange_middleware, websocket
    )


def _legacy(app: web.Application, shared: SharedServices) -> legacy_service.LegacyService:
    legacy = legacy_service.LegacyService(shared.settings.legacy, shared.catalog, shared.clock, shared.settings.seed)
    legacy_endpoints.LegacyEndpoints(legacy, shared.journal).add_routes(app.router)
    legacy_endpoints.LegacyAdmin(legacy).add_routes(app.router)
    return legacy


class _Closable(Protocol):
    def close(self) -> None: ...


def _close_on_cleanup(resource: _Closable) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_app: web.Application) -> None:
        resource.close()

    return close
