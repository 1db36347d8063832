"""Tokens for the IDE: asked for in an application's name at the identity service, and kept for the session's next page.

The application's secret and PKCE's verifier stay here; the page gets access tokens only. Every request is one of the
application's own and counts in its windows. Who may have a token is `access.py`'s to say.
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
PATIENCE, MARGIN = 600, 60
STARTED_KEPT, HELD_KEPT = 1_000, 10_000


class RefusedError(Exception):
    """No token: an HTTP status, an OAuth error, and the seconds after which it may be tried again (0: none said)."""

    def __init__(self, status: int, code: str, description: str, retry_after: int = 0) -> None:
        super().__init__(code)
        self.status, self.code, self.description, self.retry_after = status, code, description, retry_after


@dataclass(frozen=True, slots=True)
class Held:
    """A token that is good until `expires` (seconds since 1970). `by_user`: a user let the application in."""

    access_token: str = field(repr=False)
    expires: int
    scope: str
    by_user: bool
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Started:
    """An authorization request that the browser has been sent away with."""

    session: str = field(repr=False)
    client_id: str
    redirect_uri: str
    verifier: str = field(repr=False)


class Asking:
    """Asks, and keeps what came. `rng` must not be foreseeable."""

    def __init__(
        self,
        endpoint: endpoints.Endpoints,
        watch: exchanges.ExchangeMiddleware,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._endpoint, self._watch, self._clock, self._rng = endpoint, watch, clock, rng
        self._started: TTLCache[str, Started] = TTLCache(STARTED_KEPT, PATIENCE, clock.now)
        self._held: TTLCache[tuple[str, str], Held] = TTLCache(HELD_KEPT, sessions.LIFETIME, clock.now)

    def held(self, session: sessions.Session, account: applications.SandboxApplication) -> Held | None:
        """The session's token for this application, as long as it is worth giving out."""
        held = self._held.get((session.id, account.client_id))
        return None if held is None or held.expires - MARGIN <= self._clock.now() else held

    def needs_user(self, session: sessions.Session, account: applications.SandboxApplication) -> bool:
        """Whether only the browser can get a user's token: none is held, and none can be had for it."""
        held = self._held.get((session.id, account.client_id))
        return self.held(session, account) is None and not (held and held.refresh_token)

    def start(
        self, session: sessions.Session, account: applications.SandboxApplication, redirect_uri: str, scope: str
    ) -> str:
        """The query of an authorization request with PKCE (RFC 7636 §4.3)."""
        state, verifier = self._secret(), self._secret()
        self._started[state] = Started(session.id, account.client_id, redirect_uri, verifier)
        digest = hashlib.sha256(verifier.encode()).digest()
        return urlencode(
            {
                "response_type": "code",
                "client_id": account.client_id,
                "redirect_uri": redirect_uri,
                "scope": scope,
                "state": state,
                "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
                "code_challenge_method": "S256",
            }
        )

    async def finish(
        self,
        session: sessions.Session,
        account: applications.SandboxApplication,
        code: str,
        state: str,
        request: web.Request,
    ) -> Held:
        """The token for a code that came back. Raises RefusedError."""
        started = self._started.pop(state, None)
        if started is None or (started.session, started.client_id) != (session.id, account.client_id):
            raise RefusedError(400, "invalid_state", "This authorization was not begun here, or took too long.")
        form = {"code": code, "redirect_uri": started.redirect_uri, "code_verifier": started.verifier}
        return await self._ask(session, account, {"grant_type": applications.AUTHORIZATION_CODE, **form}, request)

    async def by_itself(
        self, session: sessions.Session, account: applications.SandboxApplication, request: web.Request
    ) -> Held:
        """A token for the application alone. Raises RefusedError."""
        return await self._ask(session, account, {"grant_type": applications.CLIENT_CREDENTIALS}, request)

    async def refresh(
        self, session: sessions.Session, account: applications.SandboxApplication, request: web.Request
    ) -> Held | None:
        """A new token for the user who let the application in; None where the browser has to ask for it."""
        before = self._held.pop((session.id, account.client_id), None)
        if before is None or not before.refresh_token:
            return None
        form = {"grant_type": "refresh_token", "refresh_token": before.refresh_token}
        try:
            return await self._ask(session, account, form, request)
        except RefusedError as refused:
            if refused.code == "invalid_grant":
                return None
            raise

    async def _ask(
        self,
        session: sessions.Session,
        account: applications.SandboxApplication,
        form: Mapping[str, str],
        request: web.Request,
    ) -> Held:
        with self._watch.record("token", request) as exchange:
            answer = await self._endpoint.ask_for(account, form, request, exchange)
            exchange.entry.status = answer.status
        body = orjson.loads(answer.body if isinstance(answer.body, bytes) else b"{}")
        if answer.status != 200:
            description = body.get("error_description") or f"The token endpoint says {body['error']}."
            wait = int(answer.headers.get("Retry-After", 0))
            raise RefusedError(answer.status, body["error"], description, wait)
        held = Held(
            body["access_token"],
            math.floor(self._clock.now()) + body["expires_in"],
            body["scope"],
            form["grant_type"] != applications.CLIENT_CREDENTIALS,
            body.get("refresh_token", ""),
        )
        self._held[session.id, account.client_id] = held
        return held

    def _secret(self) -> str:
        return self._rng.randbytes(32).hex()
