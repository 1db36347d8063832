"""Tokens, kept for their lives, asked for once. A passive store: callers report the exact token that failed.

One request per application is under way at a time; a token is renewed in the background before it ends and
never used after; the service's request windows are kept on this side (contract graphql.md §4.1). After a
failure the service is left in peace for a while: a flood of v3 requests must not become one of token
requests.
"""

import asyncio
import copy
import math
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import aiohttp
import cachetools
import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import single_flight, windows
from proxy.telemetry import metrics as metering
from proxy.upstream import identity
from proxy.upstream.identity import Credentials

__all__ = ["WINDOWS", "Credentials", "Tokens"]

WINDOWS = (
    windows.Window(2, 1.0),
    windows.Window(200, 15 * 60.0),
    windows.Window(3_000, 12 * 3600.0),
    windows.Window(40_000, 7 * 86_400.0),
)

EARLY = 300.0  # seconds before its end that a token is renewed, as the vendor's own client does; plus jitter
WAIT_MAX = 1.0  # seconds that a caller is made to wait for a window
REFUSED_PAUSE = 30.0  # seconds without a new try after refused credentials, or a failed renewal
FAILED_PAUSE_MAX = 15.0  # the same for other failures, growing from 1 s; at this pace no window is ever filled
TOLD_PAUSE_MAX = 900.0  # seconds that a Retry-After is believed without asking again

_APPLICATIONS_MAX = 10_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A grant and when to renew it. Times are seconds since 1970."""

    grant: identity.Grant
    due: float


@dataclass(frozen=True, slots=True)
class _Pause:
    """An error that stands for further ones until a moment; `since` is when it happened."""

    error: errors.ServerError
    since: float
    until: float

    def again(self, now: float) -> errors.ServerError:
        """A fresh error for the next caller, with what is left of the wait."""
        told = self.error.retry_after
        end = self.until if told is None else self.since + told
        fresh = copy.copy(self.error)
        fresh.retry_after = max(1, math.ceil(end - now))
        return fresh


class Tokens:
    """The tokens of all applications. `sleep` is asyncio's, handed in so that a test need not wait."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token_url: str,
        scope: str,
        *,
        clock: clocks.Clock,
        rng: random.Random,
        metrics: metering.Metrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._token_url = token_url
        self._scope = scope
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._sleep = sleep
        self._kept: cachetools.TLRUCache[Credentials, _Kept] = cachetools.TLRUCache(
            _APPLICATIONS_MAX, lambda _, kept, __: kept.grant.expires, timer=clock.now
        )
        self._pauses: cachetools.TLRUCache[Credentials, _Pause] = cachetools.TLRUCache(
            _APPLICATIONS_MAX, lambda _, pause, __: pause.until, timer=clock.now
        )
        self._failures: dict[Credentials, int] = defaultdict(int)
        self._windows: dict[str | None, windows.Windows] = defaultdict(lambda: windows.Windows(WINDOWS, clock))
        self._flights: single_flight.SingleFlight[Credentials, identity.Grant] = single_flight.SingleFlight("token")

    async def get(self, credentials: Credentials) -> str:
        """A token that is good at this moment.

        Raises TokenLimit, CredentialsRefused, UpstreamUnreachable, UpstreamUnreadable or UpstreamFault.
        """
        try:
            kept = self._kept[credentials]  # a get() would look twice
        except KeyError:
            return (await self._flights.run(credentials, lambda: self._fetch(credentials))).token
        if self._clock.now() >= kept.due:
            self._flights.start(credentials, lambda: self._fetch(credentials))
        return kept.grant.token

    def rejected(self, credentials: Credentials, token: str) -> None:
        """The service did not take this very token. A newer one stays."""
        kept = self._kept.get(credentials)
        if kept is not None and kept.grant.token == token:
            del self._kept[credentials]

    def refused(self, credentials: Credentials, error: errors.CredentialsRefused) -> None:
        """Fresh tokens are not taken either: ask for no more of them for a while."""
        self._pause(credentials, error)

    async def close(self) -> None:
        """End what is under way."""
        await self._flights.close()

    async def _fetch(self, credentials: Credentials) -> identity.Grant:
        pause = self._pauses.get(credentials)
        if pause is not None:
            raise pause.again(self._clock.now())
        outcome = "cancelled"
        try:
            grant = await self._ask(credentials)
        except Exception as error:
            outcome = type(error).__name__
            self._failed(credentials, error)
            raise
        else:
            outcome = "ok"
            self._keep(credentials, grant)
            self._metrics.token_age.mark(credentials.name)
            return grant
        finally:
            self._metrics.token_requests[credentials.name, outcome] += 1

    async def _ask(self, credentials: Credentials) -> identity.Grant:
        await self._take(credentials)
        asked = self._clock.now()
        reply = await identity.ask(self._session, self._token_url, self._scope, credentials)
        return identity.understand(reply, credentials.name, asked)

    async def _take(self, credentials: Credentials) -> None:
        """One request out of the windows; a short wait is waited, a longer one is an error."""
        limits = self._windows[credentials.client_id]
        waited = 0.0
        while wait := limits.try_take():
            waited += wait
            if waited > WAIT_MAX:
                raise errors.TokenLimit(
                    f"application {credentials.name} has asked for too many tokens",
                    retry_after=math.ceil(wait),
                )
            await self._sleep(wait)

    def _keep(self, credentials: Credentials, grant: identity.Grant) -> None:
        """Renewal is due between one and two leads before the end; a short life has a short lead."""
        lead = min(EARLY, (grant.expires - self._clock.now()) / 4)
        self._kept[credentials] = _Kept(grant, grant.expires - lead * (1 + self._rng.random()))
        self._failures.pop(credentials, None)

    def _failed(self, credentials: Credentials, error: Exception) -> None:
        """Say so, and leave the service in peace: also where a kept token was only to be renewed."""
        log.warning("no token", application=credentials.name, exc_info=error)
        until = self._clock.now() + REFUSED_PAUSE
        if isinstance(error, errors.ServerError):
            until = max(until, self._pause(credentials, error))
        kept = self._kept.get(credentials)
        if kept is not None:
            self._kept[credentials] = replace(kept, due=until)

    def _pause(self, credentials: Credentials, error: errors.ServerError) -> float:
        """Let the error stand for further ones; until when, in seconds since 1970."""
        now = self._clock.now()
        self._failures[credentials] += 1
        if isinstance(error, errors.CredentialsRefused):
            seconds = REFUSED_PAUSE
        elif error.retry_after is not None:
            seconds = min(error.retry_after, TOLD_PAUSE_MAX)
        else:
            seconds = min(FAILED_PAUSE_MAX, 2.0 ** min(self._failures[credentials] - 1, 10))
        self._pauses[credentials] = _Pause(error, now, now + seconds)
        return now + seconds
