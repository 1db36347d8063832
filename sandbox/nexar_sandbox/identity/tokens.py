"""Issues and verifies access and id tokens (contract graphql.md §4.2).

Times are checked against the given clock, so PyJWT's checks are off. The issuer is not checked, because one sandbox has
several addresses.
"""

import base64
import hashlib
import random
from dataclasses import dataclass
from typing import Any

import jwt
from cachetools import LRUCache
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from jwt.types import Options

from nexar_sandbox import clocks

AUDIENCE = "https://api.nexar.com"
MAX_REVOKED = 10_000
WITHOUT_TIME_CHECKS: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": True}


class InvalidTokenError(Exception):
    """Not a valid token of this sandbox: malformed, another key or audience, missing claims."""


class ExpiredTokenError(Exception):
    """A token that has expired or was revoked."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """A user's authentication: user id, time (seconds since 1970), and the session's public id, if in a browser."""

    user: str
    at: int
    session: str | None = None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Claims of an access token. `user` is the id of the user who authorized the application; None: client
    credentials. `expires` in seconds since 1970."""

    client_id: str
    scopes: tuple[str, ...]
    user: str | None
    jti: str
    expires: int


class SigningKey:
    """The RSA key that signs tokens, and its JWKS (RFC 7517)."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self.private = private
        self.public = private.public_key()
        numbers = RSAAlgorithm.to_jwk(self.public, as_dict=True)
        self._n, self._e = numbers["n"], numbers["e"]
        self.kid = hashlib.sha256(self._n.encode()).hexdigest()[:32].upper()

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """Return the published key set."""
        key = {"kty": "RSA", "use": "sig", "kid": self.kid, "e": self._e, "n": self._n, "alg": "RS256"}
        return {"keys": [key]}


def generate_key() -> SigningKey:
    return SigningKey(rsa.generate_private_key(public_exponent=65537, key_size=2048))


class TokenIssuer:
    """Issues and verifies RS256 tokens, valid for `lifetime` seconds."""

    def __init__(
        self,
        key: SigningKey,
        clock: clocks.Clock,
        rng: random.Random,
        lifetime: int,
    ) -> None:
        self.key, self._clock, self._rng, self.lifetime = key, clock, rng, lifetime
        self._revoked: LRUCache[str, None] = LRUCache(MAX_REVOKED)

    def new_id(self) -> str:
        return f"{self._rng.getrandbits(128):032X}"

    def issue(
        self, client_id: str, scopes: tuple[str, ...], issuer: str, *, jti: str, sign_in: SignIn | None = None
    ) -> str:
        """Return an access token for `client_id`."""
        claims = {
            **self._times(),
            "iss": issuer,
            "aud": AUDIENCE,
            "client_id": client_id,
            "scope": list(scopes),
            "jti": jti,
            **_user_claims(sign_in),
        }
        return self._sign(claims, "at+jwt")

    def identify(self, client_id: str, issuer: str, sign_in: SignIn, *, nonce: str | None, access_token: str) -> str:
        """Return the id_token beside an access token (OpenID Connect Core §2, §3.1.3.6)."""
        # The left half of the hash (§3.1.3.6).
        half = hashlib.sha256(access_token.encode()).digest()[:16]
        more = {"nonce": nonce, "sid": sign_in.session}
        claims = {
            **self._times(),
            "iss": issuer,
            "aud": client_id,
            **{name: value for name, value in more.items() if value is not None},
            "at_hash": base64.urlsafe_b64encode(half).rstrip(b"=").decode(),
            **_user_claims(sign_in),
        }
        return self._sign(claims, "JWT")

    def access(self, token: str) -> AccessToken:
        """Verify `token`. Raises InvalidTokenError, ExpiredTokenError."""
        claims = self._claims(token)
        if claims.jti in self._revoked or self._clock.now() >= claims.expires:
            raise ExpiredTokenError("it has expired or was revoked")
        return claims

    def revoke(self, jti: str) -> None:
        self._revoked[jti] = None

    def _times(self) -> dict[str, Any]:
        now = int(self._clock.now())
        return {"iat": now, "nbf": now, "exp": now + self.lifetime}

    def _sign(self, claims: dict[str, Any], kind: str) -> str:
        headers = {"kid": self.key.kid, "typ": kind}
        return jwt.encode(claims, self.key.private, algorithm="RS256", headers=headers)

    def _claims(self, token: str) -> AccessToken:
        """Raise InvalidTokenError for another key's token, and for missing claims, as in an id_token."""
        try:
            claims = jwt.decode(
                token, self.key.public, algorithms=["RS256"], audience=AUDIENCE, options=WITHOUT_TIME_CHECKS
            )
            client_id, scope, jti, expires = (claims[name] for name in ("client_id", "scope", "jti", "exp"))
            return AccessToken(client_id, tuple(scope), claims.get("sub"), jti, expires)
        except (jwt.InvalidTokenError, ValueError, KeyError, TypeError) as error:
            raise InvalidTokenError(type(error).__name__) from error


def _user_claims(sign_in: SignIn | None) -> dict[str, Any]:
    if sign_in is None:
        return {}
    return {"sub": sign_in.user, "auth_time": sign_in.at, "idp": "local", "amr": ["pwd"]}
