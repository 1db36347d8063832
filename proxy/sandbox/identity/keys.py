"""The RSA key that signs tokens, and its public half as JWKS (RFC 7517). Made at start and never kept."""

import base64
import hashlib

from cryptography.hazmat.primitives.asymmetric import rsa


class SigningKey:
    """An RS256 key pair with the key id by which tokens name it."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self.private = private
        self.public = private.public_key()
        numbers = self.public.public_numbers()
        self._n, self._e = _base64url(numbers.n), _base64url(numbers.e)
        self.kid = hashlib.sha256(self._n.encode()).hexdigest()[:32].upper()

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The key set that is published."""
        key = {"kty": "RSA", "use": "sig", "kid": self.kid, "e": self._e, "n": self._n, "alg": "RS256"}
        return {"keys": [key]}


def generate() -> SigningKey:
    """A new key of 2048 bits."""
    return SigningKey(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _base64url(number: int) -> str:
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
