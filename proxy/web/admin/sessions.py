"""Sessions of the admin interface: signed cookies, without a state in the server, so that every worker accepts them.

The key is derived from the admin token: a new token ends all sessions.
"""

import base64
import hashlib
import hmac
import secrets
import struct

from proxy import config
from proxy.kit.clock import Clock

SESSION_SECONDS = 12 * 3600
_HEAD = struct.Struct(">Q16s")  # end of the session in seconds since 1970, and random bytes
_SIZE = _HEAD.size + hashlib.sha256().digest_size


class Sessions:
    """Issues and checks sessions for the holders of a token."""

    def __init__(self, token: config.Secret, clock: Clock) -> None:
        self.token = token
        self._clock = clock
        self._key = hmac.digest(token.reveal().encode(), b"v3bridge admin session", "sha256")

    def is_token(self, text: str) -> bool:
        """Return whether this is the token, in constant time."""
        return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), self.token.reveal().encode())

    def new(self) -> str:
        """Return the cookie of a new session. Always a new one, so that none can be planted (session fixation)."""
        head = _HEAD.pack(int(self._clock.now()) + SESSION_SECONDS, secrets.token_bytes(16))
        return base64.urlsafe_b64encode(head + self._mac(b"session", head)).decode()

    def is_valid(self, cookie: str) -> bool:
        """Return whether the cookie was issued with this token, and has not expired."""
        try:
            content = base64.b64decode(cookie.encode("ascii"), b"-_", validate=True)
        except ValueError:
            return False
        head, mac = content[: _HEAD.size], content[_HEAD.size :]
        if len(content) != _SIZE or not hmac.compare_digest(mac, self._mac(b"session", head)):
            return False
        return self._clock.now() < int(_HEAD.unpack(head)[0])

    def csrf_token(self, cookie: str) -> str:
        return base64.urlsafe_b64encode(self._mac(b"csrf", cookie.encode())).decode()

    def is_csrf_token(self, cookie: str, text: str) -> bool:
        """Return whether this is the CSRF token of a session, in constant time."""
        return hmac.compare_digest(self.csrf_token(cookie).encode(), text.encode("utf-8", "surrogateescape"))

    def _mac(self, purpose: bytes, content: bytes) -> bytes:
        # The purpose, so that one kind of value is never accepted as another.
        return hmac.digest(self._key, purpose + b"\0" + content, "sha256")
