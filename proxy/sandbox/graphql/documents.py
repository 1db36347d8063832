"""Documents, parsed and validated once: clients send the same ones over and over.

Used by the query service. Keeps the last of them, faults included; knows nothing of variables. How much work a document
can make is bounded before that work is begun: by its length, its tokens, its depth and its fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache
from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    parse,
    validate,
    value_from_ast_untyped,
)

from proxy.sandbox.graphql import extent, problems, rules

# Characters of all documents that are kept; what is made of them is a few hundred times as large.
KEPT = 2**19
MAX_LENGTH = 2**17
MAX_TOKENS = 20_000
MAX_ERRORS = 50
# What the names of operations on design data begin with.
DESIGN = "des"
TOKEN_IN_INPUT = frozenset({"desOnCommentUpdated"})


@dataclass(frozen=True, slots=True)
class Document:
    """A document that may be executed (`faults` empty), or what is wrong with it."""

    node: DocumentNode | None
    faults: tuple[dict[str, Any], ...]
    # Operations by name ("" where there is none): the fields at their roots, as the journal has them.
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    length: int = 0
    # Whether something of it may be design data, for which other services are asked.
    waits: bool = False

    def asked(self, operation_name: str | None) -> tuple[str | None, tuple[str, ...]]:
        """The operation that a request means, and the fields at its root; None and () where that is not clear."""
        if operation_name is None and len(self.operations) == 1:
            ((name, fields),) = self.operations.items()
            return name or None, fields
        return operation_name, self.operations.get(operation_name or "", ())

    def is_query(self, operation_name: str | None) -> bool:
        """Whether the operation that a request means only reads; True also where that is not clear."""
        operations = [
            definition
            for definition in (self.node.definitions if self.node else ())
            if isinstance(definition, OperationDefinitionNode)
        ]
        meant = [one for one in operations if operation_name in (None, one.name.value if one.name else None)]
        return len(meant) != 1 or meant[0].operation is OperationType.QUERY

    def shown_token(self, variables: Mapping[str, Any]) -> str | None:
        """The token that a subscription has in its input: the service's clients have no headers there."""
        field = self.first_field()
        if field is None or field.name.value not in TOKEN_IN_INPUT:
            return None
        given = next((one.value for one in field.arguments or () if one.name.value == "input"), None)
        shown = value_from_ast_untyped(given, dict(variables)) if given else None
        token = shown.get("token") if isinstance(shown, dict) else None
        return token if isinstance(token, str) else None

    def first_field(self) -> FieldNode | None:
        """The first field at the root of the first operation, for the path of an error that is about all
        of it."""
        for definition in self.node.definitions if self.node else ():
            if isinstance(definition, OperationDefinitionNode):
                return next((s for s in definition.selection_set.selections if isinstance(s, FieldNode)), None)
        return None

    def is_introspection(self) -> bool:
        """Whether it asks for nothing but the schema."""
        operations = [
            definition
            for definition in (self.node.definitions if self.node else ())
            if isinstance(definition, OperationDefinitionNode)
        ]
        roots = [field for operation in operations for field in operation.selection_set.selections]
        return bool(roots) and all(
            isinstance(field, FieldNode) and field.name.value.startswith("__") for field in roots
        )


class Documents:
    """A cache by text, for one schema."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._kept: LRUCache[str, Document] = LRUCache(KEPT, getsizeof=lambda document: document.length)

    def read(self, text: str) -> Document:
        """The document with this text."""
        if len(text) > MAX_LENGTH:
            message = f"The document has {len(text)} characters; {MAX_LENGTH} is the most."
            return Document(None, ({"message": message, "extensions": {"code": "HC0011"}},))
        document = self._kept.get(text)
        if document is None:
            document = self._kept[text] = self._read(text)
        return document

    def _read(self, text: str) -> Document:
        try:
            node = parse(text, max_tokens=MAX_TOKENS, allow_empty_selection_sets=False)
        except GraphQLError as error:
            return Document(None, (problems.coded(error, "HC0011"),), length=len(text))
        faults = extent.faults(node) or validate(self._schema, node, rules.RULES, max_errors=MAX_ERRORS)
        said = tuple({**fault.formatted} for fault in faults)
        return Document(node, said, _operations(node), len(text), _waits(node))


def _operations(node: DocumentNode) -> dict[str, tuple[str, ...]]:
    found = (one for one in node.definitions if isinstance(one, OperationDefinitionNode))
    return {one.name.value if one.name else "": _roots(one) for one in found}


def _waits(node: DocumentNode) -> bool:
    """Whether a root field is of design data, or may be: it stands in a fragment."""
    operations = [one for one in node.definitions if isinstance(one, OperationDefinitionNode)]
    roots = [field for one in operations for field in one.selection_set.selections]
    return any(not isinstance(field, FieldNode) or field.name.value.startswith(DESIGN) for field in roots)


def _roots(operation: OperationDefinitionNode) -> tuple[str, ...]:
    """Each name once, in order; what stands in fragments at the root is left out."""
    fields = (one for one in operation.selection_set.selections if isinstance(one, FieldNode))
    return tuple(dict.fromkeys(one.name.value for one in fields))
