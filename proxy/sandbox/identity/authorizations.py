"""What users have allowed: consents, and the codes and refresh tokens that came of them. Codes are in memory only.

Each sign-in that an application was let in by is one `Authorisation`. A code or refresh token that comes a second time
has been stolen, from one side or the other: all that came of its authorisation ends (RFC 6749 §4.1.2, RFC 9700 §4.14).
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
    """An authorization code, without its text. `code_challenge` is PKCE's, by S256."""

    authorisation: UserAuthorization
    redirect_uri: str
    code_challenge: str
    used: bool = False

    def get_redirect_uri(self) -> str:
        """As Authlib asks for it."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """As Authlib asks for it."""
        return " ".join(self.authorisation.scopes)


@dataclass(frozen=True, slots=True)
class StoredRefreshToken:
    """A refresh token as it is kept: by the digest of its text. `expires` in seconds since 1970."""

    authorisation: str
    expires: float
    used: bool = False


@dataclass(frozen=True, slots=True)
class IssuedRefreshToken:
    """A refresh token, without its text. `expires` in seconds since 1970."""

    digest: str
    authorisation: UserAuthorization
    expires: float
    used: bool = False

    def check_client(self, client: clients.OAuthClient) -> bool:
        """As Authlib asks for it."""
        return client.application.client_id == self.authorisation.client_id

    def get_scope(self) -> str:
        """As Authlib asks for it."""
        return " ".join(self.authorisation.scopes)


class AuthorizationStore:
    """Keeps them. `refresh_lifetime` in seconds; `rng` must not be foreseeable."""

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
        # Those with refresh tokens, for as long as the last of these.
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
        """The user lets the application have these scopes, now and later."""
        key = f"{user} {client_id}"
        self._consents[key] = self._consents.get(key, frozenset()) | frozenset(scopes)

    def has_consent(self, user: str, client_id: str, scopes: Iterable[str]) -> bool:
        """Whether the user has let the application have them all."""
        return self._consents.get(f"{user} {client_id}", frozenset[str]()).issuperset(scopes)

    def keep_code(self, text: str, code: IssuedCode) -> None:
        """A code that was sent out: good once, for `CODE_SECONDS`."""
        self._codes[text] = code

    def code(self, text: str) -> IssuedCode | None:
        """What is behind a code that is good."""
        return self._good(self._codes.get(text))

    def new_refresh_token(self, authorisation: UserAuthorization) -> str:
        """The text of a new one."""
        text = f"{self._rng.getrandbits(256):064X}"
        authorisation.id = authorisation.id or f"{self._rng.getrandbits(128):032X}"
        self._lasting.drop(authorisation.id)
        self._lasting.put(authorisation.id, authorisation)
        token = StoredRefreshToken(authorisation.id, self._clock.now() + self._lifetime)
        self._refresh_tokens.put(_digest(text), token)
        return text

    def refresh_token(self, text: str) -> IssuedRefreshToken | None:
        """What is behind a refresh token that is good."""
        return self._good(self._found(text))

    def look_up(self, text: str) -> IssuedRefreshToken | None:
        """As `refresh_token`, for who only asks about it: nothing ends."""
        found = self._found(text)
        return None if found is None or found.used or found.authorisation.ended else found

    def spend(self, token: IssuedRefreshToken) -> None:
        """It has been used. It is kept: who brings it again is noticed."""
        self._refresh_tokens.put(token.digest, StoredRefreshToken(token.authorisation.id, token.expires, used=True))

    def note(self, authorisation: UserAuthorization, jti: str) -> None:
        """An access token with this id came of it."""
        authorisation.access_tokens.append(jti)
        self._changed(authorisation)

    def end(self, authorisation: UserAuthorization) -> None:
        """Nothing that came of it is good any more."""
        authorisation.ended = True
        self._changed(authorisation)
        for jti in authorisation.access_tokens:
            self._issued.end_id(jti)

    def forget(self, client_id: str) -> None:
        """The application cannot redeem any more what it was sent: its secret has been changed, or it is gone."""
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
