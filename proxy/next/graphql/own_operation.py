"""Root field as an operation of its own: what parts and results do not cover is fetched as the client asks for it.

It is stored by its normalized document and variables: one root field alone, without the client's alias.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.language import ast

from proxy.graphql.documents import ClientDocument
from proxy.next import queries
from proxy.next.graphql import selection
from proxy.next.graphql.selection import Field
from proxy.next.queries import PassedOn, Query, Received
from proxy.planning.operations import Document, PartialData

NULL = b"null"
_decode = msgspec.json.Decoder().decode


class SingleRoot(NamedTuple):
    """Operation with one root field of another, which it has without its alias, and the fragments that it uses."""

    operation: ast.OperationDefinitionNode
    fragments: tuple[ast.FragmentDefinitionNode, ...]

    @property
    def document(self) -> ast.DocumentNode:
        return ast.DocumentNode(definitions=(self.operation, *self.fragments))


class OwnOperation:
    """Operation that fetches a root field. The client knows other names of types if it `has_other_names`."""

    def __init__(self, single: SingleRoot, field: Field, *, has_other_names: bool) -> None:
        self._field = field
        self._has_other_names = has_other_names
        self._variables = [each.variable.name.value for each in single.operation.variable_definitions or ()]
        text = graphql.print_ast(single.document)
        data = msgspec.defstruct("Data", [(field.name, msgspec.Raw, msgspec.Raw(NULL))], gc=False)
        self._document = Document(field.name, text, data, mark_errors=PartialData)
        self._digest = hashlib.sha256(text.encode()).hexdigest()

    def query(self, variables: Mapping[str, Any], parts_max: int, *, is_private: bool) -> tuple[Query, PassedOn]:
        """Return the operation for the values that a client's variables have, and its query of the core."""
        used = {name: variables[name] for name in self._variables if name in variables}
        # A digest: credentials of the caller may be among the variables.
        text = self._digest.encode() + msgspec.json.encode(used, order="deterministic")
        passed_on = PassedOn(self._document.operation(used, parts_max), self._read, is_private)
        return queries.document(hashlib.sha256(text).hexdigest(), passed_on), passed_on

    def shown(self, value: bytes) -> bytes:
        """Return the value of the root field with the names of types that the client knows."""
        if not self._has_other_names:
            return value
        decoded = _decode(value)
        selection.rename_types(decoded, self._field.below or ())
        return msgspec.json.encode(decoded)

    def _read(self, data: Any) -> Received:
        data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
        value = bytes(getattr(data, self._field.name))
        parts = [*selection.parts_of(_decode(value), self._field)]
        lost = parts.count(None)
        return Received(value, reported, len(parts) - lost, lost)


def single_root(
    document: ClientDocument, operation: ast.OperationDefinitionNode, nodes: Sequence[ast.FieldNode]
) -> SingleRoot:
    """Return an operation with the root field only that some nodes of another one select."""
    sets = [node.selection_set.selections for node in nodes if node.selection_set]
    below = ast.SelectionSetNode(selections=tuple(each for selections in sets for each in selections))
    root = ast.FieldNode(
        name=nodes[0].name, arguments=nodes[0].arguments, directives=(), selection_set=below if sets else None
    )
    used = selection.used(root, document)
    definitions = tuple(
        each for each in operation.variable_definitions or () if each.variable.name.value in used.variables
    )
    alone = ast.OperationDefinitionNode(
        operation=graphql.OperationType.QUERY,
        name=ast.NameNode(value=nodes[0].name.value),
        variable_definitions=definitions,
        directives=(),
        selection_set=ast.SelectionSetNode(selections=(root,)),
    )
    fragments = tuple(document.fragments[name] for name in sorted(used.fragments))
    return SingleRoot(alone, fragments)
