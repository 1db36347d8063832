"""The events that a subscription is about, from the resolver that listens to them."""

from collections.abc import AsyncGenerator
from typing import Any, cast

from graphql import ExecutionResult
from graphql.execution.execute import create_source_event_stream

from proxy.sandbox.graphql import executor, problems


async def events(prepared: executor.SupplyExecutor) -> AsyncGenerator[Any, None]:
    """What the field at the root listens to; it is listening when this is over. The caller closes it. Raises
    RequestError where there is nothing to listen to."""
    found = create_source_event_stream(prepared)
    if prepared.is_awaitable(found):
        found = await found
    if isinstance(found, ExecutionResult):
        errors = [problems.executed(error) for error in found.errors or ()]
        raise problems.RequestError(200, errors, null_data=True)
    return cast(AsyncGenerator[Any, None], found)
