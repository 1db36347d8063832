"""Execution of a GraphQL request: read the document, measure what it may cost, resolve its root fields, put the
response together (contract graphql.md §3).
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cachetools
import graphql
import msgspec
from graphql.execution import values
from graphql.language import ast

from proxy import errors, model
from proxy.gateway.applications import Client
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.queries import GatewayRequest
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.graphql.documents import (
    ERRORS_MAX,
    INTROSPECTION,
    ClientDocument,
    DocumentReader,
    InvalidDocumentError,
)
from proxy.graphql.own_operation import CREDENTIALS
from proxy.graphql.roots import RootField, Value
from proxy.graphql.selection import Field, Selections

OPERATIONS_MAX = 512  # compiled operations that are kept
PREPARED_MAX = 2_048  # requests with their variables, which programs repeat,
PREPARED_BYTES = 4_096  # of which the variables have at most so many bytes
DOCUMENT_PARTS_MAX = 1_000  # that a document may cost
NULL = b"null"
PART_LIMIT = "You have exceeded your part limit"
# Codes of the upstream where it has one (contract graphql.md §3.2).
CODES: Mapping[type[errors.BridgeError], str] = {
    errors.MissingKey: "AuthInvalidToken",
    errors.ForbiddenKey: "AuthInvalidToken",
    errors.ExpiredKey: "AuthExpiredToken",
}
NO_PROJECTION = model.Projection()  # of v3


class DocumentRequest(NamedTuple):
    """Request of a client, whose document is read already."""

    document: ClientDocument
    operation_name: str | None = None
    variables: Mapping[str, Any] = {}


class GraphQLResponse(NamedTuple):
    """Body of a response, and the error of a root field that has no value."""

    body: bytes
    failure: errors.BridgeError | None = None


CompiledFields = list[tuple[Field, RootField | None]]
"""Fields of an operation in the order of the response, those of introspection without a root field."""


class _PreparedRequest(NamedTuple):
    """Operation with the arguments of each of its fields."""

    node: ast.OperationDefinitionNode
    fields: CompiledFields
    arguments: list[dict[str, Any]]


class GraphQLService:
    """Executes the documents of clients on a pipeline."""

    def __init__(self, pipeline: Pipeline, schema: graphql.GraphQLSchema) -> None:
        self.documents = DocumentReader(schema)
        self._pipeline = pipeline
        self._schema = schema
        self._operations: cachetools.LRUCache[Any, CompiledFields] = cachetools.LRUCache(OPERATIONS_MAX)
        self._prepared: cachetools.LRUCache[Any, _PreparedRequest] = cachetools.LRUCache(PREPARED_MAX)

    async def execute(self, request: DocumentRequest, client: Client, metadata: ResponseMetadata) -> GraphQLResponse:
        """Return the response. Raises InvalidDocumentError before anything is sent."""
        variables = msgspec.json.encode(request.variables)
        key = (request.document, request.operation_name, variables)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(request)
            has_credentials = any(each.get(CREDENTIALS) for each in prepared.arguments)
            if len(variables) <= PREPARED_BYTES and not has_credentials:
                self._prepared[key] = prepared
        gateway_request = GatewayRequest.of(client, NO_PROJECTION, {}, metadata)
        resolving = [self._resolve(gateway_request, request, prepared, place) for place in range(len(prepared.fields))]
        resolved = [await resolving[0]] if len(resolving) == 1 else await asyncio.gather(*resolving)
        return _response(prepared, resolved)

    def _prepare(self, request: DocumentRequest) -> _PreparedRequest:
        """Coerce the variables of a request, and measure what it may cost. Raises InvalidDocumentError."""
        document, node = request.document, request.document.operation(request.operation_name)
        variables = values.get_variable_values(
            self._schema, node.variable_definitions or (), dict(request.variables), max_errors=ERRORS_MAX
        )
        if isinstance(variables, list):
            raise InvalidDocumentError(*variables)
        try:
            fields = self._compiled(document, node, variables)
            arguments = [{} if root is None else root.arguments(variables) for _, root in fields]
        except graphql.GraphQLError as error:
            raise InvalidDocumentError(error) from error
        parts = sum(root.parts_max(each) for (_, root), each in zip(fields, arguments, strict=True) if root)
        if parts > DOCUMENT_PARTS_MAX:
            raise InvalidDocumentError(
                graphql.GraphQLError(
                    f"The document may cost {parts} parts, one may cost {DOCUMENT_PARTS_MAX}: ask for fewer, or in"
                    " several requests."
                )
            )
        return _PreparedRequest(node, fields, arguments)

    async def _resolve(
        self, gateway_request: GatewayRequest, request: DocumentRequest, prepared: _PreparedRequest, place: int
    ) -> Value | errors.BridgeError:
        """Return the value of a root field, or why it has none."""
        field, root = prepared.fields[place]
        if root is None:
            return self._introspected(request, prepared.node, field)
        try:
            return await root.resolve(self._pipeline, gateway_request, prepared.arguments[place], request.variables)
        except errors.BridgeError as error:
            return error

    def _compiled(
        self, document: ClientDocument, node: ast.OperationDefinitionNode, variables: values.VariableValues
    ) -> CompiledFields:
        # Values of variables change what is selected only in directives, and in arguments of fields of parts.
        name = node.name.value if node.name else None
        names = document.shapes.get(name)
        if names is None:
            names = document.shapes[name] = _shape_variables(document, node)
        key = (document, name, msgspec.json.encode([variables.coerced.get(each) for each in names], order="sorted"))
        fields = self._operations.get(key)
        if fields is None:
            selections = Selections(self._schema, document.fragments, variables, document.type_names)
            fields = self._operations[key] = [
                (field, None if field.name in INTROSPECTION else RootField(selections, document, node, field))
                for field in selections.fields(node.selection_set)
            ]
        return fields

    def _introspected(self, request: DocumentRequest, node: ast.OperationDefinitionNode, field: Field) -> Value:
        """Return the value of a field of introspection, from the schema that the client knows."""
        schema = request.document.introspected or self._schema
        # Others are of no use, and may have types that this schema lacks.
        usable = [each for each in node.variable_definitions or () if _is_scalar(each.type)]
        operation = ast.OperationDefinitionNode(
            operation=graphql.OperationType.QUERY,
            name=None,
            variable_definitions=tuple(usable),
            directives=(),
            selection_set=ast.SelectionSetNode(selections=field.nodes),
        )
        whole = ast.DocumentNode(definitions=(operation, *request.document.fragments.values()))
        result = graphql.execute_sync(schema, whole, variable_values=dict(request.variables))
        return Value(msgspec.json.encode((result.data or {}).get(field.key)))


def _response(prepared: _PreparedRequest, resolved: Sequence[Value | errors.BridgeError]) -> GraphQLResponse:
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


def _is_scalar(kind: ast.TypeNode) -> bool:
    """Return whether a type is one of GraphQL's own, or a list of it."""
    while isinstance(kind, ast.NonNullTypeNode | ast.ListTypeNode):
        kind = kind.type
    return isinstance(kind, ast.NamedTypeNode) and kind.name.value in graphql.specified_scalar_types


def _at(key: str, error: model.GraphQLError) -> dict[str, Any]:
    """Return an error of the upstream with the path that the client knows."""
    placed: dict[str, Any] = {"message": error.message}
    if isinstance(error.path, list) and error.path:
        placed["path"] = [key, *error.path[1:]]
    if error.extensions:
        placed["extensions"] = error.extensions
    return placed


def _shape_variables(document: ClientDocument, node: ast.OperationDefinitionNode) -> list[str]:
    """Return the names of the variables that an operation uses elsewhere than as arguments of its root fields."""
    used = _UsedBelowRoots(document.fragments)
    used.visit(node.selection_set, is_root=True)
    return sorted(used.names)


class _UsedBelowRoots:
    def __init__(self, fragments: Mapping[str, ast.FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._seen: set[tuple[str, bool]] = set()
        self.names: set[str] = set()

    def visit(self, selections: ast.SelectionSetNode | None, is_root: bool) -> None:
        for each in selections.selections if selections else ():
            self._add(each.directives)
            if isinstance(each, ast.FieldNode):
                if not is_root:
                    self._add(each.arguments)
                self.visit(each.selection_set, is_root=False)
            elif isinstance(each, ast.InlineFragmentNode):
                self.visit(each.selection_set, is_root)
            elif isinstance(each, ast.FragmentSpreadNode) and (each.name.value, is_root) not in self._seen:
                self._seen.add((each.name.value, is_root))
                self.visit(self._fragments[each.name.value].selection_set, is_root)

    def _add(self, nodes: Sequence[ast.Node] | None) -> None:
        for node in nodes or ():
            graphql.visit(node, _Names(self.names))


class _Names(graphql.Visitor):
    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self._names = names

    def enter_variable(self, node: ast.VariableNode, *_: Any) -> None:
        self._names.add(node.name.value)
