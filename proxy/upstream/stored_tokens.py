"""What processes share in the store for the access token of an application: the token, the lease of who requests one,
the back-off after a failure, the windows in which the identity service counts requests (contract graphql.md §4.1)."""

import hashlib
import json
import math

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
REFUSED_SECONDS = 30.0  # of back-off after refused credentials
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


class StoredToken:
    """Token of an application in the store, and what belongs to its requests. Each raises StoreUnavailable.

    Keys are made of digests: they reveal nothing, and a changed secret never finds an old token. That of the windows is
    made of the client id alone, because the limits belong to it.
    """

    def __init__(self, store: Store, token_url: str, credentials: Credentials, clock: Clock) -> None:
        self._store, self._clock = store, clock
        secret = credentials.client_secret.reveal() if credentials.client_secret else None
        digest = _digest(token_url, credentials.client_id, secret)
        self._token, self._lease, self._backoff = f"token {digest}", f"token lease {digest}", f"token back-off {digest}"
        self._window = f"token requests {_digest(token_url, credentials.client_id)}"

    async def read(self) -> tuple[AccessToken | None, Backoff | None]:
        """Return the token, None if there is none, or it has expired; and the back-off that was begun last."""
        token_text, backoff_text = await self._store.values([self._token, self._backoff])
        token = None if token_text is None else msgspec.json.decode(token_text, type=AccessToken)
        backoff = None if backoff_text is None else msgspec.json.decode(backoff_text, type=Backoff)
        return None if token is None or token.expires <= self._clock.now() else token, backoff

    async def keep(self, token: AccessToken) -> None:
        """Store a token until it expires, and end the back-off."""
        seconds = token.expires - self._clock.now()
        await self._store.put_value(self._token, msgspec.json.encode(token).decode(), seconds)
        await self._store.drop_value(self._backoff)

    async def drop(self, token: str | None = None) -> None:
        """Delete the token; with `token` only if it is that one."""
        text = await self._store.value(self._token)
        if text is not None and token in (None, msgspec.json.decode(text, type=AccessToken).token):
            await self._store.drop_value(self._token, text)

    async def take(self) -> float:
        """Count a token request in all windows and return 0.0; or count none and return the seconds until one is
        allowed."""
        return await self._store.take(self._window, RATE_LIMITS)

    async def arrived(self) -> None:
        """Count the token request from its response on: the identity service counts it from when it arrives."""
        await self._store.take_again(self._window, RATE_LIMITS)

    async def lease(self, owner: str) -> bool:
        """Take the token lease; return False if another process has it."""
        return await self._store.put_value(self._lease, owner, LEASE_SECONDS, absent=True)

    async def release(self, owner: str) -> None:
        await self._store.drop_value(self._lease, owner)

    async def back_off(self, error: errors.ServerError) -> Backoff:
        """Begin a back-off after a failure, the longer the more there were in a row."""
        before = (await self.read())[1]
        failures = before.failures + 1 if before else 1
        if isinstance(error, errors.CredentialsRefused):
            seconds = REFUSED_SECONDS
        elif error.retry_after is not None:
            seconds = max(1.0, min(error.retry_after, RETRY_AFTER_MAX))
        else:
            seconds = min(FAILURE_SECONDS_MAX, 2.0 ** min(failures - 1, 10))
        backoff = Backoff(type(error).__name__, error.message, error.status, self._clock.now() + seconds, failures)
        # Beyond its end, so that the next failure counts as one more in a row.
        text = msgspec.json.encode(backoff).decode()
        await self._store.put_value(self._backoff, text, seconds + FAILURE_SECONDS_MAX)
        return backoff


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
