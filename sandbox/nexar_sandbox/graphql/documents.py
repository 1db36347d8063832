"""GraphQL documents: parsed, measured and validated once, and cached, because clients send the same ones again and
again.

The work for a document is bounded in advance: by its length, tokens, depth and fields. Depth and fields are computed
with fragments in place, but each fragment is measured once, however often it is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import graphql
from cachetools import LRUCache

from nexar_sandbox.graphql import errors, validation_rules

# Characters of all cached documents; their syntax trees take a few hundred times as many bytes.
CACHE_SIZE = 2**19
MAX_LENGTH = 2**17
MAX_TOKENS = 20_000
MAX_ERRORS = 50
# Prefix of the root fields of design data.
DESIGN_PREFIX = "des"
TOKEN_IN_INPUT = frozenset({"desOnCommentUpdated"})


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A parsed document, valid if `errors` is empty."""

    node: graphql.DocumentNode | None
    errors: tuple[dict[str, Any], ...]
    # Root fields of the operations, by operation name ("" for none), for the journal.
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    length: int = 0
    # Whether it may select design data, for which resolvers wait for other services.
    is_async: bool = False

    def operation(self, operation_name: str | None) -> tuple[str | None, tuple[str, ...]]:
        """Name and root fields of the operation to execute; None and () if that is ambiguous."""
        if operation_name is None and len(self.operations) == 1:
            ((name, fields),) = self.operations.items()
            return name or None, fields
        return operation_name, self.operations.get(operation_name or "", ())

    def is_query(self, operation_name: str | None) -> bool:
        """Return true if the operation to execute is a query; True also if that is ambiguous."""
        selected = [
            operation
            for operation in _operation_nodes(self.node)
            if operation_name in (None, operation.name.value if operation.name else None)
        ]
        return len(selected) != 1 or selected[0].operation is graphql.OperationType.QUERY

    def input_token(self, variables: Mapping[str, Any]) -> str | None:
        """Return the access token in the input of a subscription, where clients of the service cannot send headers."""
        field = self.first_field()
        if field is None or field.name.value not in TOKEN_IN_INPUT:
            return None
        input_value = next(
            (argument.value for argument in field.arguments or () if argument.name.value == "input"), None
        )
        value = graphql.value_from_ast_untyped(input_value, dict(variables)) if input_value else None
        token = value.get("token") if isinstance(value, dict) else None
        return token if isinstance(token, str) else None

    def first_field(self) -> graphql.FieldNode | None:
        """Return the first field at the root of the first operation, for the path of an error that is about all of
        it."""
        operation = next(iter(_operation_nodes(self.node)), None)
        nodes = operation.selection_set.selections if operation else ()
        return next((node for node in nodes if isinstance(node, graphql.FieldNode)), None)

    def is_introspection(self) -> bool:
        roots = _root_nodes(self.node)
        return bool(roots) and all(
            isinstance(node, graphql.FieldNode) and node.name.value.startswith("__") for node in roots
        )


def _operation_nodes(document: graphql.DocumentNode | None) -> list[graphql.OperationDefinitionNode]:
    definitions = document.definitions if document else ()
    return [definition for definition in definitions if isinstance(definition, graphql.OperationDefinitionNode)]


def _root_nodes(document: graphql.DocumentNode | None) -> list[graphql.SelectionNode]:
    return [node for operation in _operation_nodes(document) for node in operation.selection_set.selections]


class DocumentCache:
    """Cache of parsed documents by text, for one schema."""

    def __init__(self, schema: graphql.GraphQLSchema) -> None:
        self._schema = schema
        self._cache: LRUCache[str, ParsedDocument] = LRUCache(CACHE_SIZE, getsizeof=lambda document: document.length)

    def read(self, text: str) -> ParsedDocument:
        if len(text) > MAX_LENGTH:
            message = f"The document has {len(text)} characters; {MAX_LENGTH} is the most."
            return ParsedDocument(None, ({"message": message, "extensions": {"code": "HC0011"}},))
        document = self._cache.get(text)
        if document is None:
            document = self._cache[text] = self._read(text)
        return document

    def _read(self, text: str) -> ParsedDocument:
        try:
            node = graphql.parse(text, max_tokens=MAX_TOKENS, allow_empty_selection_sets=False)
        except graphql.GraphQLError as error:
            return ParsedDocument(None, (errors.with_code(error, "HC0011"),), length=len(text))
        # Validation takes time in proportion to the size, so a document over the limits is not validated.
        errors_ = size_errors(node) or graphql.validate(
            self._schema, node, validation_rules.RULES, max_errors=MAX_ERRORS
        )
        formatted = tuple({**error.formatted} for error in errors_)
        operations = {
            operation.name.value if operation.name else "": _root_names(operation)
            for operation in _operation_nodes(node)
        }
        return ParsedDocument(node, formatted, operations, len(text), _is_async(node))


def _is_async(document: graphql.DocumentNode) -> bool:
    """Return true if a root field is design data, or may be because it is in a fragment."""
    roots = _root_nodes(document)
    return any(not isinstance(node, graphql.FieldNode) or node.name.value.startswith(DESIGN_PREFIX) for node in roots)


def _root_names(operation: graphql.OperationDefinitionNode) -> tuple[str, ...]:
    """Return the distinct names of the root fields, in order, without those in fragments."""
    fields = (node for node in operation.selection_set.selections if isinstance(node, graphql.FieldNode))
    return tuple(dict.fromkeys(field.name.value for field in fields))


# A field in the operation itself is at depth 1. Introspection by the usual tools goes to 15. Ours: the contract has no
# number.
MAX_DEPTH = 25
# The default of the service's software; it counts fields as they are written.
MAX_FIELDS = 2048


@dataclass(frozen=True, slots=True)
class SelectionSize:
    depth: int
    fields: int


@dataclass(frozen=True, slots=True)
class _OwnSize:
    """The size of a selection set without fragments, and its fragment spreads with the number of levels above them."""

    own: SelectionSize
    spreads: tuple[tuple[str, int], ...]


def size_errors(document: graphql.DocumentNode) -> list[graphql.GraphQLError]:
    """One error, in the words of the service's software, for each limit that an operation exceeds. None for fragments
    with cycles, which validation rejects."""
    fragments = {
        fragment.name.value: _own_size(fragment.selection_set)
        for fragment in document.definitions
        if isinstance(fragment, graphql.FragmentDefinitionNode)
    }
    try:
        sizes = _fragment_sizes(fragments)
    except CycleError:
        return []
    size_errors_ = (
        _size_errors_of(operation, _total_size(_own_size(operation.selection_set), sizes))
        for operation in _operation_nodes(document)
    )
    return [error for group in size_errors_ for error in group]


def _size_errors_of(operation: graphql.OperationDefinitionNode, size: SelectionSize) -> list[graphql.GraphQLError]:
    messages = []
    if size.depth > MAX_DEPTH:
        message = (
            f"The GraphQL document has an execution depth of {size.depth} "
            f"which exceeds the max allowed execution depth of {MAX_DEPTH}."
        )
        extensions = {"allowedExecutionDepth": MAX_DEPTH, "detectedExecutionDepth": size.depth}
        messages.append(graphql.GraphQLError(message, operation, extensions=extensions))
    if size.fields > MAX_FIELDS:
        message = f"The GraphQL request document contains more than {MAX_FIELDS} fields. Parsing aborted."
        messages.append(graphql.GraphQLError(message, operation, extensions={"code": "HC0011"}))
    return messages


def _fragment_sizes(fragments: Mapping[str, _OwnSize]) -> dict[str, SelectionSize]:
    """Return the total size of each fragment. An unknown fragment has size 0."""
    names = {name: [inner for inner, _ in own_size.spreads] for name, own_size in fragments.items()}
    sizes: dict[str, SelectionSize] = {}
    # Inner fragments first, so that each is measured once.
    for name in TopologicalSorter(names).static_order():
        sizes[name] = _total_size(fragments[name], sizes) if name in fragments else SelectionSize(0, 0)
    return sizes


def _total_size(own_size: _OwnSize, sizes: Mapping[str, SelectionSize]) -> SelectionSize:
    inner = [(sizes.get(name, SelectionSize(0, 0)), above) for name, above in own_size.spreads]
    depths = [above + size.depth for size, above in inner if size.depth]
    return SelectionSize(
        max(own_size.own.depth, *depths, 0), own_size.own.fields + sum(size.fields for size, _ in inner)
    )


def _own_size(selection_set: graphql.SelectionSetNode) -> _OwnSize:
    fields, deepest = 0, 0
    spreads: list[tuple[str, int]] = []
    left: list[tuple[graphql.SelectionSetNode, int]] = [(selection_set, 1)]
    while left:
        selections, depth = left.pop()
        for selection in selections.selections:
            if isinstance(selection, graphql.FragmentSpreadNode):
                spreads.append((selection.name.value, depth - 1))
            elif isinstance(selection, graphql.FieldNode):
                fields, deepest = fields + 1, max(deepest, depth)
                if selection.selection_set is not None:
                    left.append((selection.selection_set, depth + 1))
            elif isinstance(selection, graphql.InlineFragmentNode):
                left.append((selection.selection_set, depth))
    return _OwnSize(SelectionSize(deepest, fields), tuple(spreads))
