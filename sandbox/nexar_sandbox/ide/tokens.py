"""Token client of the IDE: requests tokens for an application and caches them per session.

The client secret and the PKCE verifier stay on the server; the page gets access tokens only. Requests count against the
application's rate limits. `endpoints.py` checks who may have a token.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

import orjson
from aiohttp import web
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from cachetools import TTLCache

from nexar_sandbox import applications, clocks, exchanges
from nexar_sandbox.identity import endpoints, sessions

# Seconds for sign-in and consent, and the margin before its expiry when a token is no longer used.
AUTHORIZATION_SECONDS, EXPIRY_MARGIN = 600, 60
MAX_PENDING, MAX_TOKENS = 1_000, 10_000


class TokenRequestError(Exception):
    """A failed token request: HTTP status, OAuth error, and Retry-After in seconds (0: none)."""

    def __init__(self, status: int, code: str, description: str, retry_after: int = 0) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.description = description
        self.retry_after = retry_after


class Visit(NamedTuple):
    """A request of the page, its session, and the application for which it gets tokens."""

    request: web.Request
    session: sessions.BrowserSession
    application: applications.SandboxApplication

    @property
    def key(self) -> tuple[str, str]:
        return self.session.id, self.application.client_id


@dataclass(frozen=True, slots=True)
class IdeToken:
    """A cached token. `expires` in seconds since 1970. `by_user`: authorized by a user."""

    access_token: str = field(repr=False)
    expires: int
    scope: str
    by_user: bool
    refresh_token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """An authorization request in progress. `key` is that of its visit."""

    key: tuple[str, str] = field(repr=False)
    redirect_uri: str
    verifier: str = field(repr=False)


class IdeTokenClient:
    """Requests and caches tokens. `rng` must be unpredictable."""

    def __init__(
        self,
        endpoint: endpoints.TokenEndpoint,
        exchange_middleware: exchanges.ExchangeMiddleware,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._endpoint = endpoint
        self._exchange_middleware = exchange_middleware
        self._clock = clock
        self._rng = rng
        self._pending: TTLCache[str, PendingAuthorization] = TTLCache(MAX_PENDING, AUTHORIZATION_SECONDS, clock.now)
        self._tokens: TTLCache[tuple[str, str], IdeToken] = TTLCache(MAX_TOKENS, sessions.LIFETIME, clock.now)

    def start(self, visit: Visit, redirect_uri: str, scope: str) -> str:
        """Return the query of an authorization request with PKCE (RFC 7636 §4.3)."""
        state, verifier = self._rng.randbytes(32).hex(), self._rng.randbytes(32).hex()
        self._pending[state] = PendingAuthorization(visit.key, redirect_uri, verifier)
        return urlencode(
            {
                "response_type": "code",
                "client_id": visit.application.client_id,
                "redirect_uri": redirect_uri,
                "scope": scope,
                "state": state,
                "code_challenge": create_s256_code_challenge(verifier),  # type: ignore[no-untyped-call]
                "code_challenge_method": "S256",
            }
        )

    async def finish(self, visit: Visit, code: str, state: str) -> IdeToken:
        """Exchange a code for a token. Raises TokenRequestError."""
        started = self._pending.pop(state, None)
        # Another session's code would sign this user in as somebody else (CSRF).
        if started is None or started.key != visit.key:
            raise TokenRequestError(
                400, "invalid_state", "This authorization was not started in this session, or it expired."
            )
        form = {"code": code, "redirect_uri": started.redirect_uri, "code_verifier": started.verifier}
        return await self._request(visit, {"grant_type": applications.AUTHORIZATION_CODE, **form})

    async def get(self, visit: Visit, grant: str, *, cached: bool) -> IdeToken:
        """Return a token: the cached one, if that will do and it does not expire soon, or a new one. Raises
        TokenRequestError, 409 if the user has to authorize the application."""
        before = self._tokens.get(visit.key)
        if cached and before is not None and self._is_good(before):
            return before
        if grant == applications.CLIENT_CREDENTIALS:
            return await self._request(visit, {"grant_type": grant})
        self._tokens.pop(visit.key, None)
        # A user has authorized the application before, if there is a refresh token.
        if before is not None and before.refresh_token:
            try:
                return await self._request(
                    visit, {"grant_type": "refresh_token", "refresh_token": before.refresh_token}
                )
            except TokenRequestError as refused:
                if refused.code != "invalid_grant":
                    raise
        raise TokenRequestError(409, "interaction_required", "The user has to authorize the application.")

    def needs_user(self, visit: Visit) -> bool:
        """Return true if no token is cached and none can be refreshed."""
        token = self._tokens.get(visit.key)
        return token is None or not (self._is_good(token) or token.refresh_token)

    def _is_good(self, token: IdeToken) -> bool:
        return token.expires - EXPIRY_MARGIN > self._clock.now()

    async def _request(self, visit: Visit, form: Mapping[str, str]) -> IdeToken:
        with self._exchange_middleware.record("token", visit.request) as exchange:
            response = await self._endpoint.ask_for(visit.application, form, visit.request, exchange)
            exchange.entry.status = response.status
        body = orjson.loads(response.body if isinstance(response.body, bytes) else b"{}")
        if response.status != 200:
            description = body.get("error_description") or f"The token endpoint says {body['error']}."
            wait = int(response.headers.get("Retry-After", 0))
            raise TokenRequestError(response.status, body["error"], description, wait)
        token = IdeToken(
            body["access_token"],
            math.floor(self._clock.now()) + int(body["expires_in"]),
            body.get("scope", ""),
            form["grant_type"] != applications.CLIENT_CREDENTIALS,
            body.get("refresh_token", ""),
        )
        self._tokens[visit.key] = token
        return token
