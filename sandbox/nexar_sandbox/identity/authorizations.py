"""Users' consents, authorization codes and refresh tokens.

Each grant by a user is one `UserAuthorization`. Reuse of a code or refresh token revokes the whole authorization
(RFC 6749 §4.1.2, RFC 9700 §4.14).
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from cachetools import TTLCache

from nexar_sandbox import clocks
from nexar_sandbox.identity import tokens

# Seconds: of a code, and of a refresh token.
CODE_LIFETIME, REFRESH_LIFETIME = 300, 30 * 86_400
MAX_CODES, MAX_REFRESH_TOKENS = 10_000, 100_000


@dataclass(slots=True)
class UserAuthorization:
    """`access_tokens`: the ids of those that came of it."""

    client_id: str
    sign_in: tokens.SignIn
    scopes: tuple[str, ...]
    nonce: str | None = None
    access_tokens: list[str] = field(default_factory=list)
    ended: bool = False


@dataclass(slots=True)
class Issued:
    """An issued authorization code or refresh token, without its value; used ones are kept to detect reuse. A code has
    a redirect URI and PKCE's challenge, by S256."""

    authorization: UserAuthorization
    redirect_uri: str = ""
    code_challenge: str = ""
    used: bool = False


class AuthorizationStore:
    """Consents, codes and refresh tokens in memory. `rng` must be unpredictable."""

    def __init__(self, token_issuer: tokens.TokenIssuer, clock: clocks.Clock, rng: random.Random) -> None:
        self._token_issuer, self._rng = token_issuer, rng
        self._codes: TTLCache[str, Issued] = TTLCache(MAX_CODES, CODE_LIFETIME, clock.now)
        self._refresh_tokens: TTLCache[str, Issued] = TTLCache(MAX_REFRESH_TOKENS, REFRESH_LIFETIME, clock.now)
        self._consents: dict[tuple[str, str], frozenset[str]] = {}

    def consent(self, user: str, client_id: str, scopes: Iterable[str]) -> None:
        self._consents[user, client_id] = self._consents.get((user, client_id), frozenset()) | frozenset(scopes)

    def has_consent(self, user: str, client_id: str, scopes: Iterable[str]) -> bool:
        return self._consents.get((user, client_id), frozenset[str]()).issuperset(scopes)

    def new_code(self, code: Issued) -> str:
        """Return a new code, valid once for `CODE_LIFETIME`."""
        text = f"{self._rng.getrandbits(256):064X}"
        self._codes[text] = code
        return text

    def code(self, text: str) -> Issued | None:
        """Return the code if it is valid; reuse revokes its authorization."""
        return self._unless_reused(self._codes.get(text))

    def new_refresh_token(self, authorization: UserAuthorization) -> str:
        text = f"{self._rng.getrandbits(256):064X}"
        self._refresh_tokens[text] = Issued(authorization)
        return text

    def refresh_token(self, text: str) -> Issued | None:
        """Return the refresh token if it is valid; reuse revokes its authorization."""
        return self._unless_reused(self._refresh_tokens.get(text))

    def end(self, authorization: UserAuthorization) -> None:
        """Revoke the authorization and its tokens."""
        authorization.ended = True
        for jti in authorization.access_tokens:
            self._token_issuer.revoke(jti)

    def forget(self, client_id: str) -> None:
        """Revoke codes and refresh tokens of a client whose secret was changed."""
        for issued in (*self._codes.values(), *self._refresh_tokens.values()):
            if issued.authorization.client_id == client_id:
                issued.authorization.ended = True

    def _unless_reused(self, issued: Issued | None) -> Issued | None:
        if issued is not None and issued.used:
            self.end(issued.authorization)
        return None if issued is None or issued.authorization.ended else issued
