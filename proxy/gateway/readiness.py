"""Conditions of readiness: the store, the GraphQL service and the access token of every application can be used."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from proxy import errors
from proxy.gateway.services import UpstreamServices
from proxy.kit.clock import Clock
from proxy.upstream import sending
from proxy.upstream.identity import Credentials

PROBE_SECONDS = 10.0  # between two probes of a GraphQL service that has not responded with GraphQL


FailureReason = Callable[[], Awaitable[str | None]]  # None: the condition is met


def checks(
    credentials: Sequence[Credentials], write: Callable[[], Awaitable[object]], services: UpstreamServices, clock: Clock
) -> dict[str, FailureReason]:
    """Return the checks of all conditions by name. `write` raises StoreUnavailable if the store cannot be written."""
    tokens = {f"token {owner.name}": _token_check(services, owner) for owner in credentials}
    return {"store": _failure_of(write), "graphql": _GraphQLProbe(services, credentials, clock).failure, **tokens}


class _GraphQLProbe:
    """Check that a GraphQL service responds at the configured address.

    Sends an operation that costs no parts until any operation, this one or a client's, gets a GraphQL response, and
    again after a response that was not GraphQL. The check fails, too, while the circuit breaker is open.
    """

    def __init__(self, services: UpstreamServices, credentials: Sequence[Credentials], clock: Clock) -> None:
        self._services = services
        self._credentials = credentials
        self._clock = clock
        self._next = 0.0  # by the monotonic clock
        self._reason: str | None = None
        self._probing = asyncio.Lock()

    async def failure(self) -> str | None:
        """Return why no operation can be sent; None if one can, or if a token is missing, which is a check of its
        own."""
        if error := self._services.breaker.refusal():
            return error.message
        # Balancers check often: one probe at a time, and the others get its result.
        async with self._probing:
            if self._services.sender.proven:
                self._reason = None
            elif self._clock.monotonic() >= self._next and (usable := await self._with_token()) is not None:
                self._next = self._clock.monotonic() + PROBE_SECONDS
                # Stands if the probe is cancelled by the time limit of the check.
                self._reason = "the GraphQL service did not respond to the last probe"
                self._reason = await self._probe(usable)
            return self._reason

    async def _with_token(self) -> Credentials | None:
        """Return the first application with a token that the service has not refused."""
        for credentials in self._credentials:
            try:
                await self._services.tokens.get(credentials)
            except errors.ServerError:
                continue
            if self._services.tokens.refusal(credentials) is None:
                return credentials
        return None

    async def _probe(self, credentials: Credentials) -> str | None:
        try:
            await self._services.sender.send(sending.PROBE, credentials, PROBE_SECONDS)
        except errors.CredentialsRefused:  # the token's own check reports it
            return None
        except errors.ServerError as error:
            return None if self._services.sender.proven else error.message
        except errors.ClientError:  # a rate limit: the service is there
            return None
        return None


def _token_check(services: UpstreamServices, credentials: Credentials) -> FailureReason:
    """Check that there is a token, and that it works if the previous one was refused.

    One check at a time tries it; after a refusal the token cache's back-off delays the next.
    """
    trying = asyncio.Lock()
    no_token = _failure_of(lambda: services.tokens.get(credentials))

    async def failure() -> str | None:
        async with trying:
            reason = await no_token()
            refusal = services.tokens.refusal(credentials)
            if reason is not None or refusal is None:
                return reason
            try:
                await services.sender.send(sending.PROBE, credentials, PROBE_SECONDS)
            except errors.BridgeError:
                return refusal.message
            return None

    return failure


def _failure_of(attempt: Callable[[], Awaitable[object]]) -> FailureReason:
    """Check that runs `attempt`; the reason is the message of its ServerError."""

    async def failure() -> str | None:
        try:
            await attempt()
        except errors.ServerError as error:
            return error.message
        return None

    return failure
