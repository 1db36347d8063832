"""What must be well before requests can be answered: the store, the GraphQL service, a token for every application."""

from collections.abc import Awaitable, Callable

from proxy import errors
from proxy.gateway.applications import Applications
from proxy.stores.base import Store
from proxy.upstream.tokens import Credentials
from proxy.web.ops import Check
from proxy.web.outside import Outside


def checks(served: Applications, store: Store, outside: Outside) -> list[Check]:
    """By name, each with the reason why it is not well."""
    applications = served.applications.values()
    return [
        Check("store", _trouble(store.closures)),
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
    return _trouble(lambda: outside.tokens.get(credentials))


def _trouble(attempt: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[str | None]]:
    """What stands in the way of an attempt, in its error's own words."""

    async def trouble() -> str | None:
        try:
            await attempt()
        except errors.ServerError as error:
            return error.message
        return None

    return trouble
