"""Store of users' consents, authorization codes and refresh tokens. Codes are kept in memory only.

Each grant by a user is one `UserAuthorization`. Reuse of a code or refresh token revokes the whole authorization
(RFC 6749 §4.1.2, RFC 9700 §4.14).
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from cachetools import TTLCache

from nexar_sandbox import state
from nexar_sandbox.identity import clients, tokens
from nexar_sandbox.kit import clock as clocks

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

    authorization: UserAuthorization
    redirect_uri: str
    code_challenge: str
    used: bool = False

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return " ".join(self.authorization.scopes)


class StoredRefreshToken(msgspec.Struct, frozen=True):
    """A refresh token in the state store, keyed by the digest of its value. `expires` in seconds since 1970."""

    authorization: str
    expires: float
    used: bool = False


@dataclass(frozen=True, slots=True)
class IssuedRefreshToken:
    """An issued refresh token, without its value. `expires` in seconds since 1970."""

    digest: str
    authorization: UserAuthorization
    expires: float
    used: bool = False

    def check_client(self, client: clients.OAuthClient) -> bool:
        return client.application.client_id == self.authorization.client_id

    def get_scope(self) -> str:
        return " ".join(self.authorization.scopes)


class AuthorizationStore:
    """Store of authorizations. `refresh_lifetime` in seconds; `rng` must be unpredictable."""

    def __init__(
        self,
        token_issuer: tokens.TokenIssuer,
        clock: clocks.Clock,
        rng: random.Random,
        refresh_lifetime: int,
        state_store: state.StateStore | None = None,
    ) -> None:
        self._token_issuer, self._clock, self._rng = token_issuer, clock, rng
        self._lifetime = refresh_lifetime
        state_store = state_store or state.StateStore()
        self._codes: TTLCache[str, IssuedCode] = TTLCache(MAX_CODES, CODE_SECONDS, clock.now)
        # Authorizations with refresh tokens, kept as long as the last of them.
        self._lasting = state.ExpiringRows(
            state_store.rows("authorization", state.ExpiringRow[UserAuthorization]),
            clock,
            refresh_lifetime,
            MAX_REFRESH_TOKENS,
        )
        self._refresh_tokens = state.ExpiringRows(
            state_store.rows("refresh_token", state.ExpiringRow[StoredRefreshToken]),
            clock,
            refresh_lifetime,
            MAX_REFRESH_TOKENS,
        )
        self._consents = state_store.rows("consent", frozenset[str])

    def consent(self, user: str, client_id: str, scopes: Iterable[str]) -> None:
        key = f"{user} {client_id}"
        self._consents[key] = self._consents.get(key, frozenset()) | frozenset(scopes)

    def has_consent(self, user: str, client_id: str, scopes: Iterable[str]) -> bool:
        return self._consents.get(f"{user} {client_id}", frozenset[str]()).issuperset(scopes)

    def keep_code(self, text: str, code: IssuedCode) -> None:
        """Store an issued code, valid once for `CODE_SECONDS`."""
        self._codes[text] = code

    def code(self, text: str) -> IssuedCode | None:
        """Return the code if it is valid; reuse revokes its authorization."""
        return self._unless_reused(self._codes.get(text))

    def new_refresh_token(self, authorization: UserAuthorization) -> str:
        text = f"{self._rng.getrandbits(256):064X}"
        authorization.id = authorization.id or f"{self._rng.getrandbits(128):032X}"
        self._lasting.drop(authorization.id)
        self._lasting.put(authorization.id, authorization)
        token = StoredRefreshToken(authorization.id, self._clock.now() + self._lifetime)
        self._refresh_tokens.put(_digest(text), token)
        return text

    def refresh_token(self, text: str) -> IssuedRefreshToken | None:
        """Return the refresh token if it is valid; reuse revokes its authorization."""
        return self._unless_reused(self._stored_token(text))

    def look_up(self, text: str) -> IssuedRefreshToken | None:
        """As `refresh_token`, without revoking anything."""
        token = self._stored_token(text)
        return None if token is None or token.used or token.authorization.ended else token

    def spend(self, token: IssuedRefreshToken) -> None:
        """Mark the token as used. It is kept to detect reuse."""
        self._refresh_tokens.put(token.digest, StoredRefreshToken(token.authorization.id, token.expires, used=True))

    def note(self, authorization: UserAuthorization, jti: str) -> None:
        """Add the id of an access token issued for the authorization."""
        authorization.access_tokens.append(jti)
        self._changed(authorization)

    def end(self, authorization: UserAuthorization) -> None:
        """Revoke the authorization and its tokens."""
        authorization.ended = True
        self._changed(authorization)
        for jti in authorization.access_tokens:
            self._token_issuer.end_id(jti)

    def forget(self, client_id: str) -> None:
        """Revoke codes and refresh tokens of a client whose secret was changed or which was deleted."""
        for text, code in list(self._codes.items()):
            if code.authorization.client_id == client_id:
                del self._codes[text]
        for digest, token in self._refresh_tokens.items():
            authorization = self._lasting.get(token.authorization)
            if authorization is None or authorization.client_id == client_id:
                self._refresh_tokens.drop(digest)

    def _stored_token(self, text: str) -> IssuedRefreshToken | None:
        digest = _digest(text)
        stored = self._refresh_tokens.get(digest)
        authorization = None if stored is None else self._lasting.get(stored.authorization)
        if stored is None or authorization is None:
            return None
        return IssuedRefreshToken(digest, authorization, stored.expires, stored.used)

    def _changed(self, authorization: UserAuthorization) -> None:
        if authorization.id:
            self._lasting.put(authorization.id, authorization)

    def _unless_reused(self, issued: T | None) -> T | None:
        if issued is not None and issued.used:
            self.end(issued.authorization)
        return None if issued is None or issued.authorization.ended else issued


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
