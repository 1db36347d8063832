"""Store of access tokens, shared by workers, restarts and machines: its protocol, a fallback, and encryption.

Used by token_requests.py. The stores of proxy/stores implement the protocol; gateway/assembly.py passes one in.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.upstream.auth.identity import Credentials

log = structlog.get_logger()


class TokenStore(Protocol):
    """Store with atomic operations. Times are seconds since 1970. Each method may raise StoreUnavailable."""

    async def take(self, key: str, windows: Sequence[windows.Window]) -> float:
        """Count a request in all windows and return 0.0, or count none and return the seconds until it is allowed."""

    async def token(self, key: str) -> tuple[str, float] | None:
        """Return the text stored for `key` and its expiry; None if there is none or it has expired."""

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        """Store a text until its expiry."""

    async def drop_token(self, key: str, token: str) -> None:
        """Delete this text; a newer one stays."""

    async def cooldown(self, key: str) -> str | None:
        """Return the reason of the cooldown that is active; None if there is none."""

    async def start_cooldown(self, key: str, reason: str, until: float) -> None:
        """Start a cooldown, or replace the current one."""

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        """Take or extend the lock for so many seconds; False if another owner has it."""

    async def unlock(self, name: str, owner: str) -> None:
        """Release the lock, if the owner still has it."""


class StoreKeys(NamedTuple):
    """Keys in the store for an application's token, lock, back-off and request log."""

    token: str
    lock: str
    backoff: str
    rate_limit: str


def keys(token_url: str, scope: str, credentials: Credentials) -> StoreKeys:
    """Return keys made of digests: they reveal nothing, and a changed secret or scope never finds an old token.

    The key of the rate limit does not depend on the secret, because the identity service counts requests by client id.
    """
    secret = credentials.client_secret.reveal() if credentials.client_secret else None
    digest = _digest(token_url, scope, credentials.client_id, secret)
    rate_limit = f"windows:{_digest(token_url, credentials.client_id)}"
    return StoreKeys(f"token:{digest}", f"lock:{digest}", f"cooldown:{digest}", rate_limit)


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class FallbackTokenStore:
    """Store that works without the shared one while that is unavailable: no stored tokens, every lock granted, and the
    rate limit as this process knows it.

    Without a token no request can be served, so each worker then requests its own_windows.
    """

    def __init__(self, store: TokenStore, clock: clocks.Clock) -> None:
        self._store = store
        self._clock = clock
        self._windows: dict[str, windows.Windows] = {}
        self._unavailable = False

    async def take(self, key: str, limits: Sequence[windows.Window]) -> float:
        own_windows = self._windows.get(key)
        if own_windows is None:
            own_windows = self._windows[key] = windows.Windows(limits, self._clock)
        try:
            wait = await self._store.take(key, limits)
        except errors.StoreUnavailable as error:
            self._report(error)
            # What the shared store counted elsewhere is unknown during an outage; this is a lower bound.
            return own_windows.try_take()
        self._unavailable = False
        if wait == 0.0:
            own_windows.try_take()  # counted here, too, for the time of an outage
        return wait

    async def token(self, key: str) -> tuple[str, float] | None:
        try:
            stored = await self._store.token(key)
        except errors.StoreUnavailable as error:
            self._report(error)
            return None
        self._unavailable = False
        return stored

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        try:
            await self._store.keep_token(key, token, expires)
        except errors.StoreUnavailable as error:
            self._report(error)

    async def drop_token(self, key: str, token: str) -> None:
        try:
            await self._store.drop_token(key, token)
        except errors.StoreUnavailable as error:
            self._report(error)

    async def cooldown(self, key: str) -> str | None:
        try:
            return await self._store.cooldown(key)
        except errors.StoreUnavailable as error:
            self._report(error)
            return None

    async def start_cooldown(self, key: str, reason: str, until: float) -> None:
        try:
            await self._store.start_cooldown(key, reason, until)
        except errors.StoreUnavailable as error:
            self._report(error)

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        try:
            return await self._store.lock(name, owner, seconds)
        except errors.StoreUnavailable as error:
            self._report(error)
            return True

    async def unlock(self, name: str, owner: str) -> None:
        try:
            await self._store.unlock(name, owner)
        except errors.StoreUnavailable as error:
            self._report(error)

    def _report(self, error: errors.StoreUnavailable) -> None:
        """Log the beginning of an outage, once."""
        if not self._unavailable:
            log.warning("token sharing suspended", exc_info=error)
        self._unavailable = True
