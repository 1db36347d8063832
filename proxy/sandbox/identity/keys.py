"""The RSA keys that sign tokens, and their public halves as JWKS (RFC 7517). Made at start and never kept."""

import base64
import hashlib
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric import rsa

from proxy.kit import clock as clocks


class SigningKey:
    """An RS256 key pair with the key id by which tokens name it."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self.private = private
        self.public = private.public_key()
        numbers = self.public.public_numbers()
        self._n, self._e = _base64url(numbers.n), _base64url(numbers.e)
        self.kid = hashlib.sha256(self._n.encode()).hexdigest()[:32].upper()

    def jwk(self) -> dict[str, str]:
        """The public half."""
        return {"kty": "RSA", "use": "sig", "kid": self.kid, "e": self._e, "n": self._n, "alg": "RS256"}


class KeyRing:
    """The key that signs now, and those that did: they are good until all that they signed is over.

    `lifetime` is of tokens, in seconds.
    """

    def __init__(self, key: SigningKey, clock: clocks.Clock, lifetime: int) -> None:
        self.current = key
        self._clock, self._lifetime = clock, lifetime
        self._retired: dict[str, tuple[SigningKey, float]] = {}

    @property
    def retired(self) -> Mapping[str, float]:
        """The ids of keys that still verify, and in seconds since 1970 how long they will."""
        return {kid: until for kid, (_, until) in self._retired.items() if until > self._clock.now()}

    def rotate(self, key: SigningKey) -> None:
        """From now on `key` signs."""
        now = self._clock.now()
        self._retired = {kid: kept for kid, kept in self._retired.items() if kept[1] > now}
        self._retired[self.current.kid] = (self.current, now + self._lifetime)
        self.current = key

    def forget(self) -> None:
        """Keys that no longer sign don't verify either, from now on: a token of theirs is worth nothing."""
        self._retired.clear()

    @property
    def verifying(self) -> tuple[SigningKey, ...]:
        """The keys whose tokens are good, the signing key first."""
        return (self.current, *(self._retired[kid][0] for kid in self.retired))

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The key set that is published, the signing key first."""
        return {"keys": [key.jwk() for key in self.verifying]}


def generate() -> SigningKey:
    """A new key of 2048 bits."""
    return SigningKey(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _base64url(number: int) -> str:
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
