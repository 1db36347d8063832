"""The identity service over HTTP: token endpoint, discovery document, key set (contract graphql.md §4).

Knows nothing of browsers, users or redirects: client credentials are the only grant.
"""

import math
from collections.abc import Callable, Mapping
from email.utils import formatdate

import orjson
from aiohttp import web

from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.sandbox import accounts, faults
from proxy.sandbox.identity import grants, keys, tokens
from proxy.sandbox.injection import exchanges

TOKEN_PATH = "/connect/token"  # noqa: S105 (a path, no secret)
DISCOVERY_PATH = "/.well-known/openid-configuration"
JWKS_PATH = DISCOVERY_PATH + "/jwks"
FORM = "application/x-www-form-urlencoded"
LACKS = {"expires_in": frozenset({"expires_in"}), "exp": frozenset({"exp"}), "both": frozenset({"expires_in", "exp"})}
NO_STORE = {"Cache-Control": "no-store, no-cache, max-age=0", "Pragma": "no-cache"}


class Endpoints:
    """The handlers. `limits` are for token requests of one client id; `seen` is called at each of them."""

    def __init__(
        self,
        *,
        known: accounts.Accounts,
        issued: tokens.Tokens,
        key: keys.SigningKey,
        limits: tuple[windows.Window, ...],
        clock: clocks.Clock,
        issuer: str | None,
        seen: Callable[[], None],
    ) -> None:
        self._known, self._tokens, self._key, self._issuer, self._seen = known, issued, key, issuer, seen
        self._clock = clock
        self._windows = {account.client_id: windows.Windows(limits, clock) for account in known.all}

    def add_routes(self, router: web.UrlDispatcher, watch: exchanges.Watch) -> None:
        """Any method reaches the token endpoint: the service answers a wrong one as invalid_request."""
        router.add_route("*", TOKEN_PATH, watch.over("token", self.token))
        router.add_get(DISCOVERY_PATH, self.discovery)
        router.add_get(JWKS_PATH, self.jwks)

    async def token(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """200 with the token, 400 with an OAuth error, 429 with Retry-After over a request window."""
        self._seen()
        if request.method != "POST" or request.content_type != FORM:
            return _reply({"error": "invalid_request"}, 400)
        form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        try:
            return self._grant(form, request, exchange)
        except grants.RefusedError as refused:
            return _reply({"error": refused.code}, 400)

    def _grant(self, form: Mapping[str, str], request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        given = grants.credentials(form, request.headers.get("Authorization"))
        # The window is the client id's, whatever the secret: guessing is limited like asking.
        window = self._windows.get(given.client_id)
        wait = window.try_take() if window else 0.0
        if wait:
            # The body is ours: the contract knows none for this case.
            slow = {"error": "slow_down", "error_description": "too many token requests for this client"}
            return _reply(slow, 429, {"Retry-After": str(math.ceil(wait))})
        account = grants.authenticate(self._known.by_client(given.client_id), given)
        exchange.entry.application = account.application_id
        return self._issued(account, grants.scopes(account, form), self._issuer_for(request), exchange)

    def _issued(
        self, account: accounts.Account, scopes: tuple[str, ...], issuer: str, exchange: exchanges.Exchange
    ) -> web.Response:
        """The answer with a token, as far as no fault spoils it."""
        fault = exchange.fault
        ahead = fault.seconds if isinstance(fault, faults.WrongClock) else 0
        lacks = LACKS[fault.lacks] if isinstance(fault, faults.NoExpiry) else frozenset()
        token = self._tokens.issue(account.client_id, scopes, issuer, ahead=ahead, endless="exp" in lacks)
        life = {} if "expires_in" in lacks else {"expires_in": self._tokens.lifetime}
        body = {"access_token": token, **life, "token_type": "Bearer", "scope": " ".join(scopes)}
        if fault is not None and (ahead or lacks):
            exchange.struck(type(fault))
        return _reply(body, 200, {"Date": formatdate(self._clock.now() + ahead, usegmt=True)} if ahead else None)

    async def discovery(self, request: web.Request) -> web.Response:
        """The discovery document (OpenID Connect Discovery 1.0 §3), for the flows that exist here."""
        issuer = self._issuer_for(request)
        scopes = sorted({scope for account in self._known.all for scope in account.scopes})
        document = {
            "issuer": issuer,
            "jwks_uri": issuer + JWKS_PATH,
            "token_endpoint": issuer + TOKEN_PATH,
            "scopes_supported": scopes,
            "claims_supported": [],
            "grant_types_supported": ["client_credentials"],
            "response_types_supported": [],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return _reply(document, 200, store=True)

    async def jwks(self, _request: web.Request) -> web.Response:
        """The public key."""
        return _reply(self._key.jwks(), 200, store=True)

    def _issuer_for(self, request: web.Request) -> str:
        return self._issuer or str(request.url.origin())


def _reply(
    body: Mapping[str, object], status: int, headers: Mapping[str, str] | None = None, store: bool = False
) -> web.Response:
    every = {**({} if store else NO_STORE), **(headers or {})}
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", headers=every)
