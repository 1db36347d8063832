"""Home page of the sandbox: URLs as JSON; as HTML also example commands and default credentials.

Shows only credentials that the sandbox was started with; changed secrets are in the portal, behind a sign-in.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import orjson
from aiohttp import web

from nexar_sandbox import admin, applications, pages, settings, user_directory
from nexar_sandbox.design import files
from nexar_sandbox.graphql import transport
from nexar_sandbox.identity import authorization_endpoint, discovery, login
from nexar_sandbox.legacy_v3 import endpoints as legacy_endpoints
from nexar_sandbox.portal import responder

PATHS = {
    "graphql": transport.PATHS[0],
    "authorize": authorization_endpoint.AUTHORIZE_PATH,
    "account": login.ACCOUNT_PATH,
    "portal": responder.PATH,
    "token": discovery.TOKEN_PATH,
    "userinfo": discovery.USERINFO_PATH,
    "revocation": discovery.REVOCATION_PATH,
    "introspection": discovery.INTROSPECTION_PATH,
    "end_session": login.END_SESSION_PATH,
    "discovery": discovery.DISCOVERY_PATH,
    "jwks": discovery.JWKS_PATH,
    "keys": admin.KEYS_PATH,
    "faults": admin.FAULTS_PATH,
    "journal": admin.JOURNAL_PATH,
    "files": files.PATH,
    "legacy": legacy_endpoints.PREFIXES[0],
    "disturbances": legacy_endpoints.ADMIN_PATH,
}
# Continues a command on the next line.
NEXT = " \\\n  "
# For sed: a token response becomes its access token.
EXTRACTION = r's/.*"access_token":"\([^"]*\)".*/\1/'
QUERY = '{ supSearchMpn(q: "LM358", limit: 1) { hits results { part { mpn shortDescription } } } }'


@dataclass(frozen=True, slots=True)
class DefaultCredentials:
    """Default applications, users and API keys of the legacy service that are still valid."""

    chosen: settings.SandboxSettings
    registry: applications.ApplicationRegistry
    users: user_directory.UserDirectory
    apikeys: tuple[str, ...]

    @property
    def applications(self) -> tuple[applications.SandboxApplication, ...]:
        """Default applications whose secret has not changed."""
        now = [self.registry.by_application(first.application_id) for first in self.chosen.applications]
        pairs = zip(self.chosen.applications, now, strict=True)
        return tuple(
            application
            for first, application in pairs
            if application and application.client_secret == first.client_secret
        )

    @property
    def credentials(self) -> list[tuple[str, dict[str, str]]]:
        old = [("Old v3 service", {"API key": apikey}) for apikey in self.apikeys]
        applications = [
            (application.name, {"Client id": application.client_id, "Client secret": application.client_secret})
            for application in self.applications
        ]
        users = [
            (user.name, {"E-mail": user.email, "Password": password})
            for user, password in self.users.with_default_password
        ]
        return old + applications + users

    def commands(self, origin: str) -> list[tuple[str, str]]:
        commands = [("GraphQL query service", command) for command in self._queries(origin)]
        return commands + [("Old v3 service", _legacy(origin, apikey)) for apikey in self.apikeys[:1]]

    def _queries(self, origin: str) -> list[str]:
        if self.chosen.no_auth:
            return [_query(origin, ())]
        able = (
            application
            for application in self.applications
            if {applications.CLIENT_CREDENTIALS} <= application.flows
            and applications.SUPPLY_SCOPE in application.scopes
        )
        return [
            f"{_token(origin, application)}\n{_query(origin, ('Authorization: Bearer $TOKEN',))}"
            for application in able
        ][:1]


class HomePage:
    """Handler of `/`. `design_urls` returns the URLs of the running design services by name."""

    def __init__(
        self, html_pages: pages.Pages, offer: DefaultCredentials, design_urls: Callable[[], Mapping[str, str]]
    ) -> None:
        self._pages, self._offer, self._design_urls = html_pages, offer, design_urls

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self.show)

    async def show(self, request: web.Request) -> web.Response:
        if not pages.prefers_html(request):
            body = orjson.dumps({"service": "sandbox", **self._addresses(request)})
            return web.Response(body=body, content_type="application/json", headers={"Vary": "Accept"})
        return self._pages.render(
            "home.html",
            copies=True,
            path=request.path,
            commands=self._offer.commands(str(request.url.origin())),
            credentials=self._offer.credentials,
            paths=PATHS,
        )

    def _addresses(self, request: web.Request) -> dict[str, str]:
        origin = str(request.url.origin())
        own = {name: origin + path for name, path in PATHS.items()}
        return own | {f"design_{name}": url for name, url in self._design_urls().items()}


def _token(origin: str, application: applications.SandboxApplication) -> str:
    form = urlencode(
        {
            "grant_type": applications.CLIENT_CREDENTIALS,
            "client_id": application.client_id,
            "client_secret": application.client_secret,
        }
    )
    address, script = shlex.quote(origin + discovery.TOKEN_PATH), shlex.quote(EXTRACTION)
    return f"TOKEN=$(curl -s {address}{NEXT}-d {shlex.quote(form)} |\n  sed {script})"


def _query(origin: str, headers: tuple[str, ...]) -> str:
    address, body = shlex.quote(origin + transport.PATHS[0]), shlex.quote(orjson.dumps({"query": QUERY}).decode())
    # In double quotes, because the shell fills in the token.
    options = "".join(f'{NEXT}-H "{header}"' for header in headers)
    return f"curl -s {address}{options}{NEXT}-H 'Content-Type: application/json'{NEXT}-d {body}"


def _legacy(origin: str, apikey: str) -> str:
    parameters = {"apikey": apikey, "queries": '[{"mpn":"LM358N"}]', "pretty_print": "true"}
    options = "".join(f"{NEXT}--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in parameters.items())
    return f"curl -sG {shlex.quote(f'{origin}{legacy_endpoints.PREFIXES[0]}/parts/match')}{options}"
