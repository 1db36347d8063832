"""Small values of the store that workers, restarts and machines share to request access tokens: the tokens, the lease
of who requests one, back-off, and the windows in which requests are counted.

Used by token_requests.py. While the store is unavailable there are no stored tokens, every lease is granted, and the
windows are as this process knows them: without a token no request can be served, so each process requests its own.
"""

import hashlib
import json
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.store.store import Store
from proxy.upstream.auth.identity import Credentials

R = TypeVar("R")

log = structlog.get_logger()


class StoredToken(NamedTuple):
    """Access token and its expiry in seconds since 1970."""

    token: str
    expires: float


_decode_token = msgspec.json.Decoder(StoredToken).decode


class StoreKeys(NamedTuple):
    """Keys in the store for an application's token, lease, back-off and windows."""

    token: str
    lease: str
    backoff: str
    windows: str


def keys(token_url: str, scope: str, credentials: Credentials) -> StoreKeys:
    """Return keys made of digests: they reveal nothing, and a changed secret or scope never finds an old token.

    The key of the windows does not depend on the secret, because the identity service counts requests by client id.
    """
    secret = credentials.client_secret.reveal() if credentials.client_secret else None
    digest = _digest(token_url, scope, credentials.client_id, secret)
    counted = f"token requests {_digest(token_url, credentials.client_id)}"
    return StoreKeys(f"token {digest}", f"token lease {digest}", f"token back-off {digest}", counted)


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class TokenValues:
    """Values of the store for the requests of tokens."""

    def __init__(self, store: Store, clock: clocks.Clock) -> None:
        self._store = store
        self._clock = clock
        self._windows: dict[str, windows.Windows] = {}
        self._unavailable = False

    async def token(self, key: str) -> StoredToken | None:
        """Return a stored token; None where there is none, or it has expired."""
        text = await self._attempt(self._store.value(key), None)
        return stored_token(text, self._clock.now())

    async def keep_token(self, key: str, token: StoredToken) -> None:
        """Store a token until it expires."""
        await self._attempt(put_token(self._store, key, token, self._clock.now()), None)

    async def drop_token(self, key: str, token: str) -> None:
        """Delete this token; a newer one stays."""
        await self._attempt(drop_token(self._store, key, token), None)

    async def lease(self, key: str, owner: str, seconds: float) -> bool:
        """Take or extend a lease; return False if another owner has it."""
        return await self._attempt(self._store.put_value(key, owner, seconds, absent=True), True)

    async def release(self, key: str, owner: str) -> None:
        """End a lease, if the owner still has it."""
        await self._attempt(self._store.drop_value(key, owner), None)

    async def backoff(self, key: str) -> str | None:
        """Return the back-off that was started last."""
        return await self._attempt(self._store.value(key), None)

    async def start_backoff(self, key: str, text: str, seconds: float) -> None:
        """Store a back-off, instead of one before."""
        await self._attempt(self._store.put_value(key, text, seconds), True)

    async def take(self, key: str, limits: Sequence[windows.Window]) -> float:
        """Count a request in all windows and return 0.0, or count none and return the seconds until it is allowed."""
        if key not in self._windows:
            self._windows[key] = windows.Windows(limits, self._clock)
        wait = await self._attempt(self._store.take(key, limits), None)
        if wait is None:
            # What other processes counted is unknown during an outage; this is a lower bound.
            return self._windows[key].try_take()
        if wait == 0.0:
            self._windows[key].try_take()  # counted here, too, for the time of an outage
        return wait

    async def _attempt(self, operation: Awaitable[R], default: R) -> R:
        """Return the result of an operation, or a default while the store is unavailable: logged once."""
        try:
            result = await operation
        except errors.StoreUnavailable as error:
            if not self._unavailable:
                log.warning("token sharing suspended", exc_info=error)
            self._unavailable = True
            return default
        self._unavailable = False
        return result


def stored_token(text: str | None, now: float) -> StoredToken | None:
    """Decode a stored token; None without one, or if it has expired."""
    token = None if text is None else _decode_token(text)
    return None if token is None or token.expires <= now else token


async def put_token(store: Store, key: str, token: StoredToken, now: float) -> None:
    """Store a token until it expires. Raises StoreUnavailable."""
    await store.put_value(key, msgspec.json.encode(token).decode(), token.expires - now)


async def drop_token(store: Store, key: str, token: str) -> None:
    """Delete this token; a newer one stays. Raises StoreUnavailable."""
    text = await store.value(key)
    if text is not None and _decode_token(text).token == token:
        await store.drop_value(key, text)
