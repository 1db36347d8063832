"""Tokens, kept for their lives. A passive store: callers report the exact token that failed.

A token is renewed in the background before it ends and never used after. How one is got, once for all tasks, workers
and machines, is acquisition.py's business (contract graphql.md §4.1).
"""

import asyncio
import random
from dataclasses import dataclass, replace

import cachetools
import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import single_flight
from proxy.telemetry import metrics as metering
from proxy.upstream import acquisition, identity, pauses
from proxy.upstream.identity import Credentials

__all__ = ["Credentials", "Tokens"]

EARLY = 300.0  # seconds before its end that a token is renewed, as the vendor's own client does; plus jitter

_APPLICATIONS_MAX = 10_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A grant and when to renew it. Times are seconds since 1970."""

    grant: identity.Grant
    due: float


class Tokens:
    """The tokens of all applications."""

    def __init__(
        self, source: acquisition.Acquisition, *, clock: clocks.Clock, rng: random.Random, metrics: metering.Metrics
    ) -> None:
        self._source = source
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._kept: cachetools.TLRUCache[Credentials, _Kept] = cachetools.TLRUCache(
            _APPLICATIONS_MAX, lambda _, kept, __: kept.grant.expires, timer=clock.now
        )
        self._spoilt: dict[Credentials, str] = {}
        self._taken: dict[Credentials, str] = {}
        self._refused: dict[Credentials, errors.CredentialsRefused] = {}
        self._flights: single_flight.SingleFlight[Credentials, identity.Grant] = single_flight.SingleFlight("token")

    async def get(self, credentials: Credentials, seconds: float | None = None) -> str:
        """A token that is good at this moment, waited for no longer than `seconds`.

        Raises TokenLimit, CredentialsRefused, UpstreamUnreachable, CircuitBreakerOpen, UpstreamUnreadable or
        UpstreamFault.
        """
        try:
            kept = self._kept[credentials]  # a get() would look twice
        except KeyError:
            return (await self._fresh(credentials, seconds)).token
        if self._clock.now() >= kept.due:
            self._flights.start(credentials, lambda: self._fetch(credentials))
        return kept.grant.token

    async def rejected(self, credentials: Credentials, token: str) -> None:
        """The service did not take this very token: forget it, here and in all workers. A newer one stays."""
        kept = self._kept.get(credentials)
        if kept is None or kept.grant.token != token:
            return
        del self._kept[credentials]
        self._spoilt[credentials] = token  # until it has gone from the store, too
        await self._source.forget(credentials, token)

    def taken(self, credentials: Credentials, token: str) -> None:
        """The service has answered to this token."""
        self._taken[credentials] = token
        if self._refused:
            self._refused.pop(credentials, None)

    def refusal(self, credentials: Credentials) -> errors.CredentialsRefused | None:
        """Why nothing can be asked, where credentials or a fresh token were refused and none has been taken since."""
        return self._refused.get(credentials)

    async def refused(self, credentials: Credentials, token: str, error: errors.CredentialsRefused) -> None:
        """A fresh token is not taken either: ask for no more of them for a while.

        Unless it has been taken before: then it has ended early, credentials and settings are good, and the next
        token will do.
        """
        if self._taken.get(credentials) != token:
            self._refused[credentials] = error
            await self._source.pause(credentials, error)

    async def close(self) -> None:
        """End what is under way."""
        await self._flights.close()

    async def _fresh(self, credentials: Credentials, seconds: float | None) -> identity.Grant:
        """One that is asked for; whoever has no time to wait for it leaves it to the next."""
        try:
            async with asyncio.timeout(seconds):
                return await self._flights.run(credentials, lambda: self._fetch(credentials))
        except TimeoutError as error:
            raise errors.UpstreamUnreachable(f"no token of application {credentials.name} in time") from error

    async def _fetch(self, credentials: Credentials) -> identity.Grant:
        """A token other than the one that is to be renewed, or was rejected."""
        kept = self._kept.get(credentials)
        unwanted = kept.grant.token if kept else self._spoilt.get(credentials)
        try:
            grant = await self._source.get(credentials, unwanted)
        except Exception as error:
            if isinstance(error, errors.CredentialsRefused):
                self._refused[credentials] = error  # maybe another worker's, whose pause this one has met
            self._put_off(credentials, error)
            raise
        self._keep(credentials, grant)
        return grant

    def _keep(self, credentials: Credentials, grant: identity.Grant) -> None:
        """Renewal is due between one and two leads before the end; a short life has a short lead."""
        lead = min(EARLY, (grant.expires - self._clock.now()) / 4)
        self._kept[credentials] = _Kept(grant, grant.expires - lead * (1 + self._rng.random()))
        self._spoilt.pop(credentials, None)
        self._metrics.token_age.mark(credentials.name)

    def _put_off(self, credentials: Credentials, error: Exception) -> None:
        """A failed renewal leaves the service in peace: what is kept is used a while longer."""
        if not isinstance(error, errors.ServerError):
            log.error("token request failed", application=credentials.name, exc_info=error)
        told = error.retry_after if isinstance(error, errors.ServerError) else None
        kept = self._kept.get(credentials)
        if kept is not None:
            self._kept[credentials] = replace(kept, due=self._clock.now() + max(pauses.REFUSED, told or 0))
