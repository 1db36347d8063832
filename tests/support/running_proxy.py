"""A running proxy in front of any upstream, and a v3 client of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
import yarl

import nexar_sandbox
from proxy import app, config
from proxy.kit import clock
from proxy.web import ports

KEY = "EXAMPLE_KEY"
PATIENT = 60.0  # seconds, for a busy machine


def settings(graphql_url: str, token_url: str, **changes: Any) -> config.Config:
    """A configuration with one application.

    `changes` are its `application`'s fields, `upstream`'s, the `site`, and whole blocks. Retries are off
    unless `upstream` sets them, so that a test can count requests.
    """
    application = {
        "apikeys": (config.ApiKeySettings(config.digest(KEY)),),
        "client_id": config.ClientId("a-client-id"),
        "client_secret": config.Secret("a-client-secret"),
        **changes.pop("application", {}),
    }
    return config.Config(
        applications={"demo": config.ApplicationSettings(**application)},
        store=config.StoreUrl(changes.pop("store", "memory:")),
        upstream=config.UpstreamSettings(
            graphql_url=graphql_url,
            token_url=token_url,
            site=changes.pop("site", "octopart"),
            **{"total_seconds": PATIENT, **changes.pop("upstream", {})},
        ),
        uids=changes.pop("uids", None),
        translation=config.TranslationSettings(**changes.pop("translation", {})),
        listen=config.ListenSettings(**changes.pop("listen", {})),
        admin=config.AdminSettings(port=0),
    )


def in_front_of(sandbox: nexar_sandbox.Sandbox, **changes: Any) -> config.Config:
    """A configuration with a sandbox as upstream, and the credentials of its first application."""
    own = {"client_id": config.ClientId(sandbox.client_id), "client_secret": config.Secret(sandbox.client_secret)}
    changes["application"] = own | changes.get("application", {})
    return settings(**{"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url, **changes})


class ProxyClient:
    """v3 client of the proxy, and of its operators' port."""

    def __init__(self, url: str, operators_url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.operators_url = operators_url
        self.session = session

    def at(self, target: str) -> str:
        """Return the URL of the port that a target is on."""
        return self.operators_url if target in ("/readyz", "/metrics") else self.url

    def port_of(self, target: str) -> int:
        return int(self.at(target).rpartition(":")[2])

    async def get(self, target: str, **options: Any) -> aiohttp.ClientResponse:
        """A target exactly as given, such as `/v3/parts/match?apikey=…`; the body has been read."""
        url = yarl.URL(self.at(target) + target, encoded=True)
        async with self.session.request(options.pop("method", "GET"), url, **options) as response:
            await response.read()
            return response

    async def match(self, queries: str, more: str = "", key: str = KEY) -> Any:
        """The JSON of a /parts/match that must succeed."""
        response = await self.get(f"/v3/parts/match?apikey={key}&queries={quote(queries)}{more}")
        assert response.status == 200, await response.text()
        return await response.json()


@asynccontextmanager
async def running(settings: config.Config, time: clock.Clock | None = None) -> AsyncIterator[ProxyClient]:
    async with serving(settings, time) as (_, client):
        yield client


@asynccontextmanager
async def serving(
    settings: config.Config, time: clock.Clock | None = None
) -> AsyncIterator[tuple[app.Service, ProxyClient]]:
    """Serve while the block runs; also gives the service, for tests that need more of it than requests."""
    opened = [ports.open_port("127.0.0.1", 0)[0] for _ in range(2 if settings.admin else 1)]
    sockets = ports.WorkerSockets(*opened)
    async with app.serving(settings, sockets, clock=time) as service, aiohttp.ClientSession() as session:
        yield service, ProxyClient(service.url, service.operators_url, session)
