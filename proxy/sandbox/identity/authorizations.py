"""Store of users' consents, authorization codes and refresh tokens. Codes are kept in memory only.

Each grant by a user is one `UserAuthorization`. Reuse of a code or refresh token revokes the whole authorization
(RFC 6749 §4.1.2, RFC 9700 §4.14).
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from cachetools import TTLCache

from proxy.kit import clock as clocks
from proxy.sandbox.identity import clients, tokens
from proxy.sandbox.state import store as state

T = TypeVar("T", "IssuedCode", "IssuedRefreshToken")
CODE_SECONDS = 300
MAX_CODES, MAX_REFRESH_TOKENS = 10_000, 100_000


@dataclass(slots=True)
class UserAuthorization:
    """`access_tokens`: the ids of those that came of it. `id`: by which its refresh tokens name it, once it has any."""

    client_id: str
    sign_in: tokens.SignIn
    scopes: tuple[str, ...]
    nonce: str | None = None
    access_tokens: list[str] = field(default_factory=list)
    ended: bool = False
    id: str = ""


@dataclass(slots=True)
class IssuedCode:
    """An issued authorization code, without its value. `code_challenge` is PKCE's, by S256."""

    authorisation: UserAuthorization
    redirect_uri: str
    code_challenge: str
    used: bool = False

    def get_redirect_uri(self) -> str:
        """Called by Authlib."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Called by Authlib."""
        return " ".join(self.authorisation.scopes)


@dataclass(frozen=True, slots=True)
class StoredRefreshToken:
    """A refresh token in the state store, keyed by the digest of its value. `expires` in seconds since 1970."""

    authorisation: str
    expires: float
    used: bool = False


@dataclass(frozen=True, slots=True)
class IssuedRefreshToken:
    """An issued refresh token, without its value. `expires` in seconds since 1970."""

    digest: str
    authorisation: UserAuthorization
    expires: float
    used: bool = False

    def check_client(self, client: clients.OAuthClient) -> bool:
        """Called by Authlib."""
        return client.application.client_id == self.authorisation.client_id

    def get_scope(self) -> str:
        """Called by Authlib."""
        return " ".join(self.authorisation.scopes)


class AuthorizationStore:
    """Store of authorizations. `refresh_lifetime` in seconds; `rng` must be unpredictable."""

    def __init__(
        self,
        issued: tokens.TokenIssuer,
        clock: clocks.Clock,
        rng: random.Random,
        refresh_lifetime: int,
        kept: state.StateStore | None = None,
    ) -> None:
        self._issued, self._clock, self._rng = issued, clock, rng
        self._lifetime = refresh_lifetime
        kept = kept or state.StateStore()
        self._codes: TTLCache[str, IssuedCode] = TTLCache(MAX_CODES, CODE_SECONDS, clock.now)
        # Authorizations with refresh tokens, kept as long as the last of them.
        self._lasting = state.ExpiringRows(
            kept.rows("authorisation", state.ExpiringRow[UserAuthorization]),
            clock,
            refresh_lifetime,
            MAX_REFRESH_TOKENS,
        )
        self._refresh_tokens = state.ExpiringRows(
            kept.rows("refresh_token", state.ExpiringRow[StoredRefreshToken]),
            clock,
            refresh_lifetime,
            MAX_REFRESH_TOKENS,
        )
        self._consents = kept.rows("consent", frozenset[str])

    def consent(self, user: str, client_id: str, scopes: Iterable[str]) -> None:
        """Record the user's consent to these scopes."""
        key = f"{user} {client_id}"
        self._consents[key] = self._consents.get(key, frozenset()) | frozenset(scopes)

    def has_consent(self, user: str, client_id: str, scopes: Iterable[str]) -> bool:
        """Whether the user has consented to all these scopes."""
        return self._consents.get(f"{user} {client_id}", frozenset[str]()).issuperset(scopes)

    def keep_code(self, text: str, code: IssuedCode) -> None:
        """Store an issued code, valid once for `CODE_SECONDS`."""
        self._codes[text] = code

    def code(self, text: str) -> IssuedCode | None:
        """The code if it is valid; reuse revokes its authorization."""
        return self._good(self._codes.get(text))

    def new_refresh_token(self, authorisation: UserAuthorization) -> str:
        """Issue a refresh token."""
        text = f"{self._rng.getrandbits(256):064X}"
        authorisation.id = authorisation.id or f"{self._rng.getrandbits(128):032X}"
        self._lasting.drop(authorisation.id)
        self._lasting.put(authorisation.id, authorisation)
        token = StoredRefreshToken(authorisation.id, self._clock.now() + self._lifetime)
        self._refresh_tokens.put(_digest(text), token)
        return text

    def refresh_token(self, text: str) -> IssuedRefreshToken | None:
        """The refresh token if it is valid; reuse revokes its authorization."""
        return self._good(self._found(text))

    def look_up(self, text: str) -> IssuedRefreshToken | None:
        """As `refresh_token`, without revoking anything."""
        found = self._found(text)
        return None if found is None or found.used or found.authorisation.ended else found

    def spend(self, token: IssuedRefreshToken) -> None:
        """Mark the token as used. It is kept to detect reuse."""
        self._refresh_tokens.put(token.digest, StoredRefreshToken(token.authorisation.id, token.expires, used=True))

    def note(self, authorisation: UserAuthorization, jti: str) -> None:
        """Add the id of an access token issued for the authorization."""
        authorisation.access_tokens.append(jti)
        self._changed(authorisation)

    def end(self, authorisation: UserAuthorization) -> None:
        """Revoke the authorization and its tokens."""
        authorisation.ended = True
        self._changed(authorisation)
        for jti in authorisation.access_tokens:
            self._issued.end_id(jti)

    def forget(self, client_id: str) -> None:
        """Revoke codes and refresh tokens of a client whose secret was changed or which was deleted."""
        for text, code in list(self._codes.items()):
            if code.authorisation.client_id == client_id:
                del self._codes[text]
        for digest, token in self._refresh_tokens.items():
            authorisation = self._lasting.get(token.authorisation)
            if authorisation is None or authorisation.client_id == client_id:
                self._refresh_tokens.drop(digest)

    def _found(self, text: str) -> IssuedRefreshToken | None:
        digest = _digest(text)
        kept = self._refresh_tokens.get(digest)
        authorisation = None if kept is None else self._lasting.get(kept.authorisation)
        if kept is None or authorisation is None:
            return None
        return IssuedRefreshToken(digest, authorisation, kept.expires, kept.used)

    def _changed(self, authorisation: UserAuthorization) -> None:
        if authorisation.id:
            self._lasting.put(authorisation.id, authorisation)

    def _good(self, kept: T | None) -> T | None:
        if kept is not None and kept.used:
            self.end(kept.authorisation)
        return None if kept is None or kept.authorisation.ended else kept


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
