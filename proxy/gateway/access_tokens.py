"""Access tokens of this service for programs that can only sign in with client credentials (`POST /connect/token`).

A token is a JWT (RFC 7519) of 24 hours, and ends with its API key. Signing keys are in the store, so that all workers
and machines accept it; each signs for a week.
"""

import base64
import secrets

import jwt

from proxy.gateway.applications import Applications, Client
from proxy.kit.clock import Clock
from proxy.store.store import Store

LIFETIME = 86_400  # seconds of a token, as of the upstream's (contract graphql.md §4)
PERIOD = 604_800  # seconds for which a key signs
ALGORITHM = "HS256"
ISSUER = "v3bridge"


class _SigningKey:
    """Key of a period, and the clients by the subjects of the tokens that it signs: of their API keys, which nobody
    can guess from them without it."""

    def __init__(self, secret: bytes, applications: Applications) -> None:
        self.secret = secret
        self.clients = {digest.keyed(secret): client for digest, client in applications.clients.items()}
        self.subjects = {client.name: subject for subject, client in self.clients.items()}


class AccessTokens:
    """Issues tokens for API keys, and finds the client of one. A token is valid for so many `seconds`."""

    seconds = LIFETIME

    def __init__(self, store: Store, applications: Applications, clock: Clock) -> None:
        self._store = store
        self._applications = applications
        self._clock = clock
        self._keys: dict[int, _SigningKey] = {}

    async def issue(self, client: Client) -> str:
        """Return a token for the API key of a client. Raises StoreUnavailable."""
        now = int(self._clock.now())
        period = now // PERIOD
        key = await self._key(period) or await self._create_key(period)
        claims = {
            "iss": ISSUER,
            "sub": key.subjects[client.name],
            "iat": now,
            "exp": now + LIFETIME,
        }
        return jwt.encode(claims, key.secret, ALGORITHM, headers={"kid": str(period)})

    async def client(self, token: str) -> Client | None:
        """Return the client of a token; None for one that was not issued here, has expired, or whose API key is gone.
        Raises StoreUnavailable."""
        now = self._clock.now()
        try:
            period = int(jwt.get_unverified_header(token)["kid"])
        except (jwt.InvalidTokenError, KeyError, ValueError):
            return None
        if not 0 <= now // PERIOD - period <= 1:
            return None
        key = await self._key(period)
        if key is None:
            return None
        try:
            # The times are checked by the service's clock.
            checked = {"verify_exp": False, "verify_iat": False, "require": ["exp", "sub"]}
            claims = jwt.decode(token, key.secret, [ALGORITHM], issuer=ISSUER, options=checked)  # type: ignore[arg-type]
        except jwt.InvalidTokenError:
            return None
        return key.clients.get(claims["sub"]) if now < claims["exp"] else None

    async def _key(self, period: int) -> _SigningKey | None:
        """Return the key of a period, from the store at its first use; None before it is created."""
        key = self._keys.get(period)
        if key is not None:
            return key
        stored = await self._store.value(_name(period))
        return None if stored is None else self._remember(period, stored)

    async def _create_key(self, period: int) -> _SigningKey:
        """Create the key of a period, or take that of another process that was faster."""
        text = base64.b64encode(secrets.token_bytes(32)).decode()
        seconds = (period + 1) * PERIOD + LIFETIME - self._clock.now()
        is_kept = await self._store.put_value(_name(period), text, seconds, absent=True)
        other = None if is_kept else await self._key(period)
        return other or self._remember(period, text)

    def _remember(self, period: int, text: str) -> _SigningKey:
        key = _SigningKey(base64.b64decode(text), self._applications)
        self._keys = {each: known for each, known in self._keys.items() if each >= period - 1} | {period: key}
        return key


def _name(period: int) -> str:
    return f"signing key {period}"
