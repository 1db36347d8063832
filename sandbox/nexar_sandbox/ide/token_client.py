"""Token client of the IDE: requests tokens for an application and caches them per session.

The client secret and the PKCE verifier stay on the server; the page gets access tokens only. Requests count against the
application's rate limits. `endpoints.py` checks who may have a token.
"""

import base64
import hashlib
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

import orjson
from aiohttp import web
from cachetools import TTLCache

from nexar_sandbox import applications
from nexar_sandbox.identity import endpoints, sessions
from nexar_sandbox.injection import exchanges
from nexar_sandbox.kit import clock as clocks

# Seconds for sign-in and consent, and the margin before its expiry when a token is no longer used.
AUTHORIZATION_SECONDS, EXPIRY_MARGIN = 600, 60
MAX_PENDING, MAX_TOKENS = 1_000, 10_000


class TokenRequestError(Exception):
    """A failed token request: HTTP status, OAuth error, and Retry-After in seconds (0: none)."""

    def __init__(self, status: int, code: str, description: str, retry_after: int = 0) -> None:
        super().__init__(code)
        self.status, self.code, self.description, self.retry_after = status, code, description, retry_after


@dataclass(frozen=True, slots=True)
class IdeToken:
    """A cached token. `expires` in seconds since 1970. `by_user`: authorized by a user."""

    access_token: str = field(repr=False)
    expires: int
    scope: str
    by_user: bool
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """An authorization request in progress."""

    session: str = field(repr=False)
    client_id: str
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
        self._endpoint, self._exchange_middleware, self._clock, self._rng = endpoint, exchange_middleware, clock, rng
        self._pending: TTLCache[str, PendingAuthorization] = TTLCache(MAX_PENDING, AUTHORIZATION_SECONDS, clock.now)
        self._tokens: TTLCache[tuple[str, str], IdeToken] = TTLCache(MAX_TOKENS, sessions.LIFETIME, clock.now)

    def cached(self, session: sessions.BrowserSession, application: applications.SandboxApplication) -> IdeToken | None:
        """The session's cached token for this application, unless it is about to expire."""
        token = self._tokens.get((session.id, application.client_id))
        return None if token is None or token.expires - EXPIRY_MARGIN <= self._clock.now() else token

    def needs_user(self, session: sessions.BrowserSession, application: applications.SandboxApplication) -> bool:
        """Return true if the user has to authorize: no token is cached, and there is no refresh token."""
        token = self._tokens.get((session.id, application.client_id))
        return self.cached(session, application) is None and not (token and token.refresh_token)

    def start(
        self,
        session: sessions.BrowserSession,
        application: applications.SandboxApplication,
        redirect_uri: str,
        scope: str,
    ) -> str:
        """The query of an authorization request with PKCE (RFC 7636 §4.3)."""
        state, verifier = self._secret(), self._secret()
        self._pending[state] = PendingAuthorization(session.id, application.client_id, redirect_uri, verifier)
        digest = hashlib.sha256(verifier.encode()).digest()
        return urlencode(
            {
                "response_type": "code",
                "client_id": application.client_id,
                "redirect_uri": redirect_uri,
                "scope": scope,
                "state": state,
                "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
                "code_challenge_method": "S256",
            }
        )

    async def finish(
        self,
        session: sessions.BrowserSession,
        application: applications.SandboxApplication,
        code: str,
        state: str,
        request: web.Request,
    ) -> IdeToken:
        """Exchange a code for a token. Raises TokenRequestError."""
        started = self._pending.pop(state, None)
        # Another session's code would sign this user in as somebody else (CSRF).
        if started is None or (started.session, started.client_id) != (session.id, application.client_id):
            raise TokenRequestError(
                400, "invalid_state", "This authorization was not started in this session, or it expired."
            )
        form = {"code": code, "redirect_uri": started.redirect_uri, "code_verifier": started.verifier}
        return await self._ask(session, application, {"grant_type": applications.AUTHORIZATION_CODE, **form}, request)

    async def by_itself(
        self, session: sessions.BrowserSession, application: applications.SandboxApplication, request: web.Request
    ) -> IdeToken:
        """Request a token by client credentials. Raises TokenRequestError."""
        return await self._ask(session, application, {"grant_type": applications.CLIENT_CREDENTIALS}, request)

    async def refresh(
        self, session: sessions.BrowserSession, application: applications.SandboxApplication, request: web.Request
    ) -> IdeToken | None:
        """Refresh the user's token; None if the user has to authorize again."""
        before = self._tokens.pop((session.id, application.client_id), None)
        if before is None or not before.refresh_token:
            return None
        form = {"grant_type": "refresh_token", "refresh_token": before.refresh_token}
        try:
            return await self._ask(session, application, form, request)
        except TokenRequestError as refused:
            if refused.code == "invalid_grant":
                return None
            raise

    async def _ask(
        self,
        session: sessions.BrowserSession,
        application: applications.SandboxApplication,
        form: Mapping[str, str],
        request: web.Request,
    ) -> IdeToken:
        with self._exchange_middleware.record("token", request) as exchange:
            response = await self._endpoint.ask_for(application, form, request, exchange)
            exchange.entry.status = response.status
        body = orjson.loads(response.body if isinstance(response.body, bytes) else b"{}")
        if response.status != 200:
            description = body.get("error_description") or f"The token endpoint says {body['error']}."
            wait = int(response.headers.get("Retry-After", 0))
            raise TokenRequestError(response.status, body["error"], description, wait)
        token = IdeToken(
            body["access_token"],
            math.floor(self._clock.now()) + body["expires_in"],
            body["scope"],
            form["grant_type"] != applications.CLIENT_CREDENTIALS,
            body.get("refresh_token", ""),
        )
        self._tokens[session.id, application.client_id] = token
        return token

    def _secret(self) -> str:
        return self._rng.randbytes(32).hex()
