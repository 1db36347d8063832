"""The RSA key that signs tokens, and its JWKS (RFC 7517)."""

import hashlib

from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm


class SigningKey:
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
