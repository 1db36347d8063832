"""Token endpoint over HTTP, with its rate limits and faults (contract graphql.md §4.1); discovery, key and userinfo
endpoints. Those for browsers are in `authorization_endpoint.py` and `login.py`, the protocol is in `oauth.py`.
"""

import math
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from nexar_sandbox import applications, clocks, exchanges, user_directory
from nexar_sandbox.identity import (
    authorization_endpoint,
    forms,
    oauth,
    tokens,
)

TOKEN_PATH = "/connect/token"  # noqa: S105 (a path, no secret)
USERINFO_PATH = "/connect/userinfo"
DISCOVERY_PATH = "/.well-known/openid-configuration"
JWKS_PATH = DISCOVERY_PATH + "/jwks"
FACTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("discovery.toml").read_text("utf-8"))
PATHS = {
    "jwks_uri": JWKS_PATH,
    "authorization_endpoint": authorization_endpoint.AUTHORIZE_PATH,
    "token_endpoint": TOKEN_PATH,
    "userinfo_endpoint": USERINFO_PATH,
}


class TokenEndpoint:
    """Handler of token requests. `limits` apply per client id; `record_request` is called at each request."""

    def __init__(
        self,
        server: oauth.OAuthServer,
        limits: tuple[clocks.Window, ...],
        clock: clocks.Clock,
        record_request: Callable[[], None],
        exchange_middleware: exchanges.ExchangeMiddleware,
    ) -> None:
        self._exchange_middleware = exchange_middleware
        self._server, self._limits, self._clock, self._record_request = server, limits, clock, record_request
        self._windows: dict[str, clocks.Windows] = {}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the endpoint for all methods: wrong ones get invalid_request."""
        router.add_route("*", TOKEN_PATH, self._exchange_middleware.wrap("token", self.token))

    async def token(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """200 with the token, 400 with an OAuth error, 429 with Retry-After over a request window."""
        self._record_request()
        form = await forms.oauth_form(request)
        if form is None:
            return forms.json_response({"error": "invalid_request"}, 400)
        try:
            client_id, secret = oauth.read_credentials(form, request.headers.get("Authorization"))
            known = self._server.registry.by_client_id(client_id)
            # The rate limit applies before authentication, so that guessing secrets is limited, too.
            if known is not None and (wait := self._wait(known.client_id)):
                # The body is our own: the contract has none for this case.
                slow = {"error": "slow_down", "error_description": "too many token requests for this client"}
                return forms.json_response(slow, 429, {"Retry-After": str(math.ceil(wait))})
            application = oauth.authenticate(known, secret)
            exchange.entry.application = application.application_id
            sign_in = await self._sign_in(application, form)
            return forms.json_response(self._server.token(application, form, forms.issuer(request), sign_in), 200)
        except oauth.OAuthError as error:
            # Without a description, as in IdentityServer.
            return forms.json_response({"error": error.code}, 400)

    def issue_for(
        self, application: applications.SandboxApplication, sign_in: tokens.SignIn, request: web.Request
    ) -> dict[str, Any]:
        """Return the token response for a page of the sandbox, without a limit of requests: the application's own
        token, or that of the signed-in user if it gives more access. Raises oauth.OAuthError."""
        self._record_request()
        with self._exchange_middleware.record("token", request) as exchange:
            exchange.entry.application = application.application_id
            return self._server.token_of(application, sign_in, forms.issuer(request))

    def _wait(self, client_id: str) -> float:
        """Seconds until the rate limit admits a request. Drops limits of deleted applications."""
        if client_id not in self._windows:
            self._windows = {
                id_: limits for id_, limits in self._windows.items() if self._server.registry.by_client_id(id_)
            }
            self._windows[client_id] = clocks.Windows(self._limits, self._clock)
        return self._windows[client_id].try_take()

    async def _sign_in(
        self, application: applications.SandboxApplication, form: Mapping[str, str]
    ) -> tokens.SignIn | None:
        """Authenticate the user of the password grant, if the application may use it."""
        if form.get("grant_type") != applications.PASSWORD or applications.PASSWORD not in application.flows:
            return None
        user = await self._server.users.authenticate(form.get("username", ""), form.get("password", ""))
        return None if user is None else tokens.SignIn(user.id, int(self._clock.now()))


@dataclass(frozen=True, slots=True)
class ResourceEndpoints:
    server: oauth.OAuthServer

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(DISCOVERY_PATH, self.discovery)
        router.add_get(JWKS_PATH, self.jwks)
        router.add_get(USERINFO_PATH, self.userinfo)
        router.add_post(USERINFO_PATH, self.userinfo)

    async def discovery(self, request: web.Request) -> web.Response:
        issuer = forms.issuer(request)
        document = {"issuer": issuer, **{name: issuer + path for name, path in PATHS.items()}, **FACTS}
        return forms.json_response(document, 200, store=True)

    async def jwks(self, _request: web.Request) -> web.Response:
        return forms.json_response(self.server.token_issuer.key.jwks(), 200, store=True)

    async def userinfo(self, request: web.Request) -> web.Response:
        """Claims of the user by the token's scopes (OpenID Connect Core §5.3); 401 for an invalid token, 403 without
        the scope openid."""
        try:
            access = self.server.token_issuer.access(await _bearer(request))
        except (tokens.InvalidTokenError, tokens.ExpiredTokenError):
            return _challenge(401, "invalid_token")
        user = self.server.users.by_id(access.user or "")
        if oauth.OPENID not in access.scopes:
            return _challenge(403, "insufficient_scope")
        if user is None:
            return _challenge(401, "invalid_token")
        return forms.json_response(_claims(user, access.scopes), 200)


async def _bearer(request: web.Request) -> str:
    """Return the bearer token (RFC 6750 §2.1 and §2.2); empty if there is none."""
    token = forms.access_token(request.headers)
    return (await forms.oauth_form(request) or {}).get("access_token", "") if token is None else token


def _claims(user: user_directory.SandboxUser, names: Collection[str]) -> dict[str, object]:
    """Return the claims of a user that these scopes allow."""
    claims: dict[str, object] = {"sub": user.id}
    if "profile" in names:
        claims |= {"name": user.name, "given_name": user.given_name, "family_name": user.family_name}
        claims["preferred_username"] = user.email
    if "email" in names:
        claims |= {"email": user.email, "email_verified": True}
    return claims


def _challenge(status: int, error: str) -> web.Response:
    return forms.json_response({"error": error}, status, {"WWW-Authenticate": f'Bearer error="{error}"'})
