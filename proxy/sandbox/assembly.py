"""All services of a sandbox, joined into one application: here and nowhere else.

`create_app` reads from what they share to the services themselves; nothing is decided here.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import accounting, accounts, admin, cross_origin, hosts, index, journal, people, traffic
from proxy.sandbox import settings as chosen
from proxy.sandbox.catalog import store
from proxy.sandbox.design import design_store, files
from proxy.sandbox.design import services as design_services
from proxy.sandbox.graphql import schema, service, transport, websockets
from proxy.sandbox.ide import running as running_ide
from proxy.sandbox.identity import assembly as identities
from proxy.sandbox.identity import discovery, keys
from proxy.sandbox.injection import exchanges, injector
from proxy.sandbox.legacy_v3 import admin as legacy_admin
from proxy.sandbox.legacy_v3 import endpoints as legacy_endpoints
from proxy.sandbox.legacy_v3 import service as legacy_service
from proxy.sandbox.portal import assembly as portal
from proxy.sandbox.state import kept as state

MAX_BODY = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Shared:
    """What several services of one sandbox use."""

    settings: chosen.Settings
    clock: clocks.Clock
    rng: random.Random
    kept: state.Kept
    catalog: store.Catalog
    surfaces: schema.SchemaVariants
    traffic: traffic.Traffic
    journal: journal.Journal
    faults: injector.Injector
    accounting: accounting.Accounting
    accounts: accounts.Accounts
    people: people.People

    @property
    def watch(self) -> exchanges.Watch:
        """What is around every exchange that faults may strike."""
        return exchanges.Watch(self.faults, self.journal)


@dataclass(frozen=True, slots=True)
class Services:
    """What one sandbox is made of, for who runs it."""

    shared: Shared
    identity: identities.Identity
    design: design_services.DesignServices
    legacy: legacy_service.Service


SERVICES = web.AppKey("services", Services)


def create_app(
    settings: chosen.Settings,
    clock: clocks.Clock,
    rng: random.Random | None = None,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> web.Application:
    """The sandbox as an application, its services under SERVICES. A catalog or key that is handed in is shared and
    stays the caller's. Raises ValueError for a state file that cannot be had."""
    kept = state.Kept(settings.state)
    with ExitStack() as if_refused:
        if_refused.callback(kept.close)
        opened = catalog or store.open_catalog(settings.parts, settings.catalog, settings.seed, file=settings.prepared)
        app = _joined(_shared(settings, clock, rng or random.SystemRandom(), kept, opened), key)
        if catalog is None:
            app.on_cleanup.append(_closing(opened))
        kept.finish()
        app.on_cleanup.append(_closing(kept))
        if_refused.pop_all()
    return app


def _shared(
    settings: chosen.Settings, clock: clocks.Clock, rng: random.Random, kept: state.Kept, catalog: store.Catalog
) -> Shared:
    built = schema.build()
    drawing = injector.Injector(settings.faults, rng, schema.places(built))
    return Shared(
        settings=settings,
        clock=clock,
        rng=rng,
        kept=kept,
        catalog=catalog,
        surfaces=schema.SchemaVariants(built),
        traffic=traffic.Traffic(),
        journal=journal.Journal(clock),
        faults=drawing,
        accounting=accounting.Accounting(clock, lambda: drawing.quota, kept),
        accounts=accounts.Accounts(settings.accounts, kept),
        people=people.People(settings.organisations, settings.users, kept),
    )


def _joined(shared: Shared, key: keys.SigningKey | None) -> web.Application:
    app = web.Application(
        client_max_size=MAX_BODY, middlewares=[hosts.wanted, hosts.guarding_admin(shared.settings.admin_hosts)]
    )
    identity = _identity(app, shared, key)
    design = _design(app, shared, identity)
    _queries(app, shared, identity, design)
    legacy = _legacy(app, shared)
    control = admin.Admin(shared.faults, shared.journal, shared.accounts, identity.pages, identity.sessions)
    control.add_routes(app.router)
    offer = index.Offer(shared.settings, shared.accounts, shared.people, legacy.apikeys)
    index.Index(identity.pages, offer, lambda: design.client.urls).add_routes(app.router)
    app.middlewares.append(identity.pages.not_found)
    cross_origin.open_to_all(app, (*transport.PATHS, *discovery.FOR_PAGES))
    app.cleanup_ctx.append(shared.accounting.writing)
    app[SERVICES] = Services(shared, identity, design, legacy)
    return app


def _identity(app: web.Application, shared: Shared, key: keys.SigningKey | None) -> identities.Identity:
    """With the portal, which stands on its sessions."""
    identity = identities.assemble(
        shared.settings,
        shared.accounts,
        shared.people,
        kept=shared.kept,
        key=key,
        clock=shared.clock,
        rng=shared.rng,
        seen=shared.traffic.note_token,
    )
    identity.add_routes(app.router, shared.watch)
    pages = portal.assemble(identity, shared.accounts, shared.people, shared.accounting, clock=shared.clock)
    pages.add_routes(app.router)
    return identity


def _design(app: web.Application, shared: Shared, identity: identities.Identity) -> design_services.DesignServices:
    held = design_store.DesignStore(
        shared.catalog,
        shared.settings.seed,
        shared.clock,
        lambda: design_store.members_of(shared.people),
        kept=shared.kept,
    )
    design = design_services.DesignServices(held, shared.journal, shared.settings.design_port)
    app.cleanup_ctx.append(design.lifespan)
    files.FileService(held, identity.issued).add_routes(app.router)
    return design


def _queries(
    app: web.Application, shared: Shared, identity: identities.Identity, design: design_services.DesignServices
) -> None:
    """The query service, over HTTP and over sockets, and its IDE."""
    queries = service.QueryService(
        sandbox_settings=shared.settings,
        schema_variants=shared.surfaces,
        fault_injector=shared.faults,
        catalog=shared.catalog,
        application_accounts=shared.accounts,
        users=shared.people,
        part_accounting=shared.accounting,
        issued_tokens=identity.issued,
        clock=shared.clock,
        rng=shared.rng,
        record=shared.traffic.note_query,
        design=lambda: design.client,
    )
    websocket = websockets.WebSocketTransport(queries, shared.watch)
    app.on_shutdown.append(websocket.close)
    schema_download = transport.SchemaDownload(lambda: shared.surfaces.current(shared.faults.missing).schema)
    ide = _ide(shared, identity)
    ide.add_routes(app.router)
    transport.HttpTransport(queries, ide.page, schema_download).add_routes(app.router, shared.watch, websocket)


def _ide(shared: Shared, identity: identities.Identity) -> running_ide.Ide:
    return running_ide.Ide(
        identity=identity,
        known=shared.accounts,
        users=shared.people,
        counted=shared.accounting,
        watch=shared.watch,
        clock=shared.clock,
        issuer=shared.settings.issuer,
        token_required=not shared.settings.no_auth,
    )


def _legacy(app: web.Application, shared: Shared) -> legacy_service.Service:
    """The old v3 service."""
    legacy = legacy_service.Service(shared.settings.legacy, shared.catalog, shared.clock, shared.settings.seed)
    legacy_endpoints.Endpoints(legacy, shared.journal).add_routes(app.router)
    legacy_admin.Admin(legacy).add_routes(app.router)
    return legacy


class _Closable(Protocol):
    def close(self) -> None: ...


def _closing(opened: _Closable) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_app: web.Application) -> None:
        opened.close()

    return close
