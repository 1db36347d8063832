"""Token endpoint over HTTP, with its rate limits and faults (contract graphql.md §4.1).

Authenticates the client, then runs Authlib's grants (`grants.py`). Also the discovery, key, userinfo, revocation and
introspection endpoints; those for browsers are in `authorization_endpoint.py` and `login.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate

from aiohttp import web
from authlib.oidc.core import UserInfo

from nexar_sandbox import applications, faults, user_directory
from nexar_sandbox.identity import authorization_server, clients, discovery, forms, keys, scopes, tokens
from nexar_sandbox.identity.clients import ProtocolRequest
from nexar_sandbox.injection import exchanges
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.kit import windows

OMITTED_FIELDS = {
    "expires_in": frozenset({"expires_in"}),
    "exp": frozenset({"exp"}),
    "both": frozenset({"expires_in", "exp"}),
}


class TokenEndpoint:
    """Handler of token requests. `limits` apply per client id; `record_request` is called at each request."""

    def __init__(
        self,
        *,
        server: authorization_server.OAuthServer,
        limits: tuple[windows.Window, ...],
        clock: clocks.Clock,
        issuer: str | None,
        record_request: Callable[[], None],
    ) -> None:
        self._server, self._issuer, self._clock = server, issuer, clock
        self._behavior = server.behavior
        self._limits, self._record_request = limits, record_request
        self._windows: dict[str, windows.Windows] = {}

    def add_routes(self, router: web.UrlDispatcher, exchange_middleware: exchanges.ExchangeMiddleware) -> None:
        """Register the endpoint for all methods: wrong ones get invalid_request."""
        router.add_route("*", discovery.TOKEN_PATH, exchange_middleware.wrap("token", self.token))

    async def token(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """200 with the token, 400 with an OAuth error, 429 with Retry-After over a request window."""
        self._record_request()
        form = await self._form(request)
        if form is None:
            return self._refused("invalid_request")
        return await self._ask(form, request, request.headers.get("Authorization"), exchange)

    async def _form(self, request: web.Request) -> dict[str, str] | None:
        if not self._behavior.json_token_requests or request.content_type != "application/json":
            return await forms.oauth_form(request)
        try:
            content = await request.json()
        except ValueError:
            return None
        return {name: str(value) for name, value in content.items()} if isinstance(content, dict) else None

    def _refused(self, error: str) -> web.Response:
        """Return the response to a refused request, as in IdentityServer: mostly without a description."""
        described = {"error_description": f"{error}."} if self._behavior.error_description else {}
        return forms.json_response({"error": error, **described}, self._behavior.token_error_status)

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
        behavior = self._behavior
        try:
            credentials = clients.read_credentials(form, authorization if behavior.basic_authentication else None)
        except clients.ClientAuthenticationError as refused:
            return self._refused(refused.code)
        application = self._server.registry.by_client_id(credentials.client_id)
        if application is None:
            return self._refused(behavior.unknown_client_error)
        # The rate limit applies before authentication, so that guessing secrets is limited, too.
        if wait := self._wait(credentials.client_id):
            # The body is our own: the contract has none for this case.
            slow = {"error": "slow_down", "error_description": "too many token requests for this client"}
            return forms.json_response(slow, 429, {"Retry-After": str(math.ceil(wait))})
        try:
            application = clients.authenticate_client(application, credentials)
        except clients.ClientAuthenticationError:
            return self._refused(behavior.wrong_secret_error)
        exchange.entry.application = application.application_id
        sign_in = await self._sign_in(application, form)
        if behavior.scope_required and not form.get("scope"):
            return self._refused("invalid_scope")
        if behavior.unknown_scopes:
            form = {**form, "scope": " ".join(name for name in form.get("scope", "").split() if name in scopes.ALL)}
        return self._respond(form, application, sign_in, forms.issuer(request, self._issuer), exchange)

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

    def _respond(
        self,
        form: Mapping[str, str],
        application: applications.SandboxApplication,
        sign_in: tokens.SignIn | None,
        issuer: str,
        exchange: exchanges.Exchange,
    ) -> web.Response:
        fault = exchange.fault
        ahead = fault.seconds if isinstance(fault, faults.ClockSkewFault) else 0
        lacks = OMITTED_FIELDS[fault.lacks] if isinstance(fault, faults.MissingExpiryFault) else frozenset()
        protocol_request = ProtocolRequest(
            "POST", tuple(form.items()), issuer, application, sign_in, ahead, "exp" in lacks
        )
        response = self._server.token(protocol_request)
        if response.status != 200:
            return self._refused(self._grant_error(form, response.body["error"]))
        body = {name: value for name, value in self._fields(response.body).items() if name not in lacks}
        if fault is not None and (ahead or lacks):
            exchange.record_fault(type(fault))
        headers = {"Date": formatdate(self._clock.now() + ahead, usegmt=True)} if ahead else None
        return forms.json_response(body, 200, headers, store=not self._behavior.no_store)

    def _grant_error(self, form: Mapping[str, str], error: str) -> str:
        """Return the service's error for one of Authlib."""
        behavior = self._behavior
        unsupported = behavior.unknown_grant_error if form.get("grant_type") else behavior.missing_grant_error
        own_errors = {"unsupported_grant_type": unsupported, "unauthorized_client": behavior.forbidden_grant_error}
        return own_errors.get(error, error)

    def _fields(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a token response, in the order of the service."""
        fields = forms.order_token_fields(body)
        if self._behavior.expires_in_as_text:
            fields["expires_in"] = str(fields["expires_in"])
        if not self._behavior.token_scope:
            del fields["scope"]
        return fields


@dataclass(frozen=True, slots=True)
class ResourceEndpoints:
    server: authorization_server.OAuthServer
    key_ring: keys.KeyRing
    issuer: str | None

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(discovery.DISCOVERY_PATH, self.discovery)
        router.add_get(discovery.JWKS_PATH, self.jwks)
        router.add_get(discovery.USERINFO_PATH, self.userinfo)
        router.add_post(discovery.USERINFO_PATH, self.userinfo)
        router.add_post(discovery.REVOCATION_PATH, self.revocation)
        router.add_post(discovery.INTROSPECTION_PATH, self.introspection)

    async def discovery(self, request: web.Request) -> web.Response:
        if not self.server.behavior.discovery:
            raise web.HTTPNotFound
        issuer = forms.issuer(request, self.issuer)
        return forms.json_response(discovery.document(issuer, self.server.registry.all), 200, store=True)

    async def jwks(self, _request: web.Request) -> web.Response:
        return forms.json_response(self.key_ring.jwks(), 200, store=True)

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
        if user is None or self.server.registry.by_client_id(access.client_id) is None:
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
        protocol_request = ProtocolRequest("POST", tuple(form.items()), forms.issuer(request, self.issuer), application)
        response = self.server.endpoint(name, protocol_request)
        return forms.json_response(response.body, response.status)


async def _bearer(request: web.Request) -> str:
    """Return the bearer token (RFC 6750 §2.1 and §2.2); empty if there is none."""
    token = forms.access_token(request.headers, token_header=False)
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
