"""Preparation of a GraphQL request: its operation is compiled once, its variables coerced, and what it may cost is
measured, before anything is sent.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
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
from proxy.graphql.own_operation import CREDENTIALS, Used
from proxy.graphql.roots import RootField
from proxy.graphql.selection import Field, Selections

DOCUMENT_PARTS_MAX = 1_000  # that a document may cost


CompiledFields = list[tuple[Field, RootField | None]]
"""Fields of an operation in the order of the response, those of introspection without a root field."""


class PreparedRequest(NamedTuple):
    """Operation with the arguments of each of its fields."""

    node: ast.OperationDefinitionNode
    fields: CompiledFields
    arguments: list[dict[str, Any]]


class RequestPreparation:
    """Prepares requests, and remembers operations and repeated requests."""

    def __init__(self, schema: graphql.GraphQLSchema) -> None:
        self._schema = schema
        self._operations: KeptOfDocuments[CompiledFields] = KeptOfDocuments()
        self._prepared: KeptOfDocuments[PreparedRequest] = KeptOfDocuments()

    def prepare(self, request: DocumentRequest) -> PreparedRequest:
        """Return a request that can be executed. Raises InvalidDocumentError."""
        variables = msgspec.json.encode(request.variables)
        key = (request.document, request.operation_name, variables)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(request)
            has_credentials = any(each.get(CREDENTIALS) for each in prepared.arguments)
            if not has_credentials:
                self._prepared.keep(key, prepared, request.document.length + len(variables))
        return prepared

    def _prepare(self, request: DocumentRequest) -> PreparedRequest:
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
                    f"The document may cost {parts:,} parts, one may cost {DOCUMENT_PARTS_MAX:,}: ask for fewer, or in"
                    " several requests."
                )
            )
        return PreparedRequest(node, fields, arguments)

    def _compiled(
        self, document: ClientDocument, node: ast.OperationDefinitionNode, variables: values.VariableValues
    ) -> CompiledFields:
        # Values of variables change what is selected only in directives, and in arguments of fields of parts.
        name = node.name.value if node.name else None
        names = document.shapes.get(name)
        if names is None:
            names = document.shapes[name] = _shape_variables(document, node)
        # A variable without a value leaves its argument to the default; null does not.
        shape = {each: variables.coerced[each] for each in names if each in variables.coerced}
        key = (document, name, msgspec.json.encode(shape, order="sorted"))
        fields = self._operations.get(key)
        if fields is None:
            selections = Selections(self._schema, document.fragments, variables, document.client_names)
            fields = [
                (field, None if field.name in INTROSPECTION else RootField(selections, document, node, field))
                for field in selections.fields(node.selection_set)
            ]
            self._operations.keep(key, fields, document.length + len(key[-1]))
        return fields


def _shape_variables(document: ClientDocument, node: ast.OperationDefinitionNode) -> list[str]:
    """Return the names of the variables that an operation uses elsewhere than as arguments of its root fields."""
    below = _UsedBelowRoots(document)
    below.visit(node.selection_set, is_root=True)
    return sorted(below.used.variables)


class _UsedBelowRoots:
    def __init__(self, document: ClientDocument) -> None:
        self._fragments = document.fragments
        self._seen: set[tuple[str, bool]] = set()
        self.used = Used(document)

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
            self.used.add(node)
