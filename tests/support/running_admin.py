"""A running proxy with its operators' port, and a client of both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import yarl

from proxy import app, config
from proxy.kit import clock
from support import running_proxy

TOKEN = "the-token-of-operators-in-tests"
SETTINGS = config.AdminSettings(port=0, token=config.secret.OperatorsToken(TOKEN))


class AdminClient:
    """Client of an operators' port. `proxy` is a v3 client of the same service, `gateway` and `seen` are those of
    the service."""

    def __init__(self, proxy: running_proxy.ProxyClient, service: app.Service) -> None:
        self.url = service.operators_url
        self.proxy = proxy
        self.gateway = service.app.gateway
        self.seen = service.seen

    async def send(self, method: str, target: str, **options: Any) -> aiohttp.ClientResponse:
        """Send a request exactly as given; the body has been read."""
        url = yarl.URL(self.url + target, encoded=True)
        async with self.proxy.session.request(method, url, **options) as response:
            await response.read()
            return response

    async def status(self, more: str = "") -> Any:
        """Return the status, requested with the token, with `more` behind its path."""
        response = await self.send("GET", f"/status{more}", headers={"Authorization": f"Bearer {TOKEN}"})
        assert response.status == 200, await response.text()
        return await response.json()


@asynccontextmanager
async def running(
    settings: config.Config, time: clock.Clock | None = None, admin: config.AdminSettings = SETTINGS
) -> AsyncIterator[AdminClient]:
    """Serve a configuration of `running_proxy.settings` and its operators' port while the block runs."""
    settings = msgspec.structs.replace(settings, admin=admin)
    async with running_proxy.serving(settings, time) as (service, proxy):
        yield AdminClient(proxy, service)
