"""Home page of the sandbox: URLs as JSON; as HTML also example commands and default credentials.

Shows only credentials that the sandbox was started with; changed secrets are in the portal, behind a sign-in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson
from aiohttp import web

from nexar_sandbox import admin, applications, pages, settings, user_directory
from nexar_sandbox.design import files
from nexar_sandbox.graphql import transport
from nexar_sandbox.identity import authorization_endpoint, login
from nexar_sandbox.identity import endpoints as identity_endpoints
from nexar_sandbox.legacy_v3 import endpoints as legacy_endpoints
from nexar_sandbox.portal import responder

PATHS = {
    "graphql": transport.PATHS[0],
    "authorize": authorization_endpoint.AUTHORIZE_PATH,
    "account": login.ACCOUNT_PATH,
    "portal": responder.PATH,
    "token": identity_endpoints.TOKEN_PATH,
    "userinfo": identity_endpoints.USERINFO_PATH,
    "discovery": identity_endpoints.DISCOVERY_PATH,
    "jwks": identity_endpoints.JWKS_PATH,
    "faults": admin.FAULTS_PATH,
    "journal": admin.JOURNAL_PATH,
    "files": files.PATH,
    "legacy": legacy_endpoints.PREFIXES[0],
}


@dataclass(frozen=True, slots=True)
class HomePage:
    """Handler of `/`. `apikeys` are those of the legacy service; `design_urls` returns the URLs of the running design
    services by name."""

    html_pages: pages.Pages
    chosen: settings.SandboxSettings
    registry: applications.ApplicationRegistry
    users: user_directory.UserDirectory
    apikeys: tuple[str, ...]
    design_urls: Callable[[], Mapping[str, str]]

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self.show)

    async def show(self, request: web.Request) -> web.Response:
        origin = str(request.url.origin())
        if not pages.prefers_html(request):
            addresses = {name: origin + path for name, path in PATHS.items()}
            addresses |= {f"design_{name}": url for name, url in self.design_urls().items()}
            body = orjson.dumps({"service": "sandbox", **addresses})
            return web.Response(body=body, content_type="application/json", headers={"Vary": "Accept"})
        unchanged = self._applications()
        able = (
            each for each in unchanged if applications.CLIENT_CREDENTIALS in each.flows and "supply" in each.domains
        )
        return self.html_pages.render(
            "home.html",
            copies=True,
            path=request.path,
            origin=origin,
            paths=PATHS,
            no_auth=self.chosen.no_auth,
            application=next(able, None),
            apikeys=self.apikeys,
            credentials=self._credentials(unchanged),
        )

    def _applications(self) -> list[applications.SandboxApplication]:
        """Default applications whose secret has not changed."""
        now = [(first, self.registry.by_application(first.application_id)) for first in self.chosen.applications]
        return [known for first, known in now if known and known.client_secret == first.client_secret]

    def _credentials(self, unchanged: list[applications.SandboxApplication]) -> list[tuple[str, dict[str, str]]]:
        """Credentials by owner, shown with copy buttons."""
        return [
            *(("Old v3 API", {"API key": apikey}) for apikey in self.apikeys),
            *(
                (known.name, {"Client id": known.client_id, "Client secret": known.client_secret})
                for known in unchanged
            ),
            *(
                (user.name, {"E-mail": user.email, "Password": password})
                for user, password in self.users.with_default_password
            ),
        ]
