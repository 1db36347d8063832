"""Access tokens: issued by the token endpoint, checked by the query service (contract graphql.md §4.2).

Time comes from the clock that is handed in, so PyJWT's own time checks are off. The issuer is not
checked: one sandbox has several addresses.
"""

import random
from typing import Any

import jwt
from cachetools import LRUCache
from jwt.types import Options

from proxy.kit import clock as clocks
from proxy.sandbox.identity import keys

ENDED_KEPT = 10_000


class InvalidTokenError(Exception):
    """Not a token of ours: garbled, another key, another audience, claims missing."""


class ExpiredTokenError(Exception):
    """A token of ours whose time is over."""


class EndedTokenError(ExpiredTokenError):
    """A token of ours that was ended before its time."""


class Tokens:
    """Signs and checks RS256 tokens. `lifetime` in seconds."""

    def __init__(
        self, key: keys.SigningKey, clock: clocks.Clock, rng: random.Random, lifetime: int, audience: str
    ) -> None:
        self._key, self._clock, self._rng = key, clock, rng
        self.lifetime = lifetime
        self._audience = audience
        self._ended: LRUCache[str, bool] = LRUCache(ENDED_KEPT)

    def issue(
        self, client_id: str, scopes: tuple[str, ...], issuer: str, *, ahead: int = 0, endless: bool = False
    ) -> str:
        """A token for `client_id`, valid from now for `lifetime` seconds. As faults want it, by a clock that is some
        seconds `ahead`, or with no end."""
        now = int(self._clock.now()) + ahead
        claims = {
            "iat": now,
            "nbf": now,
            "exp": now + self.lifetime,
            "iss": issuer,
            "aud": self._audience,
            "client_id": client_id,
            "scope": list(scopes),
            "jti": f"{self._rng.getrandbits(128):032X}",
        }
        if endless:
            del claims["exp"]
        headers = {"kid": self._key.kid, "typ": "at+jwt"}
        return jwt.encode(claims, self._key.private, algorithm="RS256", headers=headers)

    def client_of(self, token: str) -> str:
        """The client id that `token` was issued to. Raises InvalidTokenError, ExpiredTokenError, EndedTokenError."""
        claims = self._claims(token)
        if claims.get("jti") in self._ended:
            raise EndedTokenError("it was ended")
        now = self._clock.now()
        client_id, expires, starts = (claims.get(name) for name in ("client_id", "exp", "nbf"))
        if not isinstance(client_id, str):
            raise InvalidTokenError("claims are missing")
        if isinstance(expires, int) and now >= expires:
            raise ExpiredTokenError("its time is over")
        if isinstance(starts, int) and now < starts:
            raise InvalidTokenError("its time has not come")
        return client_id

    def end(self, token: str) -> None:
        """From now on this token has expired. What is no token of ours is left alone."""
        try:
            self._ended[self._claims(token)["jti"]] = True
        except InvalidTokenError:
            return

    def _claims(self, token: str) -> dict[str, Any]:
        untimed: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": True}
        try:
            return jwt.decode(token, self._key.public, algorithms=["RS256"], audience=self._audience, options=untimed)
        except (jwt.InvalidTokenError, ValueError) as error:
            raise InvalidTokenError(type(error).__name__) from error
