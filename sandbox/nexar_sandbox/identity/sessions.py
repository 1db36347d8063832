"""Browser sessions by signed cookies, and CSRF tokens of forms.

Used by the login and consent pages, the portal and the admin pages. A session begins with the first form and gets a new
id at sign-in (against session fixation).
"""

import hashlib
import hmac
import random
from dataclasses import dataclass

from aiohttp import web
from cachetools import TTLCache

from nexar_sandbox import clocks, user_directory
from nexar_sandbox.identity import tokens

LIFETIME = 36_000  # seconds, from signing in; IdentityServer's
MAX_SESSIONS = 10_000
CSRF_FIELD = "csrf"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser session. `sign_in` is None before the sign-in. The id is secret."""

    id: str
    sign_in: tokens.SignIn | None = None

    def __repr__(self) -> str:
        return f"Session(sign_in={self.sign_in!r})"


class BrowserSessions:
    """All sessions. `rng` must be unpredictable."""

    def __init__(self, users: user_directory.UserDirectory, clock: clocks.Clock, rng: random.Random) -> None:
        self._users, self._clock, self._rng = users, clock, rng
        self._secret = rng.randbytes(32)
        self._sessions: TTLCache[str, BrowserSession] = TTLCache(MAX_SESSIONS, LIFETIME, clock.now)

    def of(self, request: web.Request) -> BrowserSession | None:
        """Return the session of the request's cookie; None if its user was removed."""
        id_, _, signature = request.cookies.get(_cookie(request), "").partition(".")
        session = self._sessions.get(id_)
        if session is None or not hmac.compare_digest(signature.encode(), self._signed("session", id_).encode()):
            return None
        gone = session.sign_in is not None and self._users.by_id(session.sign_in.user) is None
        return None if gone else session

    def user(self, request: web.Request) -> user_directory.SandboxUser | None:
        session = self.of(request)
        return None if session is None or session.sign_in is None else self._users.by_id(session.sign_in.user)

    def begin(self, request: web.Request) -> BrowserSession:
        """Return the session of the request, or a new one, whose cookie `keep` has to set."""
        return self.of(request) or self._new(None)

    def keep(self, request: web.Request, response: web.Response, session: BrowserSession) -> None:
        response.set_cookie(
            _cookie(request),
            f"{session.id}.{self._signed('session', session.id)}",
            httponly=True,
            samesite="Lax",
            secure=request.secure,
        )

    def sign_in(self, request: web.Request, response: web.Response, user: user_directory.SandboxUser) -> BrowserSession:
        """Start a new session of the authenticated user, with its cookie in `response`; end the previous one."""
        before = self.of(request)
        if before is not None:
            self._sessions.pop(before.id, None)
        session = self._new(user)
        self.keep(request, response, session)
        return session

    def sign_out(self, request: web.Request, response: web.Response) -> None:
        session = self.of(request)
        if session is not None:
            self._sessions.pop(session.id, None)
        response.del_cookie(_cookie(request), httponly=True, samesite="Lax", secure=request.secure)

    def csrf_token(self, session: BrowserSession) -> str:
        return self._signed("csrf", session.id)

    def is_own(self, session: BrowserSession | None, token: object) -> bool:
        if session is None or not isinstance(token, str):
            return False
        return hmac.compare_digest(token.encode(), self.csrf_token(session).encode())

    def _new(self, user: user_directory.SandboxUser | None) -> BrowserSession:
        id_ = self._rng.randbytes(32).hex()
        sign_in = None
        if user is not None:
            sign_in = tokens.SignIn(user.id, int(self._clock.now()), self._signed("public", id_)[:32].upper())
        session = BrowserSession(id_, sign_in)
        self._sessions[id_] = session
        return session

    def _signed(self, use: str, id_: str) -> str:
        return hmac.digest(self._secret, f"{use}:{id_}".encode(), hashlib.sha256).hex()


def _cookie(request: web.Request) -> str:
    """Return the cookie's name. It has the port, because cookies are shared by all ports of a host."""
    return f"sandbox_session_{request.url.port}"
