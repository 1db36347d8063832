"""Token endpoint over HTTP, with its rate limits and faults (contract graphql.md §4.1).

Authenticates the client, then runs Authlib's grants (`grants.py`). Also the discovery, key, userinfo, revocation and
introspection endpoints; those for browsers are in `authorization_endpoint.py` and `login.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web
from authlib.oidc.core import UserInfo

from nexar_sandbox import applications, clocks, exchanges, user_directory, windows
from nexar_sandbox.identity import authorization_server, clients, discovery, forms, scopes, tokens
from nexar_sandbox.identity.clients import ProtocolRequest


class TokenEndpoint:
    """Handler of token requests. `limits` apply per client id; `record_request` is called at each request."""

    def __init__(
        self,
        server: authorization_server.OAuthServer,
        limits: tuple[windows.Window, ...],
        clock: clocks.Clock,
        record_request: Callable[[], None],
    ) -> None:
        self._server, self._limits, self._clock, self._record_request = server, limits, clock, record_request
        self._windows: dict[str, windows.Windows] = {}

    def add_routes(self, router: web.UrlDispatcher, exchange_middleware: exchanges.ExchangeMiddleware) -> None:
        """Register the endpoint for all methods: wrong ones get invalid_request."""
        router.add_route("*", discovery.TOKEN_PATH, exchange_middleware.wrap("token", self.token))

    async def token(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """200 with the token, 400 with an OAuth error, 429 with Retry-After over a request window."""
        self._record_request()
        form = await forms.oauth_form(request)
        if form is None:
            return _refused("invalid_request")
        return await self._ask(form, request, request.headers.get("Authorization"), exchange)

    async def ask_for(
        self,
        application: applications.SandboxApplication,
        form: Mapping[str, str],
        request: web.Request,
        exchange: exchanges.Exchange,
    ) -> web.Response:
        """Token request of a page of the sandbox on behalf of an application; the same rate limits apply. `request` is
        the page's."""
        self._record_request()
        secret = {"client_id": application.client_id, "client_secret": application.client_secret}
        return await self._ask({**form, **secret}, request, None, exchange)

    async def _ask(
        self, form: Mapping[str, str], request: web.Request, authorization: str | None, exchange: exchanges.Exchange
    ) -> web.Response:
        try:
            credentials = clients.read_credentials(form, authorization)
            known = self._server.registry.by_client_id(credentials.client_id)
            # The rate limit applies before authentication, so that guessing secrets is limited, too.
            if known is not None and (wait := self._wait(known.client_id)):
                # The body is our own: the contract has none for this case.
                slow = {"error": "slow_down", "error_description": "too many token requests for this client"}
                return forms.json_response(slow, 429, {"Retry-After": str(math.ceil(wait))})
            application = clients.authenticate_client(known, credentials)
        except clients.ClientAuthenticationError as refused:
            return _refused(refused.code)
        exchange.entry.application = application.application_id
        sign_in = await self._sign_in(application, form)
        protocol_request = ProtocolRequest("POST", tuple(form.items()), forms.issuer(request), application, sign_in)
        response = self._server.token(protocol_request)
        if response.status != 200:
            return _refused(response.body["error"])
        return forms.json_response(forms.order_token_fields(response.body), 200)

    def _wait(self, client_id: str) -> float:
        """Seconds until the rate limit admits a request. Drops limits of deleted applications."""
        if client_id not in self._windows:
            self._windows = {
                id_: limits for id_, limits in self._windows.items() if self._server.registry.by_client_id(id_)
            }
            self._windows[client_id] = windows.Windows(self._limits, self._clock)
        return self._windows[client_id].try_take()

    async def _sign_in(
        self, application: applications.SandboxApplication, form: Mapping[str, str]
    ) -> tokens.SignIn | None:
        """Authenticate the user of the password grant, if the application may use it."""
        if form.get("grant_type") != applications.PASSWORD or applications.PASSWORD not in application.flows:
            return None
        user = await self._server.users.authenticate(form.get("username", ""), form.get("password", ""))
        return None if user is None else tokens.SignIn(user.id, int(self._clock.now()))


def _refused(error: str) -> web.Response:
    """Return the response to a refused request, as in IdentityServer: without a description."""
    return forms.json_response({"error": error}, 400)


@dataclass(frozen=True, slots=True)
class ResourceEndpoints:
    server: authorization_server.OAuthServer

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(discovery.DISCOVERY_PATH, self.discovery)
        router.add_get(discovery.JWKS_PATH, self.jwks)
        router.add_get(discovery.USERINFO_PATH, self.userinfo)
        router.add_post(discovery.USERINFO_PATH, self.userinfo)
        router.add_post(discovery.REVOCATION_PATH, self.revocation)
        router.add_post(discovery.INTROSPECTION_PATH, self.introspection)

    async def discovery(self, request: web.Request) -> web.Response:
        return forms.json_response(discovery.document(forms.issuer(request), self.server.registry.all), 200, store=True)

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
        if scopes.OPENID not in access.scopes:
            return _challenge(403, "insufficient_scope")
        if user is None:
            return _challenge(401, "invalid_token")
        return forms.json_response(_claims(user).filter(" ".join(access.scopes)), 200)

    async def revocation(self, request: web.Request) -> web.Response:
        """200 even for an unknown token (RFC 7009 §2.2)."""
        return await self._endpoint(request, "revocation", 400)

    async def introspection(self, request: web.Request) -> web.Response:
        """Token introspection (RFC 7662 §2.2)."""
        return await self._endpoint(request, "introspection", 401)

    async def _endpoint(self, request: web.Request, name: str, unknown: int) -> web.Response:
        """Run an endpoint of Authlib; `unknown` is the status for a failed client authentication."""
        form = await forms.oauth_form(request)
        if form is None:
            return forms.json_response({"error": "invalid_request"}, 400)
        try:
            credentials = clients.read_credentials(form, request.headers.get("Authorization"))
            application = clients.authenticate_client(
                self.server.registry.by_client_id(credentials.client_id), credentials
            )
        except clients.ClientAuthenticationError as refused:
            headers = {"WWW-Authenticate": "Basic"} if unknown == 401 else None
            return forms.json_response({"error": refused.code}, unknown, headers)
        response = self.server.endpoint(
            name, ProtocolRequest("POST", tuple(form.items()), forms.issuer(request), application)
        )
        return forms.json_response(response.body, response.status)


async def _bearer(request: web.Request) -> str:
    """Return the bearer token (RFC 6750 §2.1 and §2.2); empty if there is none."""
    token = forms.access_token(request.headers)
    return (await forms.oauth_form(request) or {}).get("access_token", "") if token is None else token


def _claims(user: user_directory.SandboxUser) -> UserInfo:
    return UserInfo(
        sub=user.id,
        name=user.name,
        given_name=user.given_name,
        family_name=user.family_name,
        preferred_username=user.email,
        email=user.email,
        email_verified=True,
    )


def _challenge(status: int, error: str) -> web.Response:
    return forms.json_response({"error": error}, status, {"WWW-Authenticate": f'Bearer error="{error}"'})
