"""RSA keys that sign tokens, and their JWKS (RFC 7517). Kept in the state store, so that tokens survive restarts."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from nexar_sandbox import state
from nexar_sandbox.kit import clock as clocks


class SigningKey:
    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self.private = private
        self.public = private.public_key()
        numbers = RSAAlgorithm.to_jwk(self.public, as_dict=True)
        self._n, self._e = numbers["n"], numbers["e"]
        self.kid = hashlib.sha256(self._n.encode()).hexdigest()[:32].upper()

    def pem(self) -> str:
        """Return the private key in PEM, not encrypted (PKCS #8)."""
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.private.private_bytes(pem, pkcs8, serialization.NoEncryption()).decode()

    def jwk(self) -> dict[str, str]:
        return {"kty": "RSA", "use": "sig", "kid": self.kid, "e": self._e, "n": self._n, "alg": "RS256"}


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key pair in the state store, in PEM. It verifies `until`, in seconds since 1970; None: it signs. Raises
    ValueError for an invalid key."""

    pem: str = field(repr=False)
    until: float | None = None

    def __post_init__(self) -> None:
        self.read()

    def read(self) -> SigningKey:
        # Validation takes longer than the rest of the start; the key was valid when it was written.
        key = serialization.load_pem_private_key(self.pem.encode(), None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError(f"a signing key is {type(key).__name__}, not RSA")
        return SigningKey(key)


class KeyRing:
    """The signing key and retired keys, which verify until their tokens expire.

    `lifetime` is that of tokens, in seconds. `key` is used only if the state has no key; None: a new one.
    """

    def __init__(
        self, key: SigningKey | None, clock: clocks.Clock, lifetime: int, state_store: state.StateStore | None = None
    ) -> None:
        self._clock, self._lifetime = clock, lifetime
        self._state_store = state_store or state.StateStore()
        self._rows = self._state_store.rows("key", StoredKey)
        self._retired: dict[str, tuple[SigningKey, float]] = {}
        signing = None
        for row in self._rows.values():
            if row.until is None:
                signing = row.read()
            # A key whose tokens have expired is not needed any more.
            elif row.until > clock.now():
                read = row.read()
                self._retired[read.kid] = (read, row.until)
        self.current = signing or key or generate_key()
        self._write()

    @property
    def retired(self) -> Mapping[str, float]:
        """Ids of retired keys that still verify, with their end in seconds since 1970."""
        return {kid: until for kid, (_, until) in self._retired.items() if until > self._clock.now()}

    def rotate(self, key: SigningKey) -> None:
        """Sign with `key`; retire the previous key."""
        now = self._clock.now()
        self._retired = {kid: retired_key for kid, retired_key in self._retired.items() if retired_key[1] > now}
        # A token that it has just signed lives a whole lifetime.
        self._retired[self.current.kid] = (self.current, now + self._lifetime)
        self.current = key
        self._write()

    def forget(self) -> None:
        """Remove retired keys, which invalidates their tokens."""
        self._retired.clear()
        self._write()

    @property
    def verifying(self) -> tuple[SigningKey, ...]:
        return (self.current, *(self._retired[kid][0] for kid in self.retired))

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """Return the published key set, the signing key first."""
        return {"keys": [key.jwk() for key in self.verifying]}

    def _write(self) -> None:
        if not self._state_store.is_persistent:
            return
        rows = {kid: StoredKey(key.pem(), until) for kid, (key, until) in self._retired.items()}
        rows[self.current.kid] = StoredKey(self.current.pem())
        with self._state_store.transaction():
            for kid in set(self._rows) - set(rows):
                del self._rows[kid]
            self._rows.update(rows)


def generate_key() -> SigningKey:
    return SigningKey(rsa.generate_private_key(public_exponent=65537, key_size=2048))
