"""A running proxy with its admin interface, and a client of both."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import yarl
from aiohttp import web

from proxy import config
from proxy.kit import clock
from proxy.web import server
from proxy.web.admin import listener
from proxy.web.service import SERVICE, RunningService
from support import html_forms, running_proxy

TOKEN = "the-admin-token-of-the-tests"
READ_TOKEN = "the-read-only-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PAGE = {"Accept": "text/html"}
SETTINGS = config.AdminSettings(port=0, token=config.Secret(TOKEN), read_token=config.Secret(READ_TOKEN))


class AdminClient:
    """Client of an admin interface: a browser without scripts, and a program with the bearer token.

    `proxy` is a v3 client of the same service, `service` the service itself.
    """

    def __init__(
        self,
        url: str,
        proxy: running_proxy.ProxyClient,
        app: web.Application,
        session: aiohttp.ClientSession,
        service: RunningService,
    ) -> None:
        self.url = url
        self.proxy = proxy
        self.service = service
        self.session = session
        self._app = app

    @property
    def routes(self) -> list[tuple[str, str]]:
        """Method and path of every route, as they are registered."""
        routes = ((route.method, route.resource) for route in self._app.router.routes())
        return [(method, resource.canonical) for method, resource in routes if resource and method != "HEAD"]

    async def send(self, method: str, target: str, **options: Any) -> aiohttp.ClientResponse:
        """Send a request exactly as given, with the cookies of earlier ones; the body has been read."""
        url = yarl.URL(self.url + target, encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **options) as response:
            await response.read()
            return response

    async def json(self, target: str) -> Any:
        """Return the JSON of a page, requested with the bearer token."""
        response = await self.send("GET", target, headers=BEARER)
        assert response.status == 200, await response.text()
        return await response.json()

    async def page(self, target: str) -> str:
        """Return the HTML of a page, requested with the bearer token."""
        response = await self.send("GET", target, headers=BEARER | PAGE)
        assert response.status == 200, await response.text()
        return await response.text()

    async def act(self, path: str, fields: Mapping[str, str] | None = None) -> str:
        """Take an action with the bearer token; return its message."""
        response = await self.send("POST", path, headers=BEARER, data=fields or {})
        assert response.status == 200, await response.text()
        return str((await response.json())["message"])

    async def sign_in(self, token: str = TOKEN, target: str = "/") -> aiohttp.ClientResponse:
        """Send the form of the sign-in page; the session keeps the cookie."""
        return await self.send("POST", "/sign-in", headers=PAGE, data={"token": token, "next": target})

    async def submit(self, target: str, action: str, **fields: str) -> aiohttp.ClientResponse:
        """Send the form of a page whose action ends so, with its hidden fields, in the session."""
        page = await (await self.send("GET", target, headers=PAGE)).text()
        form = next(form for form in html_forms.all_forms(page) if form.action.endswith(action))
        return await self.send("POST", form.action, headers=PAGE, data={**form.fields, **fields})


@asynccontextmanager
async def running(settings: config.Config, time: clock.Clock | None = None) -> AsyncIterator[AdminClient]:
    """Serve a configuration of `running_proxy.settings` and its admin interface while the block runs."""
    settings = msgspec.structs.replace(settings, admin=SETTINGS)
    async with running_proxy.serving(settings, time) as (service, proxy):
        running_service = service[SERVICE]
        admin = listener.create(running_service, SETTINGS, time or clock.SystemClock())
        async with server.running(admin, "127.0.0.1", 0) as url, aiohttp.ClientSession(cookie_jar=_jar(url)) as session:
            yield AdminClient(url, proxy, admin, session, running_service)


def _jar(url: str) -> aiohttp.CookieJar:
    """Return a cookie jar that keeps Secure cookies of this machine, as browsers do."""
    return aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=yarl.URL(url))
