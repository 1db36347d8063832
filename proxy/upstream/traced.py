"""The GraphQL client with a span around every operation; made instead of the plain one where tracing is on."""

from typing import Any, TypeVar

from proxy import model
from proxy.telemetry import tracing as tracers
from proxy.upstream import classify, graphql, tokens

T = TypeVar("T")


class TracedGraphQLClient(graphql.GraphQLClient):
    """The same client; `tracing` stays open for as long as it is used."""

    def __init__(self, *arguments: Any, tracing: tracers.Tracing, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tracing = tracing

    async def ask(
        self,
        operation: classify.Operation[T],
        credentials: tokens.Credentials,
        since: float | None = None,
        beside: list[model.GraphQLError] | None = None,
    ) -> T:
        """The operation's data, as of the plain client."""
        with self._tracing.operation(operation.name):
            return await super().ask(operation, credentials, since, beside)
