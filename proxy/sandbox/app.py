"""The sandbox as a whole: identity, query and old v3 service on one port, joined here and nowhere else.

`create_app` for whoever runs aiohttp applications, `running` for commands and tests that want addresses.
"""

import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import http_exceptions, web

from proxy.kit import clock as clocks
from proxy.sandbox import accounting, accounts, admin, cross_origin, hosts, journal, people
from proxy.sandbox import settings as chosen
from proxy.sandbox.catalog import store
from proxy.sandbox.design import files, holdings, members
from proxy.sandbox.design import running as running_design
from proxy.sandbox.graphql import definition, schema, service, sockets, surfaces, transport
from proxy.sandbox.ide import running as running_ide
from proxy.sandbox.identity import admin as identity_admin
from proxy.sandbox.identity import assembly, authorization, discovery, keys, signing_in
from proxy.sandbox.injection import exchanges, injector
from proxy.sandbox.legacy_v3 import admin as legacy_admin
from proxy.sandbox.legacy_v3 import endpoints as legacy_endpoints
from proxy.sandbox.legacy_v3 import service as legacy_service
from proxy.sandbox.portal import assembly as portal
from proxy.sandbox.portal import visits
from proxy.sandbox.state import kept as state

MAX_BODY = 8 * 2**20
# Bytes of a request line or header: the old service says by itself what is too long for it.
MAX_LINE = 65_536
DOCUMENTS_KEPT = 256
# Seconds that answers under way are given at the end: some faults would take minutes.
SHUTDOWN = 1.0


@dataclass(slots=True)
class Traffic:
    """How many requests came, and the last (document, variables) pairs of the query service."""

    graphql: int = 0
    tokens: int = 0
    seen: deque[tuple[str, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=DOCUMENTS_KEPT))

    def note_query(self, document: str, variables: Mapping[str, Any]) -> None:
        """A request of the query service that could be read."""
        self.graphql += 1
        self.seen.append((document, variables))

    def note_token(self) -> None:
        """A token request."""
        self.tokens += 1


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox. `account` is the first one, or would be, had it not been deleted; `port` the one that it
    listens on.

    `faults` can be replaced at any moment, `journal` says what was asked and what came of it. `legacy` is the old v3
    service: its disturbances can be replaced too, and it counts requests. `accounts` and `people` may be changed at any
    moment, and another of the `keys` may sign. `design_urls` are the addresses of the design services by name; they
    let in the query service only.
    """

    url: str
    port: int
    account: accounts.Account
    accounting: accounting.Accounting
    requests: Traffic
    faults: injector.Injector
    journal: journal.Journal
    legacy: legacy_service.Service
    accounts: accounts.Accounts
    people: people.People
    keys: keys.KeyRing
    design_urls: Mapping[str, str]

    @property
    def legacy_url(self) -> str:
        """Where the old v3 service is, without its /v3."""
        return self.url

    @property
    def graphql_url(self) -> str:
        """Where queries are posted."""
        return self.url + transport.PATHS[0]

    @property
    def token_url(self) -> str:
        """Where tokens are asked for."""
        return self.url + discovery.TOKEN_PATH

    @property
    def account_url(self) -> str:
        """Where users sign in."""
        return self.url + signing_in.ACCOUNT_PATH

    @property
    def portal_url(self) -> str:
        """Where users look after their organisation's applications."""
        return self.url + visits.PATH

    @property
    def seen(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """The last documents with their variables, oldest first."""
        return tuple(self.requests.seen)


ACCOUNTING = web.AppKey("accounting", accounting.Accounting)
TRAFFIC = web.AppKey("traffic", Traffic)
FAULTS = web.AppKey("faults", injector.Injector)
JOURNAL = web.AppKey("journal", journal.Journal)
LEGACY = web.AppKey("legacy", legacy_service.Service)
ACCOUNTS = web.AppKey("accounts", accounts.Accounts)
PEOPLE = web.AppKey("people", people.People)
IDENTITY = web.AppKey("identity", assembly.Identity)
DESIGN = web.AppKey("design", running_design.Design)


def create_app(
    settings: chosen.Settings,
    clock: clocks.Clock,
    rng: random.Random | None = None,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> web.Application:
    """The sandbox as an application. A catalog or key that is handed in is shared and stays the caller's. Raises
    ValueError for a state file that cannot be had."""
    kept = state.Kept(settings.state)
    try:
        return _assembled(settings, clock, rng or random.SystemRandom(), kept, catalog=catalog, key=key)
    except BaseException:
        kept.close()
        raise


def _assembled(
    settings: chosen.Settings,
    clock: clocks.Clock,
    rng: random.Random,
    kept: state.Kept,
    *,
    catalog: store.Catalog | None,
    key: keys.SigningKey | None,
) -> web.Application:
    opened = catalog or store.open_catalog(settings.parts, settings.catalog, settings.seed, prepared=settings.prepared)
    built = schema.build()
    app = web.Application(client_max_size=MAX_BODY, middlewares=[hosts.wanted])
    app[JOURNAL], app[TRAFFIC] = journal.Journal(clock), Traffic()
    app[FAULTS] = drawing = injector.Injector(settings.faults, rng, schema.places(built))
    app[ACCOUNTING] = accounting.Accounting(clock, lambda: drawing.quota, kept)
    app[ACCOUNTS] = known = accounts.Accounts(settings.accounts, kept)
    app[PEOPLE] = users = people.People(settings.organisations, settings.users, kept)
    watch = exchanges.Watch(drawing, app[JOURNAL])
    app[IDENTITY] = identity = assembly.assemble(
        settings, known, users, kept=kept, key=key, clock=clock, rng=rng, seen=app[TRAFFIC].note_token
    )
    identity.add_routes(app.router, watch)
    portal.assemble(identity, known, users, app[ACCOUNTING], clock=clock).add_routes(app.router)
    held = holdings.Holdings(opened, settings.seed, clock, lambda: members.of(users), kept=kept)
    app[DESIGN] = running_design.Design(held, app[JOURNAL], settings.design_port)
    known_surfaces = surfaces.Surfaces(built)
    queries = service.QueryService(
        chosen=settings,
        surfaces_of=known_surfaces,
        drawing=drawing,
        catalog=opened,
        known=known,
        users=users,
        counted=app[ACCOUNTING],
        issued=identity.issued,
        clock=clock,
        rng=rng,
        seen=app[TRAFFIC].note_query,
        design=lambda: app[DESIGN].client,
    )
    app.cleanup_ctx.append(app[DESIGN].running)
    files.Files(held, identity.issued).add_routes(app.router)
    live = sockets.Sockets(queries, watch)
    app.on_shutdown.append(live.close)
    shown = definition.Definition(lambda: known_surfaces.current(drawing.missing).schema)
    ide = _ide(app, watch, clock, settings.issuer)
    transport.Transport(queries, ide.page, shown).add_routes(app.router, watch, live)
    app[LEGACY] = legacy_service.Service(settings.legacy, opened, clock, settings.seed)
    legacy_endpoints.Endpoints(app[LEGACY], app[JOURNAL]).add_routes(app.router)
    legacy_admin.Admin(app[LEGACY]).add_routes(app.router)
    admin.Admin(drawing, app[JOURNAL]).add_routes(app.router)
    app.router.add_get("/", _index)
    cross_origin.open_to_all(app, (*transport.PATHS, *discovery.FOR_PAGES))
    if catalog is None:
        app.on_cleanup.append(_closing(opened))
    app.cleanup_ctx.append(app[ACCOUNTING].writing)
    kept.finish()
    app.on_cleanup.append(_closing(kept))
    return app


def _ide(app: web.Application, watch: exchanges.Watch, clock: clocks.Clock, issuer: str | None) -> running_ide.Ide:
    ide = running_ide.Ide(
        identity=app[IDENTITY],
        known=app[ACCOUNTS],
        users=app[PEOPLE],
        counted=app[ACCOUNTING],
        watch=watch,
        clock=clock,
        issuer=issuer,
    )
    ide.add_routes(app.router)
    return ide


@asynccontextmanager
async def running(
    settings: chosen.Settings,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    clock: clocks.Clock | None = None,
    rng: random.Random | None = None,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> AsyncIterator[Sandbox]:
    """The sandbox on a socket, until the block ends. Port 0 is a free one. OSError for a port that is taken; where it
    is a design service's, PortError."""
    app = create_app(settings, clock or clocks.SystemClock(), rng, catalog=catalog, key=key)
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
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{bound}"
        account = next(iter(app[ACCOUNTS].all), settings.accounts[0])
        yield Sandbox(
            url,
            bound,
            account,
            app[ACCOUNTING],
            app[TRAFFIC],
            app[FAULTS],
            app[JOURNAL],
            app[LEGACY],
            app[ACCOUNTS],
            app[PEOPLE],
            app[IDENTITY].ring,
            app[DESIGN].client.urls,
        )
    finally:
        await runner.cleanup()


async def _index(request: web.Request) -> web.Response:
    """What there is and where: JSON, and a page for browsers."""
    if "text/html" in request.headers.get("Accept", ""):
        return request.app[IDENTITY].pages.render("home.html", portal=visits.PATH, ide=transport.PATHS[0])
    origin = str(request.url.origin())
    paths = {
        "graphql": transport.PATHS[0],
        "authorize": authorization.AUTHORIZE_PATH,
        "account": signing_in.ACCOUNT_PATH,
        "portal": visits.PATH,
        "token": discovery.TOKEN_PATH,
        "userinfo": discovery.USERINFO_PATH,
        "revocation": discovery.REVOCATION_PATH,
        "introspection": discovery.INTROSPECTION_PATH,
        "end_session": signing_in.END_SESSION_PATH,
        "discovery": discovery.DISCOVERY_PATH,
        "jwks": discovery.JWKS_PATH,
        "keys": identity_admin.PATH,
        "faults": admin.FAULTS_PATH,
        "journal": admin.JOURNAL_PATH,
        "files": files.PATH,
        "legacy": legacy_endpoints.PREFIXES[0],
        "disturbances": legacy_admin.PATH,
    }
    body = {
        "service": "sandbox",
        **{name: origin + path for name, path in paths.items()},
        **{f"design_{name}": url for name, url in request.app[DESIGN].client.urls.items()},
    }
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def _without_request_lines() -> logging.Logger:
    """aiohttp's log, but for requests that it cannot parse: it would repeat them, and an apikey of the old service."""
    log = logging.getLogger(__name__)
    log.addFilter(_was_http)  # one filter is added once
    return log


def _was_http(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], http_exceptions.HttpProcessingError))


def _closing(opened: store.Catalog | state.Kept) -> Any:
    async def close(_app: web.Application) -> None:
        opened.close()

    return close
