"""What tokens share over workers, restarts and machines, and what is done while that cannot be reached.

Used by acquisition.py. The stores themselves stand beside this room and are not known here: the composition root hands
one in that has these operations.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.upstream.identity import Credentials

log = structlog.get_logger()


class TokenStore(Protocol):
    """Atomic over all who use the same one. Times are seconds since 1970. Each may raise StoreUnavailable."""

    async def take(self, key: str, windows: Sequence[windows.Window]) -> float:
        """0.0: a request is taken from every window. Else none is: the seconds until it would be."""

    async def token(self, key: str) -> tuple[str, float] | None:
        """The text kept for `key` and its end; None where there is none or it has ended."""

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        """Keep a text until its end."""

    async def drop_token(self, key: str, token: str) -> None:
        """Forget this very text; a newer one stays."""

    async def cooldown(self, key: str) -> str | None:
        """Return the reason of the cooldown that holds now; None where none does."""

    async def start_cooldown(self, key: str, reason: str, until: float) -> None:
        """Start a cooldown, or replace the one there is."""

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        """Whether `owner` has the lock now, for so long. Who has it already has it anew."""

    async def unlock(self, name: str, owner: str) -> None:
        """Give the lock back, if it is still the owner's."""


class Keys(NamedTuple):
    """Under what an application's token, its turn, its last failure and its windows are kept."""

    token: str
    turn: str
    pause: str
    windows: str


def keys(token_url: str, scope: str, credentials: Credentials) -> Keys:
    """Digests: nothing can be read from them, and a changed secret or scope leads to no old token.

    The service counts requests by client, so the windows outlive a change of secret.
    """
    secret = credentials.client_secret.reveal() if credentials.client_secret else None
    own = _digest(token_url, scope, credentials.client_id, secret)
    return Keys(f"token:{own}", f"turn:{own}", f"pause:{own}", f"windows:{_digest(token_url, credentials.client_id)}")


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class OwnStore:
    """A store, and while it is away this process alone: it has no tokens, every turn, and windows of its own.

    A proxy without a token can do nothing, so it is asked for all the same: once a worker instead of once, and never
    beyond the windows as this process knows them.
    """

    def __init__(self, store: TokenStore, clock: clocks.Clock) -> None:
        self._store = store
        self._clock = clock
        self._windows: dict[str, windows.Windows] = {}
        self._away = False

    async def take(self, key: str, limits: Sequence[windows.Window]) -> float:
        own = self._windows.get(key)
        if own is None:
            own = self._windows[key] = windows.Windows(limits, self._clock)
        try:
            wait = await self._store.take(key, limits)
        except errors.StoreUnavailable as error:
            self._is_away(error)
            return own.try_take()
        self._away = False
        if wait == 0.0:
            own.try_take()  # known here too, for when the store goes away
        return wait

    async def token(self, key: str) -> tuple[str, float] | None:
        try:
            found = await self._store.token(key)
        except errors.StoreUnavailable as error:
            self._is_away(error)
            return None
        self._away = False
        return found

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        try:
            await self._store.keep_token(key, token, expires)
        except errors.StoreUnavailable as error:
            self._is_away(error)

    async def drop_token(self, key: str, token: str) -> None:
        try:
            await self._store.drop_token(key, token)
        except errors.StoreUnavailable as error:
            self._is_away(error)

    async def cooldown(self, key: str) -> str | None:
        try:
            return await self._store.cooldown(key)
        except errors.StoreUnavailable as error:
            self._is_away(error)
            return None

    async def start_cooldown(self, key: str, reason: str, until: float) -> None:
        try:
            await self._store.start_cooldown(key, reason, until)
        except errors.StoreUnavailable as error:
            self._is_away(error)

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        try:
            return await self._store.lock(name, owner, seconds)
        except errors.StoreUnavailable as error:
            self._is_away(error)
            return True

    async def unlock(self, name: str, owner: str) -> None:
        try:
            await self._store.unlock(name, owner)
        except errors.StoreUnavailable as error:
            self._is_away(error)

    def _is_away(self, error: errors.StoreUnavailable) -> None:
        """Say so once an outage."""
        if not self._away:
            log.warning("token sharing suspended", exc_info=error)
        self._away = True
