"""What must be well before requests can be answered: the store, the GraphQL service, a token for every application."""

import asyncio
from collections.abc import Awaitable, Callable

from proxy import errors
from proxy.gateway.applications import Applications
from proxy.stores.base import Store
from proxy.upstream import trial
from proxy.upstream.tokens import Credentials
from proxy.web.ops import Check
from proxy.web.outside import Outside


def checks(served: Applications, store: Store, outside: Outside) -> list[Check]:
    """By name, each with the reason why it is not well."""
    applications = served.applications.values()
    return [
        Check("store", _trouble(store.check_writable)),
        Check("graphql", _refusal(outside)),
        *(Check(f"token {each.name}", _token_trouble(outside, each.credentials)) for each in applications),
    ]


def _refusal(outside: Outside) -> Callable[[], Awaitable[str | None]]:
    """A service that has failed too often is not asked."""

    async def refusal() -> str | None:
        error = outside.breaker.refusal()
        return None if error is None else error.message

    return refusal


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
                await outside.client.ask(trial.TRIAL, credentials)
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
