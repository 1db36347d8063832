"""Browser sessions by cookies, and CSRF tokens of forms.

Used by the login and consent pages, the portal and the admin pages. A session begins with the first form and gets a new
id at sign-in (against session fixation).
"""

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
    """A browser session. `sign_in` is None before the sign-in. Id and CSRF token are secret."""

    id: str
    csrf_token: str
    sign_in: tokens.SignIn | None = None

    def __repr__(self) -> str:
        return f"Session(sign_in={self.sign_in!r})"


class BrowserSessions:
    """All sessions. `rng` must be unpredictable."""

    def __init__(self, users: user_directory.UserDirectory, clock: clocks.Clock, rng: random.Random) -> None:
        self._users, self._clock, self._rng = users, clock, rng
        self._sessions: TTLCache[str, BrowserSession] = TTLCache(MAX_SESSIONS, LIFETIME, clock.now)

    def of(self, request: web.Request) -> BrowserSession | None:
        """Return the session of the request's cookie."""
        return self._sessions.get(request.cookies.get(_cookie(request), ""))

    def user(self, request: web.Request) -> user_directory.SandboxUser | None:
        session = self.of(request)
        return None if session is None or session.sign_in is None else self._users.by_id(session.sign_in.user)

    def begin(self, request: web.Request) -> BrowserSession:
        """Return the session of the request, or a new one, whose cookie `keep` has to set."""
        return self.of(request) or self._new(None)

    def keep(self, request: web.Request, response: web.Response, session: BrowserSession) -> None:
        response.set_cookie(
            _cookie(request),
            session.id,
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

    def is_own(self, session: BrowserSession | None, token: object) -> bool:
        if session is None or not isinstance(token, str):
            return False
        return hmac.compare_digest(token.encode(), session.csrf_token.encode())

    def _new(self, user: user_directory.SandboxUser | None) -> BrowserSession:
        id_, public_id, csrf_token = (self._rng.randbytes(size).hex() for size in (32, 16, 32))
        sign_in = None if user is None else tokens.SignIn(user.id, int(self._clock.now()), public_id.upper())
        session = self._sessions[id_] = BrowserSession(id_, csrf_token, sign_in)
        return session


def _cookie(request: web.Request) -> str:
    """Return the cookie's name. It has the port, because cookies are shared by all ports of a host."""
    return f"sandbox_session_{request.url.port}"
