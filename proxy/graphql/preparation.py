"""Preparation of a GraphQL request: its variables are coerced, its root fields compiled, and what they may cost is
measured, before anything is sent.

What parts and results do not cover is an operation of its own, which fetches a root field as the client asks for it. It
is stored by its document and variables: one root field alone, without the client's alias, fragments and directives.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.execution import values
from graphql.language import ast

from proxy.graphql import roots, selection
from proxy.graphql.documents import (
    ERRORS_MAX,
    INTROSPECTION,
    DocumentRequest,
    InvalidDocumentError,
    check_variables,
)
from proxy.graphql.selection import Compiler, Field
from proxy.model import EncodedOperation
from proxy.planning import documents, queries
from proxy.planning.projection_cache import ProjectionCache

DOCUMENT_PARTS_MAX = 1_000  # that a document may cost

_decode = documents.decoder(dict[str, msgspec.Raw])


class Introspection(NamedTuple):
    """Root field of introspection: its key in the response, and its value."""

    key: str
    value: Any


class Requested(NamedTuple):
    """Root field for parts or their lists, with its arguments and the most parts that it can cost.

    `features` are those that stored parts need, None if they do not cover what is selected. `depth` is how far parts
    are selected within parts: 0 if none are selected, 1 if none within others. `signature` declares the
    `variables` that it uses. `other_names`: the client knows other names of types than the upstream.
    """

    key: str
    field: Field
    arguments: dict[str, Any]
    parts_max: int
    is_nullable: bool
    features: frozenset[str] | None
    depth: int
    signature: str
    variables: Mapping[str, Any]
    other_names: bool

    def query(self) -> tuple[queries.Query, queries.PassedOn]:
        """Return the query of the core for the field as it stands."""
        name = self.field.name
        text = f"query {name}{self.signature} {{ {selection.printed(self.field)} }}"
        sent = {"operationName": name, "query": text, "variables": self.variables}
        payload = msgspec.json.encode(sent, order="deterministic")
        operation = EncodedOperation(name, payload, _decode, self.parts_max)
        passed_on = queries.PassedOn(operation, self._received, roots.is_private(self.arguments))
        # A digest: credentials of the caller may be among the variables.
        return queries.document(hashlib.sha256(payload).hexdigest(), passed_on), passed_on

    def _received(self, data: Any) -> queries.Received:
        data, reported = (data.data, data.reported) if isinstance(data, documents.PartialData) else (data, ())
        value = bytes(data.get(self.field.name, b"null"))
        parts = [*selection.parts_of(msgspec.json.decode(value), self.field)]
        lost = parts.count(None)
        return queries.Received(value, reported, len(parts) - lost, lost)


class Preparation:
    """Prepares requests."""

    def __init__(self, schema: graphql.GraphQLSchema, projections: ProjectionCache) -> None:
        assert schema.query_type is not None  # noqa: S101 - it has one
        self._schema, self._query = schema, schema.query_type
        self._known = projections.whole(projections.features).fields | roots.KNOWN
        self._added = projections.gated()

    def prepare(self, request: DocumentRequest) -> list[Introspection | Requested]:
        """Return the root fields of a request, in the order of the response. Raises InvalidDocumentError."""
        operation = request.document.operation(request.operation_name)
        check_variables(request.variables)
        coerced = values.get_variable_values(
            self._schema, operation.variable_definitions or (), dict(request.variables), max_errors=ERRORS_MAX
        )
        if isinstance(coerced, list):
            raise InvalidDocumentError(*coerced)
        try:
            merged = Compiler(self._schema, request.document, coerced).merged(operation.selection_set)
            prepared = [self._root(request, operation, coerced, *each) for each in merged.items()]
        except graphql.GraphQLError as error:
            raise InvalidDocumentError(error) from error
        parts = sum(each.parts_max for each in prepared if isinstance(each, Requested))
        if parts > DOCUMENT_PARTS_MAX:
            cost = f"The document may cost {parts:,} parts, one may cost {DOCUMENT_PARTS_MAX:,}"
            raise InvalidDocumentError(graphql.GraphQLError(f"{cost}: ask for fewer, or in several requests."))
        return prepared

    def _root(
        self,
        request: DocumentRequest,
        operation: ast.OperationDefinitionNode,
        coerced: values.VariableValues,
        key: str,
        nodes: Sequence[ast.FieldNode],
    ) -> Introspection | Requested:
        document, name, declared = request.document, nodes[0].name.value, operation.variable_definitions or ()
        if name in INTROSPECTION:
            schema = document.introspected or self._schema  # that the client knows
            alone = ast.OperationDefinitionNode(
                operation=operation.operation,
                variable_definitions=tuple(each for each in declared if graphql.type_from_ast(schema, each.type)),
                directives=(),
                selection_set=ast.SelectionSetNode(selections=tuple(nodes)),
            )
            executed = ast.DocumentNode(definitions=(alone, *document.fragments.values()))
            result = graphql.execute_sync(schema, executed, variable_values=dict(request.variables))
            return Introspection(key, (result.data or {}).get(key))
        compiler, definition = Compiler(self._schema, document, coerced), self._query.fields[name]
        field = compiler.field(self._query, key, nodes)
        arguments, depth = values.get_argument_values(definition, nodes[0], coerced), selection.depth((field,))
        read = {*selection.paths((field,))}
        needed = frozenset(each for each, paths in self._added.items() if not paths.isdisjoint(read))
        used = {each.variable.name.value: each for each in declared if each.variable.name.value in compiler.used}
        signature = f"({', '.join(map(graphql.print_ast, used.values()))})" if used else ""
        return Requested(
            key,
            field,
            arguments,
            roots.parts_max(name, arguments) if depth else 0,
            not isinstance(definition.type, graphql.GraphQLNonNull),
            needed if read <= self._known else None,
            depth,
            signature,
            {name: request.variables[name] for name in used if name in request.variables},
            bool(document.client_names),
        )
