"""Preparation of a GraphQL request: its operation is compiled once, its variables coerced, and what it may cost is
measured, before anything is sent.

What parts and results do not cover is an operation of its own, which fetches a root field as the client asks for it. It
is stored by its normalized document and variables: one root field alone, without the client's alias.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.execution import values
from graphql.language import ast

from proxy import model
from proxy.graphql import roots, selection
from proxy.graphql.documents import (
    ERRORS_MAX,
    INTROSPECTION,
    ClientDocument,
    DocumentRequest,
    InvalidDocumentError,
    KeptOfDocuments,
)
from proxy.graphql.selection import Compiler, Field
from proxy.planning import queries
from proxy.planning.operations import EncodedOperation, PartialData
from proxy.planning.projection_cache import ProjectionCache
from proxy.planning.queries import PassedOn, Query, Received

DOCUMENT_PARTS_MAX = 1_000  # that a document may cost


class _Envelope(msgspec.Struct):
    data: dict[str, msgspec.Raw] | None = None
    errors: list[model.GraphQLError] | None = None


class _PartialEnvelope(NamedTuple):
    data: PartialData
    errors: list[model.GraphQLError]


class OwnOperation:
    """Operation that fetches a root field; `single` has it alone."""

    def __init__(self, single: ast.DocumentNode, field: Field) -> None:
        self._field = field
        self._text = graphql.print_ast(single)
        definitions = graphql.get_operation_ast(single)
        declared = definitions.variable_definitions if definitions else None
        self._variables = [each.variable.name.value for each in declared or ()]

    def query(self, variables: Mapping[str, Any], parts_max: int, *, is_private: bool) -> tuple[Query, PassedOn]:
        """Return the operation for the values that a client's variables have, and its query of the core."""
        used = {name: variables[name] for name in self._variables if name in variables}
        request = {"operationName": self._field.name, "query": self._text, "variables": used}
        payload = msgspec.json.encode(request, order="deterministic")
        operation = EncodedOperation(self._field.name, payload, _decode, parts_max)
        passed_on = PassedOn(operation, self._read, is_private)
        # A digest: credentials of the caller may be among the variables.
        return queries.document(hashlib.sha256(payload).hexdigest(), passed_on), passed_on

    def _read(self, data: Any) -> Received:
        data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
        value = bytes(data.get(self._field.name, b"null"))
        parts = [*selection.parts_of(msgspec.json.decode(value), self._field)]
        lost = parts.count(None)
        return Received(value, reported, len(parts) - lost, lost)


class Introspection(NamedTuple):
    """Root field of introspection: its key in the response, and the document that has it alone."""

    key: str
    single: ast.DocumentNode


class SupplyField(NamedTuple):
    """Root field for parts or their lists, and the operation that fetches it as it stands.

    `features` are those that stored parts need, None if they do not cover what is selected. `depth` is how far parts
    are selected within parts: 0 if none are selected, 1 if none within others. `other_names`: the client knows other
    names of types than the upstream.
    """

    key: str
    node: ast.FieldNode
    definition: graphql.GraphQLField
    field: Field
    own: OwnOperation
    features: frozenset[str] | None
    depth: int
    other_names: bool

    @property
    def is_nullable(self) -> bool:
        return not isinstance(self.definition.type, graphql.GraphQLNonNull)


class Requested(NamedTuple):
    """Root field of a request, with its arguments, the most parts that it can cost, and the variables of the client."""

    supply: SupplyField
    arguments: dict[str, Any]
    parts_max: int
    variables: Mapping[str, Any]

    @property
    def key(self) -> str:
        return self.supply.key


class Preparation:
    """Prepares requests, and remembers operations."""

    def __init__(self, schema: graphql.GraphQLSchema, projections: ProjectionCache) -> None:
        self._schema = schema
        self._operations: KeptOfDocuments[list[Introspection | SupplyField]] = KeptOfDocuments()
        self._part = selection.tree(projections.whole(projections.features).fields)
        plain = projections.whole(frozenset()).fields
        self._added = {each: projections.whole(frozenset({each})).fields - plain for each in projections.features}

    def prepare(self, request: DocumentRequest) -> list[Introspection | Requested]:
        """Return the root fields of a request, in the order of the response. Raises InvalidDocumentError."""
        operation = request.document.operation(request.operation_name)
        coerced = values.get_variable_values(
            self._schema, operation.variable_definitions or (), dict(request.variables), max_errors=ERRORS_MAX
        )
        if isinstance(coerced, list):
            raise InvalidDocumentError(*coerced)
        try:
            fields = self._fields(request.document, operation, coerced)
            prepared = [
                field if isinstance(field, Introspection) else _requested(field, coerced, request.variables)
                for field in fields
            ]
        except graphql.GraphQLError as error:
            raise InvalidDocumentError(error) from error
        parts = sum(each.parts_max for each in prepared if isinstance(each, Requested))
        if parts > DOCUMENT_PARTS_MAX:
            message = (
                f"The document may cost {parts:,} parts, one may cost {DOCUMENT_PARTS_MAX:,}: ask for fewer, or in"
            )
            raise InvalidDocumentError(graphql.GraphQLError(f"{message} several requests."))
        return prepared

    def _fields(
        self, document: ClientDocument, operation: ast.OperationDefinitionNode, variables: values.VariableValues
    ) -> list[Introspection | SupplyField]:
        key = document, operation.name.value if operation.name else None
        fields = self._operations.get(key)
        if fields is None:
            compiler = Compiler(self._schema, document, variables)
            merged = compiler.merged(operation.selection_set)
            fields = [self._field(compiler, document, operation, *each) for each in merged.items()]
            if not compiler.uses_variables:
                self._operations.keep(key, fields, document.length)
        return fields

    def _field(
        self,
        compiler: Compiler,
        document: ClientDocument,
        operation: ast.OperationDefinitionNode,
        key: str,
        nodes: list[ast.FieldNode],
    ) -> Introspection | SupplyField:
        single, query = _single_root(document, operation, nodes), self._schema.query_type
        name = nodes[0].name.value
        if name in INTROSPECTION or query is None:
            return Introspection(key, single)
        field = compiler.field(query, key, nodes)
        features = None
        if selection.covers(roots.tree(name, self._part), field.below):
            read = {*selection.part_paths((field,))}
            features = frozenset(each for each, paths in self._added.items() if not paths.isdisjoint(read))
        own, depth = OwnOperation(single, field), selection.depth((field,))
        return SupplyField(key, nodes[0], query.fields[name], field, own, features, depth, bool(document.client_names))


def _requested(supply: SupplyField, coerced: values.VariableValues, variables: Mapping[str, Any]) -> Requested:
    """Return a root field with its arguments. Raises GraphQLError."""
    arguments = values.get_argument_values(supply.definition, supply.node, coerced)
    parts = roots.parts_max(supply.field.name, arguments) if supply.depth else 0
    return Requested(supply, arguments, parts, variables)


def _single_root(
    document: ClientDocument, operation: ast.OperationDefinitionNode, nodes: Sequence[ast.FieldNode]
) -> ast.DocumentNode:
    """Return a document with the root field only that some nodes of an operation select, without its alias."""
    sets = [node.selection_set.selections for node in nodes if node.selection_set]
    below = ast.SelectionSetNode(selections=tuple(each for selections in sets for each in selections))
    root = ast.FieldNode(
        name=nodes[0].name, arguments=nodes[0].arguments, directives=(), selection_set=below if sets else None
    )
    used = selection.used(root, document)
    alone = ast.OperationDefinitionNode(
        operation=graphql.OperationType.QUERY,
        name=root.name,
        variable_definitions=tuple(
            each for each in operation.variable_definitions or () if each.variable.name.value in used.variables
        ),
        directives=(),
        selection_set=ast.SelectionSetNode(selections=(root,)),
    )
    return ast.DocumentNode(definitions=(alone, *(document.fragments[name] for name in sorted(used.fragments))))


_envelope = msgspec.json.Decoder(_Envelope).decode


def _decode(body: bytes) -> _Envelope | _PartialEnvelope:
    envelope = _envelope(body)
    if envelope.errors and envelope.data is not None:
        return _PartialEnvelope(PartialData(envelope.data, envelope.errors), envelope.errors)
    return envelope
