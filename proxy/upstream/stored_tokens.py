"""What processes share in the store for access tokens: the tokens, the lease of who requests one, the back-off after a
failure, the windows in which the identity service counts requests (contract graphql.md §4.1)."""

import hashlib
import json
import math
from dataclasses import dataclass

import msgspec

from proxy import errors
from proxy.kit.clock import Clock, Window
from proxy.store.store import Store
from proxy.upstream.identity import AccessToken, Credentials

RATE_LIMITS = (  # of the identity service, per client id
    Window(2, 1.0),
    Window(200, 15 * 60.0),
    Window(3_000, 12 * 3600.0),
    Window(40_000, 7 * 86_400.0),
)
LEASE_SECONDS = 15.0  # after which another process requests a token: the one before has died
FAILURE_SECONDS_MAX = 15.0  # after other failures, doubling from 1 s; at this rate no window is ever filled
RETRY_AFTER_MAX = 900.0  # seconds of a Retry-After that are waited for


class Backoff(msgspec.Struct, frozen=True):
    """Back-off after a failed token request, the last of `failures` in a row: requests get its error `until` a time, in
    seconds since 1970."""

    kind: str
    message: str
    status: int
    until: float
    failures: int

    def error(self, now: float, *, is_first: bool = False) -> errors.ServerError:
        """Return the error of a request. That of the first that failed may be retried."""
        kind: type[errors.ServerError] = getattr(errors, self.kind)
        error = kind(self.message, retry_after=max(1, math.ceil(self.until - now)))
        error.status = self.status
        error.backing_off = not is_first
        return error


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """Tokens in the store, and what belongs to their requests. Each raises StoreUnavailable.

    Keys are made of digests: they reveal nothing, and a changed secret never finds an old token. That of the
    windows does not depend on the secret, because the identity service counts requests by client id.
    """

    store: Store
    token_url: str
    clock: Clock

    async def token(self, credentials: Credentials) -> AccessToken | None:
        """Return the token of an application; None if there is none, or it has expired."""
        text = await self.store.value(self._key("token", credentials))
        token = None if text is None else msgspec.json.decode(text, type=AccessToken)
        return None if token is None or token.expires <= self.clock.now() else token

    async def keep(self, credentials: Credentials, token: AccessToken) -> None:
        """Store a token until it expires, and end the back-off."""
        seconds = token.expires - self.clock.now()
        await self.store.put_value(self._key("token", credentials), msgspec.json.encode(token).decode(), seconds)
        await self.store.drop_value(self._key("token back-off", credentials))

    async def drop(self, credentials: Credentials, token: str) -> None:
        """Delete a token; a newer one stays."""
        key = self._key("token", credentials)
        text = await self.store.value(key)
        if text is not None and msgspec.json.decode(text, type=AccessToken).token == token:
            await self.store.drop_value(key, text)

    async def take(self, credentials: Credentials) -> float:
        """Count a token request in all windows and return 0.0; or count none and return the seconds until one is
        allowed."""
        return await self.store.take(self._window(credentials), RATE_LIMITS)

    async def arrived(self, credentials: Credentials) -> None:
        """Count the token request from its response on: the identity service counts it from when it arrives."""
        await self.store.take_again(self._window(credentials), RATE_LIMITS)

    def _window(self, credentials: Credentials) -> str:
        return f"token requests {_digest(self.token_url, credentials.client_id)}"

    async def lease(self, credentials: Credentials, owner: str) -> bool:
        """Take the token lease; return False if another process has it."""
        return await self.store.put_value(self._key("token lease", credentials), owner, LEASE_SECONDS, absent=True)

    async def release(self, credentials: Credentials, owner: str) -> None:
        await self.store.drop_value(self._key("token lease", credentials), owner)

    async def backoff(self, credentials: Credentials) -> Backoff | None:
        """Return the back-off that was begun last."""
        text = await self.store.value(self._key("token back-off", credentials))
        return None if text is None else msgspec.json.decode(text, type=Backoff)

    async def back_off(self, credentials: Credentials, backoff: Backoff) -> None:
        text = msgspec.json.encode(backoff).decode()
        # Beyond its end, so that the next failure counts as one more in a row.
        seconds = backoff.until - self.clock.now() + FAILURE_SECONDS_MAX
        await self.store.put_value(self._key("token back-off", credentials), text, seconds)

    def _key(self, kind: str, credentials: Credentials) -> str:
        secret = credentials.client_secret.reveal() if credentials.client_secret else None
        return f"{kind} {_digest(self.token_url, credentials.client_id, secret)}"


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
