"""Access tokens of this service for programs that can only sign in with client credentials (`POST /connect/token`).

A token is a JWT (RFC 7519) of 24 hours, and ends with its API key. Signing keys are in the store, so that all workers
and machines accept it; each signs for a week.
"""

import base64
import secrets
from typing import Any

import jwt

from proxy import errors
from proxy.gateway.applications import Applications, Client
from proxy.kit.clock import Clock
from proxy.store.store import Store

LIFETIME = 86_400  # seconds of a token, as of the upstream's (contract graphql.md §4)
PERIOD = 604_800  # seconds for which a key signs
ALGORITHM = "HS256"
ISSUER = "v3bridge"
# The times are checked by the service's clock.
CHECKED: Any = {"verify_exp": False, "verify_iat": False, "require": ["exp", "sub"]}


class AccessTokens:
    """Issues tokens for API keys, and finds the client of one. A token is valid for so many `seconds`."""

    seconds = LIFETIME

    def __init__(self, store: Store, applications: Applications, clock: Clock) -> None:
        self._store = store
        self._applications = applications
        self._clock = clock
        # Of a period: the signing key, and the clients by the subjects of its tokens, which are made of their API keys,
        # so that nobody can guess them without it.
        self._keys: dict[int, tuple[bytes, dict[str, Client]]] = {}

    async def issue(self, client: Client) -> str:
        """Return a token for the API key of a client. Raises StoreUnavailable."""
        now = int(self._clock.now())
        period = now // PERIOD
        found = await self._key(period)
        if found is None:  # create it, or take that of another process that was faster
            text, seconds = base64.b64encode(secrets.token_bytes(32)).decode(), (period + 1) * PERIOD + LIFETIME - now
            await self._store.put_value(f"signing key {period}", text, seconds, absent=True)
            found = await self._key(period)
        if found is None:
            raise errors.StoreUnavailable("a signing key was lost")
        secret, clients = found
        subject = next(subject for subject, each in clients.items() if each.name == client.name)
        claims = {"iss": ISSUER, "sub": subject, "iat": now, "exp": now + LIFETIME}
        return jwt.encode(claims, secret, ALGORITHM, headers={"kid": str(period)})

    async def client(self, token: str) -> Client | None:
        """Return the client of a token; None for one that was not issued here, has expired, or whose API key is gone.
        Raises StoreUnavailable."""
        now = int(self._clock.now())
        try:
            period = int(jwt.get_unverified_header(token)["kid"])  # of any size
            found = await self._key(period) if 0 <= now // PERIOD - period <= 1 else None
            if found is None:
                return None
            claims = jwt.decode(token, found[0], [ALGORITHM], issuer=ISSUER, options=CHECKED)
        except (jwt.InvalidTokenError, KeyError, ValueError):
            return None
        return found[1].get(claims["sub"]) if now < claims["exp"] else None

    async def _key(self, period: int) -> tuple[bytes, dict[str, Client]] | None:
        """Return the key of a period, from the store at its first use; None before it is created."""
        if period not in self._keys:
            text = await self._store.value(f"signing key {period}")
            if text is None:
                return None
            secret = base64.b64decode(text)
            clients = {digest.keyed(secret): client for digest, client in self._applications.clients.items()}
            self._keys = {each: key for each, key in self._keys.items() if each >= period - 1}
            self._keys[period] = secret, clients
        return self._keys[period]
