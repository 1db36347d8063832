"""The sandbox as a whole: identity and query service on one port, joined here and nowhere else.

`create_app` for whoever runs aiohttp applications, `running` for commands and tests that want addresses.
"""

import random
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import accounting, accounts
from proxy.sandbox import settings as chosen
from proxy.sandbox.catalog import store
from proxy.sandbox.graphql import service, transport
from proxy.sandbox.identity import endpoints, keys, tokens

MAX_BODY = 8 * 2**20
DOCUMENTS_KEPT = 256


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
    """A running sandbox. `account` is the first one; `port` the one that it listens on."""

    url: str
    port: int
    account: accounts.Account
    accounting: accounting.Accounting
    requests: Traffic

    @property
    def graphql_url(self) -> str:
        """Where queries are posted."""
        return self.url + transport.PATHS[0]

    @property
    def token_url(self) -> str:
        """Where tokens are asked for."""
        return self.url + endpoints.TOKEN_PATH

    @property
    def seen(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """The last documents with their variables, oldest first."""
        return tuple(self.requests.seen)


ACCOUNTING = web.AppKey("accounting", accounting.Accounting)
TRAFFIC = web.AppKey("traffic", Traffic)


def create_app(
    settings: chosen.Settings,
    clock: clocks.Clock,
    rng: random.Random | None = None,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> web.Application:
    """The sandbox as an application. A catalog or key that is handed in is shared and stays the caller's."""
    rng = rng or random.SystemRandom()
    key = key or keys.generate()
    opened = catalog or store.open_catalog(settings.parts, settings.catalog, settings.seed)
    known, traffic, counted = accounts.Accounts(settings.accounts), Traffic(), accounting.Accounting(clock)
    issued = tokens.Tokens(key, clock, rng, settings.token_lifetime, settings.audience)
    app = web.Application(client_max_size=MAX_BODY)
    app[ACCOUNTING], app[TRAFFIC] = counted, traffic
    endpoints.Endpoints(
        known=known,
        issued=issued,
        key=key,
        limits=settings.token_windows,
        clock=clock,
        issuer=settings.issuer,
        seen=traffic.note_token,
    ).add_routes(app.router)
    queries = service.QueryService(
        chosen=settings,
        catalog=opened,
        known=known,
        counted=counted,
        issued=issued,
        clock=clock,
        rng=rng,
        seen=traffic.note_query,
    )
    transport.Transport(queries).add_routes(app.router)
    app.router.add_get("/", _index)
    if catalog is None:
        app.on_cleanup.append(_closing(opened))
    return app


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
    """The sandbox on a socket, until the block ends. Port 0 is a free one. OSError for a port that is
    taken."""
    app = create_app(settings, clock or clocks.SystemClock(), rng, catalog=catalog, key=key)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound = runner.addresses[0][1]
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{bound}"
        yield Sandbox(url, bound, settings.accounts[0], app[ACCOUNTING], app[TRAFFIC])
    finally:
        await runner.cleanup()


async def _index(request: web.Request) -> web.Response:
    """What there is and where."""
    origin = str(request.url.origin())
    paths = {
        "graphql": transport.PATHS[0],
        "token": endpoints.TOKEN_PATH,
        "discovery": endpoints.DISCOVERY_PATH,
        "jwks": endpoints.JWKS_PATH,
    }
    body = {"service": "sandbox", **{name: origin + path for name, path in paths.items()}}
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def _closing(catalog: store.Catalog) -> Any:
    async def close(_app: web.Application) -> None:
        catalog.close()

    return close
