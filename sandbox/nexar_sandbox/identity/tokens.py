"""Issues and verifies access and id tokens (contract graphql.md §4.2).

Times are checked against the given clock, so PyJWT's checks are off. The issuer is not checked, because one sandbox has
several addresses.
"""

import base64
import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.types import Options

from nexar_sandbox import state
from nexar_sandbox.behavior import Behavior
from nexar_sandbox.identity import keys
from nexar_sandbox.kit import clock as clocks

# Ten years, because faults make tokens without expiry.
MAX_REVOKED, REVOKED_SECONDS = 10_000, 10 * 365 * 86_400
WITHOUT_TIME_CHECKS: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": True}


class InvalidTokenError(Exception):
    """Not a valid token of this sandbox: malformed, another key or audience, missing claims."""


class ExpiredTokenError(Exception):
    """A token that has expired or was revoked, or whose user was removed."""


class RevokedByFaultError(ExpiredTokenError):
    """A token that a fault has revoked."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """A user's authentication: user id, time (seconds since 1970), and the session's public id, if in a browser."""

    user: str
    at: int
    session: str | None = None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Claims of an access token. `user` is the id of the user who authorized the application; None: client
    credentials. Times in seconds since 1970; `expires` None: never."""

    client_id: str
    scopes: tuple[str, ...]
    user: str | None
    jti: str
    issuer: str
    issued_at: int
    expires: int | None

    def check_client(self, client: Any) -> bool:
        """Return true if it was issued to this client of Authlib."""
        return bool(client.get_client_id() == self.client_id)


class TokenIssuer:
    """Issues and verifies RS256 tokens, whose lifetime and claims are those of a `behavior`. `is_user` and
    `is_application` tell whether a user or client id still exists."""

    def __init__(
        self,
        key_ring: keys.KeyRing,
        clock: clocks.Clock,
        rng: random.Random,
        behavior: Behavior,
        audience: str,
        *,
        is_user: Callable[[str], bool] = lambda _: True,
        is_application: Callable[[str], bool] = lambda _: True,
        state_store: state.StateStore | None = None,
    ) -> None:
        self._key_ring, self._clock, self._rng = key_ring, clock, rng
        self._behavior, self.lifetime = behavior, behavior.token_lifetime
        self._audience, self._is_user, self._is_application = audience, is_user, is_application
        # Values: whether a fault revoked the token.
        ended = (state_store or state.StateStore()).rows("ended_token", state.ExpiringRow[bool])
        self._ended = state.ExpiringRows(ended, clock, REVOKED_SECONDS, MAX_REVOKED)

    def new_id(self) -> str:
        return f"{self._rng.getrandbits(128):032X}"

    def issue(
        self,
        client_id: str,
        scopes: tuple[str, ...],
        issuer: str,
        *,
        jti: str,
        sign_in: SignIn | None = None,
        ahead: int = 0,
        endless: bool = False,
    ) -> str:
        """Return an access token for `client_id`, valid for `lifetime` seconds. Set by faults: `ahead`, clock skew in
        seconds; `endless`, without expiry."""
        claims = {
            **self._times(ahead),
            "iss": issuer,
            "aud": self._audience,
            "client_id": client_id,
            "scope": " ".join(scopes) if self._behavior.jwt_scope_as_text else list(scopes),
            "jti": jti,
            **_user_claims(sign_in),
            **dict.fromkeys(self._behavior.jwt_claims, ""),
        }
        claims["exp"] += self._behavior.jwt_validity
        if endless:
            del claims["exp"]
        return self._sign(claims, "at+jwt")

    def identify(
        self, client_id: str, issuer: str, sign_in: SignIn, *, nonce: str | None, access_token: str, ahead: int = 0
    ) -> str:
        """Return the id_token beside an access token (OpenID Connect Core §2, §3.1.3.6)."""
        # The left half of the hash (§3.1.3.6).
        half = hashlib.sha256(access_token.encode()).digest()[:16]
        more = {"nonce": nonce, "sid": sign_in.session}
        claims = {
            **self._times(ahead),
            "iss": issuer,
            "aud": client_id,
            **{name: value for name, value in more.items() if value is not None},
            "at_hash": base64.urlsafe_b64encode(half).rstrip(b"=").decode(),
            **_user_claims(sign_in),
        }
        return self._sign(claims, "JWT")

    def access(self, token: str) -> AccessToken:
        """Verify `token`. Raises InvalidTokenError, ExpiredTokenError (RevokedByFaultError after a fault)."""
        claims = _decode_claims(self._claims(token))
        by_fault = self._ended.get(claims.jti)
        if by_fault is not None:
            raise (RevokedByFaultError if by_fault else ExpiredTokenError)("it was revoked")
        if claims.expires is not None and self._clock.now() >= claims.expires:
            raise ExpiredTokenError("it has expired")
        if claims.user is not None and not self._is_user(claims.user):
            raise ExpiredTokenError("its user was removed")
        # Where a fault has set the clock of the identity service ahead.
        if self._clock.now() < claims.issued_at:
            raise InvalidTokenError("it is not valid yet")
        if not self._is_application(claims.client_id):
            raise InvalidTokenError("its application was deleted")
        return claims

    def end(self, token: str) -> None:
        """Revoke a token by a fault; other tokens are ignored."""
        try:
            self._ended.put(_decode_claims(self._claims(token)).jti, True)
        except InvalidTokenError:
            return

    def end_id(self, jti: str) -> None:
        self._ended.put(jti, False)

    def _times(self, ahead: int) -> dict[str, Any]:
        now = int(self._clock.now()) + ahead
        return {"iat": now, "nbf": now, "exp": now + self.lifetime}

    def _sign(self, claims: dict[str, Any], kind: str) -> str:
        key = self._key_ring.current
        return jwt.encode(claims, key.private, algorithm="RS256", headers={"kid": key.kid, "typ": kind})

    def _claims(self, token: str) -> dict[str, Any]:
        # The signing key comes first and fits most tokens, which is faster than reading the header for the key id.
        for key in self._key_ring.verifying:
            try:
                return jwt.decode(
                    token, key.public, algorithms=["RS256"], audience=self._audience, options=WITHOUT_TIME_CHECKS
                )
            except jwt.InvalidSignatureError:
                continue
            except (jwt.InvalidTokenError, ValueError) as error:
                raise InvalidTokenError(type(error).__name__) from error
        raise InvalidTokenError("its key is unknown")


def _user_claims(sign_in: SignIn | None) -> dict[str, Any]:
    if sign_in is None:
        return {}
    return {"sub": sign_in.user, "auth_time": sign_in.at, "idp": "local", "amr": ["pwd"]}


def _decode_claims(claims: dict[str, Any]) -> AccessToken:
    """Raise InvalidTokenError for missing claims, as in an id_token or another service's token."""
    try:
        scope = claims["scope"]
        return AccessToken(
            claims["client_id"],
            tuple(scope.split() if isinstance(scope, str) else scope),
            claims.get("sub"),
            claims["jti"],
            claims["iss"],
            claims["nbf"],
            claims.get("exp"),
        )
    except (KeyError, TypeError):
        raise InvalidTokenError("claims are missing") from None
