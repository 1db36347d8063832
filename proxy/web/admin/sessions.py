"""Sessions of the admin interface: signed cookies, without a state in the server, so that every worker accepts them.

The key is derived from the admin token, and for people of an identity provider from its settings, too: a new token or
another setting ends all sessions.
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
_MAC = hashlib.sha256().digest_size


class Sessions:
    """Issues and checks sessions for the holders of a token, or of what else `token` is derived from."""

    def __init__(self, token: config.Secret, clock: Clock, seconds: int = SESSION_SECONDS) -> None:
        self.token = token
        self._clock = clock
        self._seconds = seconds
        self._key = hmac.digest(token.reveal().encode(), b"v3bridge admin session", "sha256")

    def is_token(self, text: str) -> bool:
        """Return whether this is the token, in constant time."""
        return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), self.token.reveal().encode())

    def new(self, text: str = "") -> str:
        """Return the cookie of a new session, which carries a text, readable for its browser. Always a new one, so that
        none can be planted (session fixation)."""
        content = _HEAD.pack(int(self._clock.now()) + self._seconds, secrets.token_bytes(16)) + text.encode()
        return base64.urlsafe_b64encode(content + self._mac(b"session", content)).decode()

    def text(self, cookie: str) -> str | None:
        """Return the text of a session; None where the cookie was not issued with this token, or has expired."""
        try:
            decoded = base64.b64decode(cookie.encode("ascii"), b"-_", validate=True)
        except ValueError:
            return None
        content, mac = decoded[:-_MAC], decoded[-_MAC:]
        if len(content) < _HEAD.size or not hmac.compare_digest(mac, self._mac(b"session", content)):
            return None
        return content[_HEAD.size :].decode() if self._clock.now() < int(_HEAD.unpack_from(content)[0]) else None

    def derived(self, purpose: str, cookie: str) -> str:
        """Return a value that belongs to a session, and tells nothing of its other values: 43 URL-safe characters."""
        return base64.urlsafe_b64encode(self._mac(purpose.encode(), cookie.encode())).decode().rstrip("=")

    def is_derived(self, purpose: str, cookie: str, text: str) -> bool:
        """Return whether this is the value of a session, in constant time."""
        return hmac.compare_digest(self.derived(purpose, cookie).encode(), text.encode("utf-8", "surrogateescape"))

    def _mac(self, purpose: bytes, content: bytes) -> bytes:
        # The purpose, so that one kind of value is never accepted as another.
        return hmac.digest(self._key, purpose + b"\0" + content, "sha256")
