"""Tokens for the IDE: asked for in an application's name at the identity service, and kept for the session's next page.

The application's secret and PKCE's verifier stay here; the page gets access tokens only. Every request is one of the
application's own and counts in its windows. Who may have a token is `endpoints.py`'s to say.
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

from proxy.kit import clock as clocks
from proxy.sandbox import applications
from proxy.sandbox.identity import endpoints, sessions
from proxy.sandbox.injection import exchanges

# Seconds that a user may take to sign in and to allow it, and before its end that a token is not given out any more.
AUTHORIZATION_SECONDS, EXPIRY_MARGIN = 600, 60
MAX_PENDING, MAX_TOKENS = 1_000, 10_000


class TokenRequestError(Exception):
    """No token: an HTTP status, an OAuth error, and the seconds after which it may be tried again (0: none said)."""

    def __init__(self, status: int, code: str, description: str, retry_after: int = 0) -> None:
        super().__init__(code)
        self.status, self.code, self.description, self.retry_after = status, code, description, retry_after


@dataclass(frozen=True, slots=True)
class IdeToken:
    """A token that is good until `expires` (seconds since 1970). `by_user`: a user let the application in."""

    access_token: str = field(repr=False)
    expires: int
    scope: str
    by_user: bool
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """An authorization request that the browser has been sent away with."""

    session: str = field(repr=False)
    client_id: str
    redirect_uri: str
    verifier: str = field(repr=False)


class IdeTokenClient:
    """Asks, and keeps what came. `rng` must not be foreseeable."""

    def __init__(
        self,
        endpoint: endpoints.TokenEndpoint,
        watch: exchanges.ExchangeMiddleware,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._endpoint, self._watch, self._clock, self._rng = endpoint, watch, clock, rng
        self._started: TTLCache[str, PendingAuthorization] = TTLCache(MAX_PENDING, AUTHORIZATION_SECONDS, clock.now)
        self._held: TTLCache[tuple[str, str], IdeToken] = TTLCache(MAX_TOKENS, sessions.LIFETIME, clock.now)

    def held(self, session: sessions.BrowserSession, application: applications.SandboxApplication) -> IdeToken | None:
        """The session's token for this application, as long as it is worth giving out."""
        held = self._held.get((session.id, application.client_id))
        return None if held is None or held.expires - EXPIRY_MARGIN <= self._clock.now() else held

    def needs_user(self, session: sessions.BrowserSession, application: applications.SandboxApplication) -> bool:
        """Whether only the browser can get a user's token: none is held, and none can be had for it."""
        held = self._held.get((session.id, application.client_id))
        return self.held(session, application) is None and not (held and held.refresh_token)

    def start(
        self,
        session: sessions.BrowserSession,
        application: applications.SandboxApplication,
        redirect_uri: str,
        scope: str,
    ) -> str:
        """The query of an authorization request with PKCE (RFC 7636 §4.3)."""
        state, verifier = self._secret(), self._secret()
        self._started[state] = PendingAuthorization(session.id, application.client_id, redirect_uri, verifier)
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
        """The token for a code that came back. Raises RefusedError."""
        started = self._started.pop(state, None)
        if started is None or (started.session, started.client_id) != (session.id, application.client_id):
            raise TokenRequestError(400, "invalid_state", "This authorization was not begun here, or took too long.")
        form = {"code": code, "redirect_uri": started.redirect_uri, "code_verifier": started.verifier}
        return await self._ask(session, application, {"grant_type": applications.AUTHORIZATION_CODE, **form}, request)

    async def by_itself(
        self, session: sessions.BrowserSession, application: applications.SandboxApplication, request: web.Request
    ) -> IdeToken:
        """A token for the application alone. Raises RefusedError."""
        return await self._ask(session, application, {"grant_type": applications.CLIENT_CREDENTIALS}, request)

    async def refresh(
        self, session: sessions.BrowserSession, application: applications.SandboxApplication, request: web.Request
    ) -> IdeToken | None:
        """A new token for the user who let the application in; None where the browser has to ask for it."""
        before = self._held.pop((session.id, application.client_id), None)
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
        with self._watch.record("token", request) as exchange:
            answer = await self._endpoint.ask_for(application, form, request, exchange)
            exchange.entry.status = answer.status
        body = orjson.loads(answer.body if isinstance(answer.body, bytes) else b"{}")
        if answer.status != 200:
            description = body.get("error_description") or f"The token endpoint says {body['error']}."
            wait = int(answer.headers.get("Retry-After", 0))
            raise TokenRequestError(answer.status, body["error"], description, wait)
        held = IdeToken(
            body["access_token"],
            math.floor(self._clock.now()) + body["expires_in"],
            body["scope"],
            form["grant_type"] != applications.CLIENT_CREDENTIALS,
            body.get("refresh_token", ""),
        )
        self._held[session.id, application.client_id] = held
        return held

    def _secret(self) -> str:
        return self._rng.randbytes(32).hex()
