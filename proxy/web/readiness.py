"""What must be well before requests can be answered: the store, the GraphQL service, a token for every application."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from proxy import errors
from proxy.gateway.applications import Applications
from proxy.kit.clock import Clock
from proxy.stores.protocols import Store
from proxy.upstream import graphql
from proxy.upstream.auth.identity import Credentials
from proxy.web.ops import Check
from proxy.web.outside import Outside

PROBE_SECONDS = 10.0  # between two probes of a GraphQL service that has not answered with GraphQL


def checks(served: Applications, store: Store, outside: Outside, clock: Clock) -> list[Check]:
    """By name, each with the reason why it is not well."""
    applications = served.applications.values()
    credentials = [each.credentials for each in applications]
    return [
        Check("store", _trouble(store.check_writable)),
        Check("graphql", _GraphQLProbe(outside, credentials, clock).trouble),
        *(Check(f"token {each.name}", _token_trouble(outside, each)) for each in credentials),
    ]


class _GraphQLProbe:
    """Checks that the address of the GraphQL service is that of a GraphQL service.

    Sends an operation that costs no parts until any operation, this one or a client's, is answered with GraphQL, and
    again after an answer that was something else. An open circuit breaker is a reason by itself.
    """

    def __init__(self, outside: Outside, credentials: Sequence[Credentials], clock: Clock) -> None:
        self._outside = outside
        self._credentials = credentials
        self._clock = clock
        self._next = 0.0  # by the monotonic clock
        self._reason: str | None = None
        self._probing = asyncio.Lock()

    async def trouble(self) -> str | None:
        """Why nothing can be asked of the service, None where it can or a token is missing, which is another check."""
        if error := self._outside.breaker.refusal():
            return error.message
        async with self._probing:
            if self._outside.client.proven:
                self._reason = None
            elif self._clock.monotonic() >= self._next and (usable := await self._with_token()) is not None:
                self._next = self._clock.monotonic() + PROBE_SECONDS
                self._reason = "the GraphQL service did not answer the last probe"
                self._reason = await self._probe(usable)
            return self._reason

    async def _with_token(self) -> Credentials | None:
        """The first application that has a token which was not refused."""
        for each in self._credentials:
            try:
                await self._outside.tokens.get(each)
            except errors.ServerError:
                continue
            if self._outside.tokens.refusal(each) is None:
                return each
        return None

    async def _probe(self, credentials: Credentials) -> str | None:
        try:
            await self._outside.client.execute(graphql.PROBE, credentials)
        except errors.CredentialsRefused:  # a reason of the token's own check
            return None
        except errors.ServerError as error:
            return None if self._outside.client.proven else error.message
        except errors.ClientError:  # the service asks for patience: it is there
            return None
        return None


def _token_trouble(outside: Outside, credentials: Credentials) -> Callable[[], Awaitable[str | None]]:
    """That there is a token is not enough where the last was refused: then one must have been taken since.

    One at a time tries it; after a refusal the tokens' own pause holds off the others.
    """
    trying = asyncio.Lock()
    no_token = _trouble(lambda: outside.tokens.get(credentials))

    async def trouble() -> str | None:
        async with trying:
            reason = await no_token()
            refusal = outside.tokens.refusal(credentials)
            if reason is not None or refusal is None:
                return reason
            try:
                await outside.client.execute(graphql.PROBE, credentials)
            except errors.BridgeError:
                return refusal.message
            return None

    return trouble


def _trouble(attempt: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[str | None]]:
    """What stands in the way of an attempt, in its error's own words."""

    async def trouble() -> str | None:
        try:
            await attempt()
        except errors.ServerError as error:
            return error.message
        return None

    return trouble
