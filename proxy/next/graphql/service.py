"""Execution of a GraphQL request: prepare it, resolve its root fields, put the response together (contract graphql.md
§3).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import graphql
import msgspec

from proxy import errors
from proxy.graphql.documents import ClientDocument, DocumentReader, DocumentRequest, InvalidDocumentError
from proxy.next.applications import Client
from proxy.next.features import Features
from proxy.next.free_operations import FreeOperations
from proxy.next.graphql.preparation import Introspection, Preparation, Requested
from proxy.next.graphql.resolving import NULL, Resolver, Value, error_of
from proxy.next.pipeline import Pipeline
from proxy.next.results import Answer
from proxy.planning.projection_cache import ProjectionCache


class GraphQLResponse(NamedTuple):
    """Body of a response, the answers that it is made of, and the error of a root field that has no value."""

    body: bytes
    answers: Sequence[Answer]
    failure: errors.BridgeError | None = None


class GraphQLService:
    """Executes the documents of clients on a pipeline."""

    def __init__(
        self,
        pipeline: Pipeline,
        features: Features,
        free: FreeOperations,
        projections: ProjectionCache,
        schema: graphql.GraphQLSchema,
    ) -> None:
        self.documents = DocumentReader(schema)
        self._preparation = Preparation(schema, projections)
        self._resolver = Resolver(pipeline, features, free)
        self._schema = schema

    async def execute(self, request: DocumentRequest, client: Client, deadline: float) -> GraphQLResponse:
        """Return the response, which the client waits for until `deadline` (monotonic seconds). Raises
        InvalidDocumentError before anything is sent."""
        try:
            prepared = self._preparation.prepare(request)
        except InvalidDocumentError as error:
            for each in error.errors:
                each.message = request.document.message(each.message)
            raise
        resolving = (self._value(request, client, each, deadline) for each in prepared)
        return _response(request.document, prepared, await asyncio.gather(*resolving))

    async def _value(
        self, request: DocumentRequest, client: Client, field: Introspection | Requested, deadline: float
    ) -> Value:
        """Return the value of a root field, or why it has none."""
        if isinstance(field, Introspection):
            schema = request.document.introspected or self._schema  # that the client knows
            result = graphql.execute_sync(schema, field.single, variable_values=dict(request.variables))
            return Value(msgspec.json.encode(next(iter((result.data or {}).values()), None)))
        try:
            return await self._resolver.value(client, field, deadline)
        except errors.BridgeError as error:
            return Value(NULL, [error_of(error, [field.key])], failure=error)


def _response(
    document: ClientDocument, fields: Sequence[Introspection | Requested], values: Sequence[Value]
) -> GraphQLResponse:
    """Put the values of root fields together. A field without a value is null, and so is all data where it must not
    be null (GraphQL October 2021 §6.4.4)."""
    members: list[bytes] = []
    reported: list[dict[str, Any]] = []
    for field, value in zip(fields, values, strict=True):
        reported += value.reported
        members.append(b"%b:%b" % (msgspec.json.encode(field.key), value.json))
        if value.json == NULL and isinstance(field, Requested) and not field.supply.is_nullable:
            data = NULL
            break  # errors of further fields would be about data that is null already
    else:
        data = b"{%b}" % b",".join(members)
    for each in reported:
        each["message"] = document.message(each["message"])
    listed = b'"errors":%b,' % msgspec.json.encode(reported) if reported else b""
    answers = [answer for value in values for answer in value.answers]
    failure = next((value.failure for value in values if value.failure), None)
    return GraphQLResponse(b'{%b"data":%b}' % (listed, data), answers, failure)
