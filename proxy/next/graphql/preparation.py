"""Preparation of a GraphQL request: its operation is compiled once, its variables coerced, and what it may cost is
measured, before anything is sent.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import graphql
from graphql.execution import values
from graphql.language import ast

from proxy.graphql.documents import (
    ERRORS_MAX,
    INTROSPECTION,
    ClientDocument,
    DocumentRequest,
    InvalidDocumentError,
    KeptOfDocuments,
)
from proxy.next.graphql import own_operation, roots, selection
from proxy.next.graphql.own_operation import OwnOperation, SingleRoot
from proxy.next.graphql.selection import Field
from proxy.planning.projection_cache import ProjectionCache

DOCUMENT_PARTS_MAX = 1_000  # that a document may cost


class SupplyField(NamedTuple):
    """Root field for parts or their lists, and the operation that fetches it as it stands. `features` are those that
    stored parts need, None if they do not cover what is selected. `depth` is how far parts are selected within parts:
    0 if none are selected, 1 if none within others."""

    definition: graphql.GraphQLField
    field: Field
    own: OwnOperation
    features: frozenset[str] | None
    depth: int


class RootField(NamedTuple):
    """Root field of an operation: its key in the response, and the document that has it alone. It has no `supply` if it
    is one of introspection."""

    key: str
    single: SingleRoot
    supply: SupplyField | None


class Requested(NamedTuple):
    """Root field of a request, with its arguments, the most parts that it can cost, and the variables of the client."""

    root: RootField
    arguments: dict[str, Any]
    parts_max: int
    variables: Mapping[str, Any]


class Preparation:
    """Prepares requests, and remembers operations."""

    def __init__(self, schema: graphql.GraphQLSchema, projections: ProjectionCache) -> None:
        self._schema = schema
        self._operations: KeptOfDocuments[list[RootField]] = KeptOfDocuments()
        self._part = selection.tree(projections.whole(projections.features).fields)
        plain = projections.whole(frozenset()).fields
        self._added = {each: projections.whole(frozenset({each})).fields - plain for each in projections.features}

    def prepare(self, request: DocumentRequest) -> list[Requested]:
        """Return the root fields of a request, in the order of the response. Raises InvalidDocumentError."""
        document, operation = request.document, request.document.operation(request.operation_name)
        variables = values.get_variable_values(
            self._schema, operation.variable_definitions or (), dict(request.variables), max_errors=ERRORS_MAX
        )
        if isinstance(variables, list):
            raise InvalidDocumentError(*variables)
        try:
            fields = self._fields(document, operation, variables)
            requested = [_requested(each, variables, request.variables) for each in fields]
        except graphql.GraphQLError as error:
            raise InvalidDocumentError(error) from error
        parts = sum(each.parts_max for each in requested)
        if parts > DOCUMENT_PARTS_MAX:
            raise InvalidDocumentError(
                graphql.GraphQLError(
                    f"The document may cost {parts:,} parts, one may cost {DOCUMENT_PARTS_MAX:,}: ask for fewer, or in"
                    " several requests."
                )
            )
        return requested

    def _fields(
        self, document: ClientDocument, operation: ast.OperationDefinitionNode, variables: values.VariableValues
    ) -> list[RootField]:
        key = document, operation.name.value if operation.name else None
        fields = self._operations.get(key)
        if fields is None:
            compiler = selection.Compiler(self._schema, document, variables)
            fields = []
            for name, nodes in compiler.merged(operation.selection_set).items():
                single = own_operation.single_root(document, operation, nodes)
                fields.append(RootField(name, single, self._supply(compiler, document, single, name, nodes)))
            if not compiler.uses_variables:
                self._operations.keep(key, fields, document.length)
        return fields

    def _supply(
        self,
        compiler: selection.Compiler,
        document: ClientDocument,
        single: SingleRoot,
        key: str,
        nodes: list[ast.FieldNode],
    ) -> SupplyField | None:
        name, query = nodes[0].name.value, self._schema.query_type
        if name in INTROSPECTION or query is None:
            return None
        field = compiler.field(query, key, nodes)
        own = OwnOperation(single, field, has_other_names=bool(document.client_names))
        features = None
        if selection.covers(roots.tree(name, self._part), field.below):
            read = {*selection.part_paths((field,))}
            features = frozenset(each for each, paths in self._added.items() if not paths.isdisjoint(read))
        return SupplyField(query.fields[name], field, own, features, selection.depth((field,)))


def _requested(root: RootField, coerced: values.VariableValues, variables: Mapping[str, Any]) -> Requested:
    """Return a root field with its arguments. Raises GraphQLError."""
    if (supply := root.supply) is None:
        return Requested(root, {}, 0, variables)
    (node,) = root.single.operation.selection_set.selections
    assert isinstance(node, ast.FieldNode)  # noqa: S101 - made of one
    arguments = values.get_argument_values(supply.definition, node, coerced)
    parts = roots.parts_max(supply.field.name, arguments) if supply.depth else 0
    return Requested(root, arguments, parts, variables)
