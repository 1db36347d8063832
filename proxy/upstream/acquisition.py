"""How a token is got: by turns over all workers and machines, within the service's windows, with peace after a failure.

Used by tokens.py, which keeps what comes of it; one call for an application is under way at a time in this process.
Between processes the store decides: who has the turn asks, the others wait until there is a token or a failure to
share. A turn is a lease that is renewed while its holder lives, so a dead one holds nobody up for long.
"""

import asyncio
import math
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import cachetools
import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.telemetry import metrics as metering
from proxy.upstream import identity, pauses, policies, token_store
from proxy.upstream.identity import Credentials, Grant

WINDOWS = (
    windows.Window(2, 1.0),
    windows.Window(200, 15 * 60.0),
    windows.Window(3_000, 12 * 3600.0),
    windows.Window(40_000, 7 * 86_400.0),
)

WAIT_MAX = 1.0  # seconds that a caller is made to wait for a window
LEASE = 10.0  # seconds that a turn outlives its holder
POLL = 0.05  # seconds between two looks for what another worker got; plus jitter
TURN_MAX = 60.0  # seconds that others' turns are waited for

_APPLICATIONS_MAX = 10_000

log = structlog.get_logger()


class Acquisition:
    """Gets tokens for all applications. `sleep` is asyncio's, handed in so that a test need not wait."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token_url: str,
        scope: str,
        *,
        store: token_store.TokenStore,
        breaker: policies.Breaker,
        clock: clocks.Clock,
        rng: random.Random,
        metrics: metering.Metrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._token_url = token_url
        self._scope = scope
        self._store = token_store.OwnStore(store, clock)
        self._breaker = breaker
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._sleep = sleep
        self._owner = f"{rng.getrandbits(64):016x}"
        self._failures: dict[Credentials, int] = defaultdict(int)
        self._pauses: cachetools.TLRUCache[Credentials, pauses.Pause] = cachetools.TLRUCache(
            _APPLICATIONS_MAX, lambda _, pause, __: pause.until, timer=clock.now
        )

    async def get(self, credentials: Credentials, unwanted: str | None) -> Grant:
        """A token that is not `unwanted`: another worker's, or a new one. Raises as tokens.Tokens.get does."""
        pause = self._pauses.get(credentials)
        if pause is not None and pause.holds(self._clock.now()):
            raise pause.error(self._clock.now())
        keys = token_store.keys(self._token_url, self._scope, credentials)
        waited = 0.0
        while waited < TURN_MAX:
            if found := await self._found(credentials, keys, unwanted):
                return found
            if await self._store.lock(keys.turn, self._owner, LEASE):
                return await self._in_turn(credentials, keys, unwanted)
            wait = POLL * (1 + self._rng.random())
            await self._sleep(wait)
            waited += wait
        raise errors.UpstreamUnreachable(f"application {credentials.name} waits for another worker to get its token")

    async def forget(self, credentials: Credentials, token: str) -> None:
        """This very token is worth nothing, to any worker."""
        keys = token_store.keys(self._token_url, self._scope, credentials)
        await self._store.drop_token(keys.token, token)

    async def pause(self, credentials: Credentials, error: errors.ServerError) -> pauses.Pause:
        """Let an error stand for further ones, in all workers."""
        self._failures[credentials] += 1
        pause = pauses.after(error, self._failures[credentials], self._clock.now())
        self._pauses[credentials] = pause
        keys = token_store.keys(self._token_url, self._scope, credentials)
        await self._store.start_cooldown(keys.pause, pause.text(), pause.until)
        return pause

    async def _found(self, credentials: Credentials, keys: token_store.Keys, unwanted: str | None) -> Grant | None:
        """What another worker got: its token, or its failure."""
        kept = await self._store.token(keys.token)
        if kept is not None and kept[0] != unwanted:
            self._failures.pop(credentials, None)
            return Grant(*kept)
        reason = await self._store.cooldown(keys.pause)
        pause = None if reason is None else pauses.read(reason)
        if pause is not None and pause.holds(self._clock.now()):
            self._pauses[credentials] = pause
            self._failures[credentials] = pause.failures
            raise pause.error(self._clock.now())
        if refusal := self._breaker.refusal():
            raise refusal
        return None

    async def _in_turn(self, credentials: Credentials, keys: token_store.Keys, unwanted: str | None) -> Grant:
        """Ask, and hold the turn for as long as that takes. Whoever had it before may have left something."""
        try:
            found = await self._found(credentials, keys, unwanted)
            return found or await self._holding(keys, self._asked(credentials, keys))
        finally:
            await self._store.unlock(keys.turn, self._owner)

    async def _holding(self, keys: token_store.Keys, work: Coroutine[Any, Any, Grant]) -> Grant:
        task = asyncio.create_task(work, name="token request")
        try:
            while not (await asyncio.wait((task,), timeout=LEASE / 3))[0]:
                await self._store.lock(keys.turn, self._owner, LEASE)
        finally:
            task.cancel()
            await asyncio.wait((task,))
        return task.result()

    async def _asked(self, credentials: Credentials, keys: token_store.Keys) -> Grant:
        """A new token, stored for all; or a failure, shared with all before the turn is given back."""
        outcome = "cancelled"
        try:
            grant = await self._ask(credentials, keys)
        except errors.ServerError as error:
            outcome = type(error).__name__
            log.warning("token request failed", application=credentials.name, exc_info=error)
            raise (await self.pause(credentials, error)).error(self._clock.now(), again=False) from error
        else:
            outcome = "ok"
        finally:
            self._metrics.token_requests[credentials.name, outcome] += 1
        self._failures.pop(credentials, None)
        self._report(credentials, grant)
        await self._store.keep_token(keys.token, grant.token, grant.expires)
        return grant

    def _report(self, credentials: Credentials, grant: Grant) -> None:
        """Log a new token, and what does not fit about its times."""
        log.info("token refreshed", application=credentials.name, expires_in=round(grant.expires - self._clock.now()))
        for doubt in grant.doubts:
            if doubt.subject == "clock":
                log.warning("clock skew detected", application=credentials.name, seconds=doubt.seconds)
            else:
                log.warning(
                    "token lifetime mismatch detected",
                    application=credentials.name,
                    claims=doubt.subject,
                    seconds=doubt.seconds,
                )

    async def _ask(self, credentials: Credentials, keys: token_store.Keys) -> Grant:
        await self._take(credentials, keys)
        self._breaker.admit()
        asked = self._clock.now()
        try:
            reply = await identity.ask(self._session, self._token_url, self._scope, credentials)
        except (errors.UpstreamUnreachable, errors.UpstreamUnreadable) as error:
            if not isinstance(error, errors.DeadlineExceeded):
                self._breaker.failed()
            raise
        if identity.is_failure(reply):
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return identity.understand(reply, credentials.name, asked)

    async def _take(self, credentials: Credentials, keys: token_store.Keys) -> None:
        """One request out of the windows; a short wait is waited, a longer one is an error."""
        waited = 0.0
        while wait := await self._store.take(keys.windows, WINDOWS):
            waited += wait
            if waited > WAIT_MAX:
                raise errors.TokenLimit(
                    f"application {credentials.name} has asked for too many tokens",
                    retry_after=math.ceil(wait),
                )
            await self._sleep(wait)
