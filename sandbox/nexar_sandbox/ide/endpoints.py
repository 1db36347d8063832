"""Endpoints of the IDE page: session with user and application, access tokens, authorization requests.

Only applications of the user's organisation are used. POST requests need the session's CSRF token in a header.
"""

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from nexar_sandbox import applications, part_usage, user_directory
from nexar_sandbox.ide import assets, token_client
from nexar_sandbox.identity import authorization_endpoint, discovery, forms, login, scopes, service, sessions
from nexar_sandbox.injection import exchanges
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.state import file

SESSION_PATH, TOKEN_PATH, AUTHORIZATION_PATH = "/ide/session", "/ide/token", "/ide/authorization"
IDE_PATH, PORTAL_PATH = "/graphql", "/portal"
# The vendor's documents name the IDE's redirect URI with the slash; the page is at both.
REDIRECT_PATH = "/graphql/"
CSRF_HEADER = "X-CSRF-Token"

# Errors of the state file are reported to the page instead of logged as tracebacks.
TOKEN_ERRORS = (token_client.TokenRequestError, file.StateError)
SessionApplication = tuple[sessions.BrowserSession, applications.SandboxApplication]


class IdeEndpoints:
    """The handlers."""

    def __init__(
        self,
        *,
        browser_sessions: sessions.BrowserSessions,
        registry: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        usage: part_usage.PartUsage,
        client: token_client.IdeTokenClient,
        issuer: str | None,
        token_required: bool,
    ) -> None:
        self._sessions, self._registry, self._users, self._usage = browser_sessions, registry, users, usage
        self._client, self._issuer, self._token_required = client, issuer, token_required

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the endpoints."""
        router.add_get(SESSION_PATH, self.session)
        router.add_post(TOKEN_PATH, self.token)
        router.add_post(AUTHORIZATION_PATH, self.authorization)

    async def session(self, request: web.Request) -> web.Response:
        """200 with user, organisation and application, null if missing."""
        session, user = self._sessions.of(request), self._sessions.user(request)
        links = {"sign_in": login.login_url(IDE_PATH), "account": login.ACCOUNT_PATH, "portal": PORTAL_PATH}
        body: dict[str, Any] = {"user": None, "organisation": None, "application": None, "csrf": None, "links": links}
        body["token_required"] = self._token_required
        if session is not None and user is not None:
            organisation = self._users.organisation(user.organisation)
            application = self._registry.ide_application(user.organisation)
            body |= {
                "user": {"name": user.name, "email": user.email},
                "organisation": organisation.name if organisation else None,
                "application": self._described(session, application, request) if application else None,
                "csrf": self._sessions.csrf_token(session),
            }
        return forms.json_response(body, 200)

    async def token(self, request: web.Request) -> web.Response:
        """200 with a cached or new token. `renew` forces a new one, `grant` chooses the grant type, `code` and `state`
        are those of the redirect. 409 if the user has to authorize first."""
        try:
            (session, application), fields = self._visit(request), await _body(request)
            return forms.json_response(_token_body(await self._token(session, application, fields, request)), 200)
        except TOKEN_ERRORS as refused:
            return _refused(refused)

    async def authorization(self, request: web.Request) -> web.Response:
        """200 with the URL of an authorization request for `scope`. Adds the IDE's address to the application's
        redirect URIs."""
        try:
            (session, application), fields = self._visit(request), await _body(request)
            address = _ide_address(request)
            self._let_back(application, address)
        except TOKEN_ERRORS as refused:
            return _refused(refused)
        query = self._client.start(session, application, address, fields.get("scope") or _scope(application))
        return forms.json_response(
            {"url": f"{request.url.origin()}{authorization_endpoint.AUTHORIZE_PATH}?{query}"}, 200
        )

    def _let_back(self, application: applications.SandboxApplication, address: str) -> None:
        if address not in application.redirect_uris:
            self._registry.replace(
                dataclasses.replace(application, redirect_uris=(*application.redirect_uris, address))
            )

    async def _token(
        self,
        session: sessions.BrowserSession,
        application: applications.SandboxApplication,
        fields: Mapping[str, str],
        request: web.Request,
    ) -> token_client.IdeToken:
        # The page has come back from the authorization endpoint.
        if "code" in fields:
            return await self._client.finish(session, application, fields["code"], fields.get("state", ""), request)
        token = self._client.cached(session, application)
        if token is not None and "renew" not in fields and "grant" not in fields:
            return token
        grant = fields.get("grant") or _grant(application)
        if grant == applications.CLIENT_CREDENTIALS:
            return await self._client.by_itself(session, application, request)
        # A user has authorized the application before, if there is a refresh token.
        refreshed = await self._client.refresh(session, application, request)
        if refreshed is None:
            raise token_client.TokenRequestError(
                409, "interaction_required", "The user has to authorize the application."
            )
        return refreshed

    def _visit(self, request: web.Request) -> SessionApplication:
        """The session and its application. Raises TokenRequestError."""
        session, user = self._sessions.of(request), self._sessions.user(request)
        if session is None or user is None:
            raise token_client.TokenRequestError(401, "login_required", "No user is signed in.")
        if not self._sessions.is_own(session, request.headers.get(CSRF_HEADER)):
            raise token_client.TokenRequestError(
                403, "invalid_csrf", f"{CSRF_HEADER} is not this session's; reload the page."
            )
        application = self._registry.ide_application(user.organisation)
        if application is None:
            raise token_client.TokenRequestError(404, "no_application", "Your organisation has no application.")
        return session, application

    def _described(
        self, session: sessions.BrowserSession, application: applications.SandboxApplication, request: web.Request
    ) -> dict[str, Any]:
        issuer, grant = forms.issuer(request, self._issuer), _grant(application)
        return {
            "name": application.name,
            "application_id": application.application_id,
            "parts_used": self._usage.used(application.application_id),
            "part_limit": self._usage.limit(application),
            "grant": grant,
            "needs_user": grant == applications.AUTHORIZATION_CODE and self._client.needs_user(session, application),
            "grants": sorted(application.flows & {applications.CLIENT_CREDENTIALS, applications.AUTHORIZATION_CODE}),
            "settings": {
                "authorize_url": issuer + authorization_endpoint.AUTHORIZE_PATH,
                "token_url": issuer + discovery.TOKEN_PATH,
                "client_id": application.client_id,
                "redirect_uri": _ide_address(request),
                "scope": _scope(application),
                "code_challenge_method": "S256",
            },
        }


def _ide_address(request: web.Request) -> str:
    """The IDE's redirect URI: the query service's address (contract graphql.md §4.3)."""
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
        raise token_client.TokenRequestError(400, "invalid_request", "The body must be a JSON object of strings.")
    return fields


def _token_body(token: token_client.IdeToken) -> dict[str, Any]:
    return {
        "access_token": token.access_token,
        "expires_at": token.expires,
        "scope": token.scope,
        "by_user": token.by_user,
    }


def _refused(refused: token_client.TokenRequestError | file.StateError) -> web.Response:
    if isinstance(refused, file.StateError):
        refused = token_client.TokenRequestError(500, "server_error", f"The state file cannot be written: {refused}.")
    headers = {"Retry-After": str(refused.retry_after)} if refused.retry_after else {}
    return forms.json_response(
        {"error": refused.code, "error_description": refused.description}, refused.status, headers
    )


class Ide:
    """The IDE: page, assets and endpoints. `issuer` None: the origin of the page. `token_required`: queries need a
    token."""

    def __init__(
        self,
        *,
        identity: service.IdentityService,
        registry: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        usage: part_usage.PartUsage,
        exchange_middleware: exchanges.ExchangeMiddleware,
        clock: clocks.Clock,
        issuer: str | None,
        token_required: bool,
    ) -> None:
        client = token_client.IdeTokenClient(identity.token, exchange_middleware, clock, random.SystemRandom())
        self._page, self._assets = assets.IdePage(), assets.Assets()
        self._access = IdeEndpoints(
            browser_sessions=identity.sessions,
            registry=registry,
            users=users,
            usage=usage,
            client=client,
            issuer=issuer,
            token_required=token_required,
        )

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register all but the page, whose path is that of the query service."""
        self._assets.add_routes(router)
        self._access.add_routes(router)

    def page(self, request: web.Request) -> web.Response:
        """The page, served at the path of the query service."""
        return self._page.show(request)
