"""What users have allowed: consents, and the codes and refresh tokens that came of them. In memory.

Each sign-in that an application was let in by is one `Authorisation`. A code or refresh token that comes a second time
has been stolen, from one side or the other: all that came of its authorisation ends (RFC 6749 §4.1.2, RFC 9700 §4.14).
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from cachetools import TTLCache

from proxy.kit import clock as clocks
from proxy.sandbox.identity import clients, tokens

T = TypeVar("T", "Code", "RefreshToken")
CODE_SECONDS = 300
CODES_KEPT, REFRESH_TOKENS_KEPT = 10_000, 100_000


@dataclass(slots=True)
class Authorisation:
    """`access_tokens`: the ids of those that came of it."""

    client_id: str
    sign_in: tokens.SignIn
    scopes: tuple[str, ...]
    nonce: str | None = None
    access_tokens: list[str] = field(default_factory=list)
    ended: bool = False


@dataclass(slots=True)
class Code:
    """An authorization code, without its text. `code_challenge` is PKCE's, by S256."""

    authorisation: Authorisation
    redirect_uri: str
    code_challenge: str
    used: bool = False

    def get_redirect_uri(self) -> str:
        """As Authlib asks for it."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """As Authlib asks for it."""
        return " ".join(self.authorisation.scopes)


@dataclass(slots=True)
class RefreshToken:
    """A refresh token, without its text. `expires` in seconds since 1970."""

    authorisation: Authorisation
    expires: float
    used: bool = False

    def check_client(self, client: clients.Client) -> bool:
        """As Authlib asks for it."""
        return client.account.client_id == self.authorisation.client_id

    def get_scope(self) -> str:
        """As Authlib asks for it."""
        return " ".join(self.authorisation.scopes)


class Authorisations:
    """Keeps them. `refresh_lifetime` in seconds; `rng` must not be foreseeable."""

    def __init__(self, issued: tokens.Tokens, clock: clocks.Clock, rng: random.Random, refresh_lifetime: int) -> None:
        self._issued, self._clock, self._rng = issued, clock, rng
        self._lifetime = refresh_lifetime
        self._codes: TTLCache[str, Code] = TTLCache(CODES_KEPT, CODE_SECONDS, clock.now)
        self._refresh_tokens: TTLCache[str, RefreshToken] = TTLCache(REFRESH_TOKENS_KEPT, refresh_lifetime, clock.now)
        self._consents: dict[tuple[str, str], frozenset[str]] = {}

    def consent(self, user: str, client_id: str, scopes: Iterable[str]) -> None:
        """The user lets the application have these scopes, now and later."""
        self._consents[user, client_id] = self._consents.get((user, client_id), frozenset()) | set(scopes)

    def has_consent(self, user: str, client_id: str, scopes: Iterable[str]) -> bool:
        """Whether the user has let the application have them all."""
        return self._consents.get((user, client_id), frozenset()).issuperset(scopes)

    def keep_code(self, text: str, code: Code) -> None:
        """A code that was sent out: good once, for `CODE_SECONDS`."""
        self._codes[text] = code

    def code(self, text: str) -> Code | None:
        """What is behind a code that is good."""
        return self._good(self._codes.get(text))

    def new_refresh_token(self, authorisation: Authorisation) -> str:
        """The text of a new one."""
        text = f"{self._rng.getrandbits(256):064X}"
        self._refresh_tokens[text] = RefreshToken(authorisation, self._clock.now() + self._lifetime)
        return text

    def refresh_token(self, text: str) -> RefreshToken | None:
        """What is behind a refresh token that is good."""
        return self._good(self._refresh_tokens.get(text))

    def look_up(self, text: str) -> RefreshToken | None:
        """As `refresh_token`, for who only asks about it: nothing ends."""
        kept = self._refresh_tokens.get(text)
        return None if kept is None or kept.used or kept.authorisation.ended else kept

    def end(self, authorisation: Authorisation) -> None:
        """Nothing that came of it is good any more."""
        authorisation.ended = True
        for jti in authorisation.access_tokens:
            self._issued.end_id(jti)

    def _good(self, kept: T | None) -> T | None:
        if kept is not None and kept.used:
            self.end(kept.authorisation)
        return None if kept is None or kept.authorisation.ended else kept
