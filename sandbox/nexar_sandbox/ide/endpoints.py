"""Endpoints of the IDE page: session with user and application, access tokens, authorization requests.

Only applications of the user's organization are used. POST requests need the session's CSRF token in a header.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
from aiohttp import web

from nexar_sandbox import applications, part_usage, user_directory
from nexar_sandbox.ide import assets, tokens
from nexar_sandbox.identity import authorization_endpoint, discovery, forms, login, scopes, service

SESSION_PATH, TOKEN_PATH, AUTHORIZATION_PATH = "/ide/session", "/ide/token", "/ide/authorization"
IDE_PATH, PORTAL_PATH = "/graphql", "/portal"
# The vendor's documents name the IDE's redirect URI with the slash; the page is at both.
REDIRECT_PATH = "/graphql/"
CSRF_HEADER = "X-CSRF-Token"

Answer = Callable[[tokens.Visit, dict[str, str]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Ide:
    """The IDE: page, assets and endpoints. `token_required`: queries need a token."""

    files: assets.Assets
    identity: service.IdentityService
    client: tokens.IdeTokenClient
    registry: applications.ApplicationRegistry
    users: user_directory.UserDirectory
    usage: part_usage.PartUsage
    token_required: bool

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register all but the page, whose path is that of the query service."""
        router.add_get(f"{assets.PATH}/{{name}}", self.files.file)
        router.add_get(SESSION_PATH, self._session)
        router.add_post(TOKEN_PATH, self._answer(self._token))
        router.add_post(AUTHORIZATION_PATH, self._answer(self._authorization))

    async def _session(self, request: web.Request) -> web.Response:
        """200 with user, organization and application, null if missing."""
        session, user = self.identity.sessions.of(request), self.identity.sessions.user(request)
        links = {"sign_in": login.login_url(IDE_PATH), "account": login.ACCOUNT_PATH, "portal": PORTAL_PATH}
        body: dict[str, Any] = {"user": None, "organization": None, "application": None, "csrf": None, "links": links}
        body["token_required"] = self.token_required
        if session is not None and user is not None:
            organization = self.users.organization(user.organization)
            application = self.registry.ide_application(user.organization)
            body |= {
                "user": {"name": user.name, "email": user.email},
                "organization": organization.name if organization else None,
                "application": self._described(tokens.Visit(request, session, application)) if application else None,
                "csrf": self.identity.sessions.csrf_token(session),
            }
        return forms.json_response(body, 200)

    def _described(self, visit: tokens.Visit) -> dict[str, Any]:
        application, grant = visit.application, _grant(visit.application)
        issuer = forms.issuer(visit.request)
        return {
            "name": application.name,
            "application_id": application.application_id,
            "parts_used": self.usage.used_in_period(application),
            "part_limit": self.usage.limit(application),
            "period": application.period,
            "grant": grant,
            "needs_user": grant == applications.AUTHORIZATION_CODE and self.client.needs_user(visit),
            "grants": sorted(application.flows & {applications.CLIENT_CREDENTIALS, applications.AUTHORIZATION_CODE}),
            "settings": {
                "authorize_url": issuer + authorization_endpoint.AUTHORIZE_PATH,
                "token_url": issuer + discovery.TOKEN_PATH,
                "client_id": application.client_id,
                "redirect_uri": _redirect_uri(visit.request),
                "scope": _scope(application),
                "code_challenge_method": "S256",
            },
        }

    def _answer(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Check session and body of a POST request, and respond with JSON, also to errors."""

        async def handle(request: web.Request) -> web.Response:
            try:
                return forms.json_response(await answer(self._visit(request), await _body(request)), 200)
            except tokens.TokenRequestError as refused:
                body = {"error": refused.code, "error_description": refused.description}
                headers = {"Retry-After": str(refused.retry_after)} if refused.retry_after else {}
                return forms.json_response(body, refused.status, headers)

        return handle

    def _visit(self, request: web.Request) -> tokens.Visit:
        sessions = self.identity.sessions
        session, user = sessions.of(request), sessions.user(request)
        if session is None or user is None:
            raise tokens.TokenRequestError(401, "login_required", "No user is signed in.")
        if not sessions.is_own(session, request.headers.get(CSRF_HEADER)):
            raise tokens.TokenRequestError(
                403, "invalid_csrf", f"{CSRF_HEADER} is not this session's; reload the page."
            )
        application = self.registry.ide_application(user.organization)
        if application is None:
            raise tokens.TokenRequestError(404, "no_application", "Your organization has no application.")
        return tokens.Visit(request, session, application)

    async def _token(self, visit: tokens.Visit, fields: dict[str, str]) -> dict[str, Any]:
        """Return a cached or new token. `renew` forces a new one, `grant` chooses the grant type, `code` and `state`
        are those of the redirect from the authorization endpoint."""
        if "code" in fields:
            token = await self.client.finish(visit, fields["code"], fields.get("state", ""))
        else:
            grant = fields.get("grant") or _grant(visit.application)
            token = await self.client.get(visit, grant, cached=fields.keys().isdisjoint({"renew", "grant"}))
        return {
            "access_token": token.access_token,
            "expires_at": token.expires,
            "scope": token.scope,
            "by_user": token.by_user,
        }

    async def _authorization(self, visit: tokens.Visit, fields: dict[str, str]) -> dict[str, Any]:
        """Return the URL of an authorization request for `scope`. Adds the IDE's address to the application's redirect
        URIs."""
        application, address = visit.application, _redirect_uri(visit.request)
        if address not in application.redirect_uris:
            self.registry.replace(replace(application, redirect_uris=(*application.redirect_uris, address)))
        query = self.client.start(visit, address, fields.get("scope") or _scope(application))
        return {"url": f"{visit.request.url.origin()}{authorization_endpoint.AUTHORIZE_PATH}?{query}"}


def _redirect_uri(request: web.Request) -> str:
    """Return the IDE's redirect URI: the query service's address (contract graphql.md §4.3)."""
    return f"{request.url.origin()}{REDIRECT_PATH}"


def _grant(application: applications.SandboxApplication) -> str:
    """Default grant type: authorization code if it gives more access than client credentials."""
    by_user = applications.AUTHORIZATION_CODE in application.flows
    if by_user and ("design" in application.domains or applications.CLIENT_CREDENTIALS not in application.flows):
        return applications.AUTHORIZATION_CODE
    return applications.CLIENT_CREDENTIALS


def _scope(application: applications.SandboxApplication) -> str:
    return " ".join((*scopes.ABOUT_USERS, *application.scopes))


async def _body(request: web.Request) -> dict[str, str]:
    """Read a JSON object of strings. Raises TokenRequestError."""
    try:
        fields = orjson.loads(await request.read() or b"{}")
    except orjson.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise tokens.TokenRequestError(400, "invalid_request", "The body must be a JSON object of strings.")
    return fields
