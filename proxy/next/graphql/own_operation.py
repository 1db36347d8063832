"""Root field as an operation of its own: what parts and results do not cover is fetched as the client asks for it.

It is stored by its normalized document and variables: one root field alone, without the client's alias.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.language import ast

from proxy import model
from proxy.graphql.documents import ClientDocument
from proxy.next import queries
from proxy.next.graphql import selection
from proxy.next.graphql.selection import Field
from proxy.next.queries import PassedOn, Query, Received
from proxy.planning.operations import EncodedOperation, PartialData


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


def single_root(
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
