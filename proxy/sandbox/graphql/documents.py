"""Documents, parsed and validated once: clients send the same ones over and over.

Used by the query service. Keeps the last few hundred, faults included; knows nothing of variables.
"""

from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache
from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    parse,
    validate,
)

from proxy.sandbox.graphql import problems, rules

KEPT = 512
MAX_TOKENS = 50_000
MAX_ERRORS = 50


@dataclass(frozen=True, slots=True)
class Document:
    """A document that may be executed (`faults` empty), or what is wrong with it."""

    node: DocumentNode | None
    faults: tuple[dict[str, Any], ...]

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
        self._kept: LRUCache[str, Document] = LRUCache(KEPT)

    def read(self, text: str) -> Document:
        """The document with this text."""
        document = self._kept.get(text)
        if document is None:
            document = self._kept[text] = self._read(text)
        return document

    def _read(self, text: str) -> Document:
        try:
            node = parse(text, max_tokens=MAX_TOKENS, allow_empty_selection_sets=False)
        except GraphQLError as error:
            return Document(None, (problems.coded(error, "HC0011"),))
        faults = validate(self._schema, node, rules.RULES, max_errors=MAX_ERRORS)
        return Document(node, tuple({**fault.formatted} for fault in faults))
