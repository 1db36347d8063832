"""Cache of access tokens, one per application; callers report a token that the upstream refused.

A token is renewed in the background before it expires, and never used after that. token_requests.py requests one, once
for all tasks, workers and machines (contract graphql.md §4.1).
"""

import random
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.kit import single_flight
from proxy.upstream.auth import backoff, identity, token_requests
from proxy.upstream.auth.identity import Credentials

RENEWAL_LEAD = 300.0  # seconds before expiry that a token is renewed, as the vendor's client does; plus jitter

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _CachedToken:
    """Token, when it was received and when to renew it, in seconds since 1970."""

    token: identity.AccessToken
    received: float
    renew_at: float


class TokenCache:
    """Access tokens of all applications."""

    def __init__(
        self,
        source: token_requests.TokenRequester,
        *,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._source = source
        self._clock = clock
        self._rng = rng
        self._cached: dict[Credentials, _CachedToken] = {}  # one for each configured application
        self._invalid: dict[Credentials, str] = {}
        self._accepted: dict[Credentials, str] = {}
        self._refused: dict[Credentials, errors.CredentialsRefused] = {}
        self._flights: single_flight.SingleFlight[Credentials, identity.AccessToken] = single_flight.SingleFlight(
            "token"
        )

    def adopt(self, replaced: "TokenCache") -> None:
        """Take over the tokens of a cache that this one replaces: of the same identity service, and the same scope."""
        self._cached |= replaced._cached
        self._accepted |= replaced._accepted

    def retain(self, configured: Set[Credentials]) -> None:
        """Forget the tokens of applications that a reload removed."""
        states: tuple[dict[Credentials, Any], ...] = self._cached, self._invalid, self._accepted, self._refused
        for state in states:
            for removed in state.keys() - configured:
                del state[removed]

    def age(self, credentials: Credentials) -> float | None:
        """Return the seconds since a token was received; None without one."""
        cached = self._cached.get(credentials)
        return None if cached is None else max(0.0, self._clock.now() - cached.received)

    async def get(self, credentials: Credentials, seconds: float | None = None) -> str:
        """Return a valid token, requested if necessary; waits at most `seconds` for it.

        Raises TokenLimit, CredentialsRefused, UpstreamUnreachable, CircuitBreakerOpen, UpstreamUnreadable or
        UpstreamFault.
        """
        now = self._clock.now()
        cached = self._cached.get(credentials)
        if cached is None or now >= cached.token.expires:
            return (await self._requested(credentials, seconds)).token
        if now >= cached.renew_at:
            self._flights.start(credentials, lambda: self._fetch(credentials))
        return cached.token.token

    async def invalidate(self, credentials: Credentials, token: str) -> None:
        """Remove a token that the upstream refused, in this and all other workers. A newer one stays."""
        cached = self._cached.get(credentials)
        if cached is None or cached.token.token != token:
            return
        del self._cached[credentials]
        self._invalid[credentials] = token  # not to be taken from the store again, until it is deleted there
        await self._source.forget(credentials, token)

    def mark_accepted(self, credentials: Credentials, token: str) -> None:
        """Record that the upstream accepted this token."""
        self._accepted[credentials] = token
        # Empty nearly always: this runs with every response.
        if self._refused:
            self._refused.pop(credentials, None)

    def refusal(self, credentials: Credentials) -> errors.CredentialsRefused | None:
        """Return the error if the credentials or a new token were refused, and none has been accepted since."""
        return self._refused.get(credentials)

    async def mark_refused(self, credentials: Credentials, token: str, error: errors.CredentialsRefused) -> None:
        """Start a back-off, because the upstream refused a new token, too.

        Not if it accepted this token before: then the token was revoked early, and the next one will be accepted.
        """
        if self._accepted.get(credentials) != token:
            self._refused[credentials] = error
            await self._source.back_off(credentials, error)

    async def close(self) -> None:
        """Cancel the token requests in flight."""
        await self._flights.close()

    async def _requested(self, credentials: Credentials, seconds: float | None) -> identity.AccessToken:
        """Request a token. A caller that runs out of time leaves the request running for the next one."""
        try:
            return await self._flights.run(credentials, lambda: self._fetch(credentials), seconds)
        except TimeoutError as error:
            raise errors.UpstreamUnreachable(f"no token of application {credentials.name} in time") from error

    async def _fetch(self, credentials: Credentials) -> identity.AccessToken:
        """Fetch a token other than the one to be renewed or the one that was refused."""
        cached = self._cached.get(credentials)
        unwanted = cached.token.token if cached else self._invalid.get(credentials)
        try:
            token = await self._source.get(credentials, unwanted)
        except Exception as error:
            if isinstance(error, errors.CredentialsRefused):
                self._refused[credentials] = error  # perhaps that of another worker, whose back-off applies here, too
            self._postpone_renewal(credentials, error)
            raise
        self._store(credentials, token)
        return token

    def _store(self, credentials: Credentials, token: identity.AccessToken) -> None:
        """Cache a token. Renewal is due one to two leads before expiry; a short lifetime has a short lead."""
        # A quarter, so that with jitter a short-lived token is still used for half of its lifetime.
        now = self._clock.now()
        lead = min(RENEWAL_LEAD, (token.expires - now) / 4)
        self._cached[credentials] = _CachedToken(token, now, token.expires - lead * (1 + self._rng.random()))
        self._invalid.pop(credentials, None)

    def _postpone_renewal(self, credentials: Credentials, error: Exception) -> None:
        """Try a failed renewal again later; the cached token is used meanwhile."""
        if not isinstance(error, errors.ServerError):
            log.error("token request failed", application=credentials.name, exc_info=error)
        retry_after = error.retry_after if isinstance(error, errors.ServerError) else None
        cached = self._cached.get(credentials)
        if cached is not None:
            self._cached[credentials] = replace(
                cached, renew_at=self._clock.now() + max(backoff.REFUSED_SECONDS, retry_after or 0)
            )
