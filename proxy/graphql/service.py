"""Execution of a GraphQL request: prepare it, resolve its root fields, put the response together (contract graphql.md
§3).
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.language import ast

from proxy import errors, model
from proxy.gateway.old_core import Client, GatewayRequest, Pipeline, ResponseMetadata
from proxy.graphql.documents import ClientDocument, DocumentReader, DocumentRequest, InvalidDocumentError
from proxy.graphql.own_operation import single_root
from proxy.graphql.preparation import PreparedRequest, RequestPreparation
from proxy.graphql.roots import Value
from proxy.graphql.selection import Field

NULL = b"null"
PART_LIMIT = "You have exceeded your part limit"
# Codes of the upstream where it has one (contract graphql.md §3.2).
CODES: Mapping[type[errors.BridgeError], str] = {
    errors.MissingKey: "AuthInvalidToken",
    errors.ForbiddenKey: "AuthInvalidToken",
    errors.ExpiredKey: "AuthExpiredToken",
}
NO_PROJECTION = model.Projection()  # of v3


class GraphQLResponse(NamedTuple):
    """Body of a response, and the error of a root field that has no value."""

    body: bytes
    failure: errors.BridgeError | None = None


class GraphQLService:
    """Executes the documents of clients on a pipeline."""

    def __init__(self, pipeline: Pipeline, schema: graphql.GraphQLSchema) -> None:
        self.documents = DocumentReader(schema)
        self._preparation = RequestPreparation(schema)
        self._pipeline = pipeline
        self._schema = schema

    async def execute(self, request: DocumentRequest, client: Client, metadata: ResponseMetadata) -> GraphQLResponse:
        """Return the response. Raises InvalidDocumentError before anything is sent."""
        try:
            prepared = self._preparation.prepare(request)
        except InvalidDocumentError as error:
            for each in error.errors:
                each.message = request.document.message(each.message)
            raise
        gateway_request = GatewayRequest.of(client, NO_PROJECTION, {}, metadata)
        resolving = [self._resolve(gateway_request, request, prepared, place) for place in range(len(prepared.fields))]
        resolved = [await resolving[0]] if len(resolving) == 1 else await asyncio.gather(*resolving)
        return _response(request.document, prepared, resolved)

    async def _resolve(
        self, gateway_request: GatewayRequest, request: DocumentRequest, prepared: PreparedRequest, place: int
    ) -> Value | errors.BridgeError:
        """Return the value of a root field, or why it has none."""
        field, root = prepared.fields[place]
        if root is None:
            return self._introspected(request, prepared.node, field)
        try:
            return await root.resolve(self._pipeline, gateway_request, prepared.arguments[place], request.variables)
        except errors.BridgeError as error:
            return error

    def _introspected(self, request: DocumentRequest, node: ast.OperationDefinitionNode, field: Field) -> Value:
        """Return the value of a field of introspection, from the schema that the client knows."""
        schema = request.document.introspected or self._schema
        alone, _ = single_root(request.document, node, field)
        result = graphql.execute_sync(schema, alone, variable_values=dict(request.variables))
        return Value(msgspec.json.encode((result.data or {}).get(field.name)))


def _response(
    document: ClientDocument, prepared: PreparedRequest, resolved: Sequence[Value | errors.BridgeError]
) -> GraphQLResponse:
    """Put the values of root fields together. A field without a value is null, and so is all data where it must not
    be null (GraphQL October 2021 §6.4.4)."""
    members, reported, failure = [], [], None
    is_null = False
    for (field, root), value in zip(prepared.fields, resolved, strict=True):
        json = NULL
        if isinstance(value, Value):
            json = value.json
            reported += [_at(field.key, each) for each in value.reported]
        else:
            failure = failure or value
            reported.append(error_of(value, [field.key]))
        if json == NULL and root is not None and not root.is_nullable:
            is_null = True
            break  # errors of further fields would be about data that is null already
        members.append(b"%b:%b" % (msgspec.json.encode(field.key), json))
    for each in reported:
        each["message"] = document.message(each["message"])
    data = NULL if is_null else b"{%b}" % b",".join(members)
    listed = b'"errors":%b,' % msgspec.json.encode(reported) if reported else b""
    return GraphQLResponse(b'{%b"data":%b}' % (listed, data), failure)


def error_of(error: errors.BridgeError, path: list[str | int] | None = None) -> dict[str, Any]:
    """Return an error of this service as one of the response. That of exhausted parts begins as the upstream's does:
    clients recognize it by that (contract graphql.md §3.2)."""
    message, code = error.message, CODES.get(type(error))
    if isinstance(error, errors.QuotaExhausted) and not message.startswith(PART_LIMIT):
        message = f"{PART_LIMIT}: {message}"
    placed: dict[str, Any] = {"message": message} | ({} if path is None else {"path": path})
    return placed | {"extensions": {"code": code or type(error).__name__}}


def _at(key: str, error: model.GraphQLError) -> dict[str, Any]:
    """Return an error of the upstream with the path that the client knows."""
    placed: dict[str, Any] = {"message": error.message}
    if isinstance(error.path, list) and error.path:
        placed["path"] = [key, *error.path[1:]]
    if error.extensions:
        placed["extensions"] = error.extensions
    return placed
