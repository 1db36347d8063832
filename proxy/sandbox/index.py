"""The sandbox's front door: what there is and where, as JSON for programs and as a page for people."""

from collections.abc import Callable, Mapping

import orjson
from aiohttp import web

from proxy.sandbox import admin, pages
from proxy.sandbox.design import files
from proxy.sandbox.graphql import transport
from proxy.sandbox.identity import admin as identity_admin
from proxy.sandbox.identity import authorization, discovery, signing_in
from proxy.sandbox.legacy_v3 import admin as legacy_admin
from proxy.sandbox.legacy_v3 import endpoints as legacy_endpoints
from proxy.sandbox.portal import visits

PATHS = {
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


class Index:
    """Answers at `/`. `design_urls` gives the addresses of the design services by name, once they listen."""

    def __init__(self, shown: pages.Pages, design_urls: Callable[[], Mapping[str, str]]) -> None:
        self._pages = shown
        self._design_urls = design_urls

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """The one."""
        router.add_get("/", self.show)

    async def show(self, request: web.Request) -> web.Response:
        """JSON, and a page for browsers."""
        if "text/html" in request.headers.get("Accept", ""):
            return self._pages.render("home.html", portal=visits.PATH, ide=transport.PATHS[0])
        origin = str(request.url.origin())
        body = {
            "service": "sandbox",
            **{name: origin + path for name, path in PATHS.items()},
            **{f"design_{name}": url for name, url in self._design_urls().items()},
        }
        return web.Response(body=orjson.dumps(body), content_type="application/json")
