"""Browser sessions of the sandbox's pages: who has signed in, by a signed cookie, and forms that only its pages send.

The login and consent pages use it, and the portal. A session begins with the first form, before anybody has signed in,
and gets a new id when somebody does.
"""

import hashlib
import hmac
import random
from dataclasses import dataclass

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import user_directory
from proxy.sandbox.identity import tokens
from proxy.sandbox.state import store as state

LIFETIME = 36_000  # seconds, from signing in; IdentityServer's
MAX_SESSIONS = 10_000
CSRF_FIELD = "csrf"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """`sign_in` is None before anybody has. The id is a secret of the browser's."""

    id: str
    sign_in: tokens.SignIn | None = None

    def __repr__(self) -> str:
        return f"Session(sign_in={self.sign_in!r})"


class BrowserSessions:
    """All of them. `rng` must not be foreseeable."""

    def __init__(
        self,
        users: user_directory.UserDirectory,
        clock: clocks.Clock,
        rng: random.Random,
        kept: state.StateStore | None = None,
    ) -> None:
        self._users, self._clock, self._rng = users, clock, rng
        kept = kept or state.StateStore()
        self._secret = bytes.fromhex(kept.rows("secret", str).setdefault("sessions", rng.randbytes(32).hex()))
        self._sessions = state.ExpiringRows(
            kept.rows("session", state.ExpiringRow[BrowserSession]), clock, LIFETIME, MAX_SESSIONS
        )

    def of(self, request: web.Request) -> BrowserSession | None:
        """The session that the request's cookie names. A user who is gone has none."""
        id_, _, signature = request.cookies.get(_cookie(request), "").partition(".")
        session = self._sessions.get(id_)
        if session is None or not hmac.compare_digest(signature.encode(), self._signed("session", id_).encode()):
            return None
        gone = session.sign_in is not None and self._users.by_id(session.sign_in.user) is None
        return None if gone else session

    def user(self, request: web.Request) -> user_directory.SandboxUser | None:
        """Who has signed in here."""
        session = self.of(request)
        return None if session is None or session.sign_in is None else self._users.by_id(session.sign_in.user)

    def begin(self, request: web.Request) -> BrowserSession:
        """The session of the request, or a new one, which has to be `keep`ed in the answer."""
        return self.of(request) or self._new(None)

    def keep(self, request: web.Request, response: web.Response, session: BrowserSession) -> None:
        """Set the cookie."""
        response.set_cookie(
            _cookie(request),
            f"{session.id}.{self._signed('session', session.id)}",
            httponly=True,
            samesite="Lax",
            secure=request.secure,
        )

    def sign_in(self, request: web.Request, response: web.Response, user: user_directory.SandboxUser) -> BrowserSession:
        """The user has shown the password: a new session, with its cookie in `response`; the one before is over."""
        before = self.of(request)
        if before is not None:
            self._sessions.drop(before.id)
        session = self._new(user)
        self.keep(request, response, session)
        return session

    def sign_out(self, request: web.Request, response: web.Response) -> None:
        """The session of the request is over."""
        session = self.of(request)
        if session is not None:
            self._sessions.drop(session.id)
        response.del_cookie(_cookie(request), httponly=True, samesite="Lax", secure=request.secure)

    def csrf_token(self, session: BrowserSession) -> str:
        """What a form has to carry, as `CSRF_FIELD`."""
        return self._signed("csrf", session.id)

    def is_own(self, session: BrowserSession | None, token: object) -> bool:
        """Whether a form with this token was made for the session."""
        if session is None or not isinstance(token, str):
            return False
        return hmac.compare_digest(token.encode(), self.csrf_token(session).encode())

    def _new(self, user: user_directory.SandboxUser | None) -> BrowserSession:
        id_ = self._rng.randbytes(32).hex()
        sign_in = None
        if user is not None:
            sign_in = tokens.SignIn(user.id, int(self._clock.now()), self._signed("public", id_)[:32].upper())
        session = BrowserSession(id_, sign_in)
        self._sessions.put(id_, session)
        return session

    def _signed(self, use: str, id_: str) -> str:
        return hmac.digest(self._secret, f"{use}:{id_}".encode(), hashlib.sha256).hex()


def _cookie(request: web.Request) -> str:
    """Cookies are shared by all ports of a host, and sandboxes are not."""
    return f"sandbox_session_{request.url.port}"
