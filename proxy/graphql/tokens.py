"""Access tokens of this service for programs that can only sign in with client credentials (`POST /connect/token`).

A token is a JWT (RFC 7519) of 24 hours, and ends with its API key. Signing keys are in the store, so that all workers
and machines accept it; each signs for a week.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

import jwt

from proxy import errors
from proxy.gateway.applications import Applications, Client
from proxy.kit.clock import Clock
from proxy.upstream.auth.token_store import TokenStore

LIFETIME = 86_400  # seconds of a token, as of the upstream's (contract graphql.md §4)
PERIOD = 604_800  # seconds for which a key signs
ALGORITHM = "HS256"
ISSUER = "v3bridge"
LOCK_SECONDS = 5.0


class AccessTokens:
    """Issues tokens for API keys, and finds the client of one."""

    def __init__(self, store: TokenStore, applications: Applications, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._clients: Mapping[str, Client] = {
            hashlib.blake2b(str(digest).encode(), digest_size=16).hexdigest(): client
            for digest, client in applications.by_digest.items()
        }
        self._subjects = {client.accounts.key.name: subject for subject, client in self._clients.items()}
        self._keys: dict[int, bytes] = {}

    async def issue(self, client: Client) -> str:
        """Return a token for the API key of a client. Raises StoreUnavailable."""
        now = int(self._clock.now())
        period = now // PERIOD
        claims = {
            "iss": ISSUER,
            "sub": self._subjects[client.accounts.key.name],
            "iat": now,
            "exp": now + LIFETIME,
        }
        key = await self._key(period, create=True)
        assert key is not None  # noqa: S101 - it was created
        return jwt.encode(claims, key, ALGORITHM, headers={"kid": str(period)})

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
        claims: dict[str, Any] = {}
        if key is not None:
            try:
                # The times are checked by the service's clock.
                checked = {"verify_exp": False, "verify_iat": False, "require": ["exp", "sub"]}
                claims = jwt.decode(token, key, [ALGORITHM], issuer=ISSUER, options=checked)  # type: ignore[arg-type]
            except jwt.InvalidTokenError:
                return None
        return self._clients.get(claims["sub"]) if claims and now < claims["exp"] else None

    async def _key(self, period: int, *, create: bool = False) -> bytes | None:
        """Return the key of a period, from the store at its first use."""
        key = self._keys.get(period)
        if key is not None:
            return key
        name = f"signing key {period}"
        stored = await self._store.token(name)
        if stored is None and create:
            owner = secrets.token_hex(8)
            if not await self._store.lock(name, owner, LOCK_SECONDS):
                raise errors.StoreUnavailable("another process makes the key that signs tokens; try again in a second")
            stored = await self._store.token(name)  # made meanwhile
            if stored is None:
                text = base64.b64encode(secrets.token_bytes(32)).decode()
                await self._store.keep_token(name, text, (period + 1) * PERIOD + LIFETIME)
                stored = text, 0.0
            await self._store.unlock(name, owner)
        if stored is None:
            return None
        self._keys = {each: key for each, key in self._keys.items() if each >= period - 1}
        self._keys[period] = base64.b64decode(stored[0])
        return self._keys[period]
