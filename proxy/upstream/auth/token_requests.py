"""Requests for access tokens: one at a time over all workers and machines, within the rate limit, with back-off.

Used by token_cache.py, which has one call per application in flight in this process. Between processes a lease in the
store decides: its owner sends the request, the others wait until it has stored a token or a failure. It is extended
while its owner lives, so that a worker that died delays the others only briefly.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.store.store import Store
from proxy.telemetry import metrics as metering
from proxy.upstream import policies
from proxy.upstream.auth import backoff, identity, token_store
from proxy.upstream.auth.identity import AccessToken, Credentials

RATE_LIMITS = (  # of the identity service, per client id (contract graphql.md §4.1)
    windows.Window(2, 1.0),
    windows.Window(200, 15 * 60.0),
    windows.Window(3_000, 12 * 3600.0),
    windows.Window(40_000, 7 * 86_400.0),
)

RATE_LIMIT_WAIT_MAX = 1.0  # seconds that a caller waits for the rate limit
LEASE_SECONDS = 10.0  # that the lease outlives its owner
POLL_SECONDS = 0.05  # between two looks for the result of another worker; plus jitter
LEASE_WAIT_MAX = 60.0  # seconds

log = structlog.get_logger()


class TokenRequester:
    """Requests tokens for all applications. `sleep` is replaced in tests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token_url: str,
        scope: str,
        *,
        store: Store,
        breaker: policies.CircuitBreaker,
        clock: clocks.Clock,
        rng: random.Random,
        metrics: metering.Metrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._token_url = token_url
        self._scope = scope
        self._store = token_store.TokenValues(store, clock)
        self._breaker = breaker
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._sleep = sleep
        self._owner = f"{rng.getrandbits(64):016x}"
        self._backoffs: dict[Credentials, backoff.Backoff] = {}  # of applications whose last request has failed

    async def get(self, credentials: Credentials, unwanted: str | None) -> AccessToken:
        """Return a token other than `unwanted`, of another worker or a new one. Raises the errors of TokenCache.get."""
        # This process knows: no need to ask the store with every request during a back-off.
        active = self._backoffs.get(credentials)
        if active is not None and active.is_active(self._clock.now()):
            raise active.error(self._clock.now())
        keys = token_store.keys(self._token_url, self._scope, credentials)
        waited = 0.0
        while waited < LEASE_WAIT_MAX:
            if token := await self._shared_result(credentials, keys, unwanted):
                return token
            if await self._store.lease(keys.lease, self._owner, LEASE_SECONDS):
                return await self._request_with_lease(credentials, keys, unwanted)
            wait = POLL_SECONDS * (1 + self._rng.random())
            await self._sleep(wait)
            waited += wait
        raise errors.UpstreamUnreachable(f"application {credentials.name} waits for another worker to get its token")

    async def forget(self, credentials: Credentials, token: str) -> None:
        """Delete a refused token from the store, for all workers."""
        keys = token_store.keys(self._token_url, self._scope, credentials)
        await self._store.drop_token(keys.token, token)

    async def back_off(self, credentials: Credentials, error: errors.ServerError) -> backoff.Backoff:
        """Start a back-off after an error, in all workers."""
        before = self._backoffs.get(credentials)
        started = backoff.after(error, before.failures + 1 if before else 1, self._clock.now())
        self._backoffs[credentials] = started
        keys = token_store.keys(self._token_url, self._scope, credentials)
        await self._store.start_backoff(keys.backoff, started.encode(), started.until - started.since)
        return started

    async def _shared_result(
        self, credentials: Credentials, keys: token_store.StoreKeys, unwanted: str | None
    ) -> AccessToken | None:
        """Return the token that another worker stored; raise its failure during the back-off."""
        stored = await self._store.token(keys.token)
        if stored is not None and stored.token != unwanted:
            self._backoffs.pop(credentials, None)
            return AccessToken(*stored)
        encoded = await self._store.backoff(keys.backoff)
        active = None if encoded is None else backoff.decode(encoded)
        if active is not None and active.is_active(self._clock.now()):
            self._backoffs[credentials] = active
            raise active.error(self._clock.now())
        if refusal := self._breaker.refusal():
            raise refusal
        return None

    async def _request_with_lease(
        self, credentials: Credentials, keys: token_store.StoreKeys, unwanted: str | None
    ) -> AccessToken:
        """Send a request during the lease, unless its owner before stored a result."""
        try:
            # Looked up again: the owner before may have stored a token just before it released the lease.
            token = await self._shared_result(credentials, keys, unwanted)
            return token or await self._extending_lease(keys, self._request_and_share(credentials, keys))
        finally:
            await self._store.release(keys.lease, self._owner)

    async def _extending_lease(
        self, keys: token_store.StoreKeys, work: Coroutine[Any, Any, AccessToken]
    ) -> AccessToken:
        task = asyncio.create_task(work, name="token request")
        try:
            # Three times in a lease: one may be late or lost.
            while not (await asyncio.wait((task,), timeout=LEASE_SECONDS / 3))[0]:
                await self._store.lease(keys.lease, self._owner, LEASE_SECONDS)
        finally:
            task.cancel()
            await asyncio.wait((task,))
        return task.result()

    async def _request_and_share(self, credentials: Credentials, keys: token_store.StoreKeys) -> AccessToken:
        """Request a token and store it for all workers; store a failure before the lease ends."""
        # What the metric says if neither branch below is reached.
        outcome = "cancelled"
        try:
            token = await self._request(credentials, keys)
        except errors.ServerError as error:
            outcome = type(error).__name__
            log.warning("token request failed", application=credentials.name, exc_info=error)
            raise (await self.back_off(credentials, error)).error(self._clock.now(), repeated=False) from error
        else:
            outcome = "ok"
        finally:
            self._metrics.token_requests.labels(credentials.name, outcome).inc()
        self._backoffs.pop(credentials, None)
        log.info("token refreshed", application=credentials.name, expires_in=round(token.expires - self._clock.now()))
        await self._store.keep_token(keys.token, token_store.StoredToken(token.token, token.expires))
        return token

    async def _request(self, credentials: Credentials, keys: token_store.StoreKeys) -> AccessToken:
        # Before the breaker: its trial request must not spend its turn on waiting.
        await self._wait_for_rate_limit(credentials, keys)
        self._breaker.admit()
        sent = self._clock.now()
        try:
            reply = await identity.request_token(self._session, self._token_url, self._scope, credentials)
        except (errors.UpstreamUnreachable, errors.UpstreamUnreadable) as error:
            if not isinstance(error, errors.DeadlineExceeded):
                self._breaker.failed()
            raise
        if identity.is_failure(reply):
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return identity.parse(reply, credentials.name, sent)

    async def _wait_for_rate_limit(self, credentials: Credentials, keys: token_store.StoreKeys) -> None:
        """Count a request against the rate limit; waits shortly if necessary, and raises TokenLimit for longer."""
        waited = 0.0
        while wait := await self._store.take(keys.windows, RATE_LIMITS):
            waited += wait
            if waited > RATE_LIMIT_WAIT_MAX:
                raise errors.TokenLimit(
                    f"application {credentials.name} has asked for too many tokens",
                    retry_after=math.ceil(wait),
                )
            await self._sleep(wait)
