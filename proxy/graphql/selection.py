"""Selections of clients: merged, and applied by one recursive function to what the upstream has sent (GraphQL October
2021 §6.3, §6.4). Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import graphql
from graphql.execution.values import VariableValues, get_argument_values, get_directive_values
from graphql.language import ast

from proxy.graphql.documents import ClientDocument

PART, TYPENAME = "SupPart", "__typename"
SELLERS = "sellers(includeBrokers: true)"  # as parts are fetched: with brokers
SELLER_FLAGS = {"includeBrokers", "authorizedOnly"}

Fields = tuple["Field", ...]


class Field(NamedTuple):
    """Merged field of a selection: its key in the response, its name, its text with arguments, and what is selected
    below it; None of a scalar.

    `source` is the field of a stored part that it is made of, None where arguments make another value of it: with
    `sellers`, of the sellers whose flags these are. `type_name` is the value of a `__typename`. `is_part`: its values
    are parts.
    """

    key: str
    name: str
    text: str
    source: str | None
    below: Fields | None = None
    is_part: bool = False
    type_name: str | None = None
    sellers: Mapping[str, bool] | None = None


class Compiler:
    """Compiles selections of one request: fragments and directives are gone then. `used` are the variables in
    arguments."""

    def __init__(self, schema: graphql.GraphQLSchema, document: ClientDocument, variables: VariableValues) -> None:
        self._schema, self._document, self._variables = schema, document, variables
        self.used: set[str] = set()

    def merged(self, *selections: ast.SelectionSetNode | None) -> dict[str, list[ast.FieldNode]]:
        """Return the nodes of each key, in the order of the response."""
        merged: dict[str, list[ast.FieldNode]] = {}
        spread: set[str] = set()
        for each in selections:
            self._collect(each, merged, spread)
        return merged

    def field(self, kind: graphql.GraphQLObjectType, key: str, nodes: Sequence[ast.FieldNode]) -> Field:
        """Compile the field that some nodes select. Raises GraphQLError for an argument without its value."""
        node, name = nodes[0], nodes[0].name.value
        if name == TYPENAME:
            return Field(key, name, name, None, type_name=self._document.client_names.get(kind.name, kind.name))
        inner = graphql.get_named_type(kind.fields[name].type)
        below = None
        if isinstance(inner, graphql.GraphQLObjectType):
            merged = self.merged(*(each.selection_set for each in nodes))
            below = tuple(self.field(inner, *each) for each in merged.items())
        self.used.update(*(_variables(each.value) for each in node.arguments or ()))
        text = f"{name}({', '.join(map(graphql.print_ast, node.arguments))})" if node.arguments else name
        source, sellers = self._source(kind, node)
        return Field(key, name, text, source, below, inner.name == PART, sellers=sellers)

    def _source(
        self, kind: graphql.GraphQLObjectType, node: ast.FieldNode
    ) -> tuple[str | None, Mapping[str, bool] | None]:
        """Return the field of a part that a field is made of, and the flags of sellers."""
        name = node.name.value
        if kind is self._schema.query_type:
            return name, None
        if (kind.name, name) != (PART, "sellers"):
            return None if node.arguments else name, None
        try:
            given = get_argument_values(kind.fields[name], node, self._variables)
        except graphql.GraphQLError:  # null where it is no value: an error of each part
            return None, None
        is_page = any(given.get(name) is not None for name in given.keys() - SELLER_FLAGS)
        return (None, None) if is_page else (SELLERS, given)

    def _collect(
        self, selections: ast.SelectionSetNode | None, merged: dict[str, list[ast.FieldNode]], spread: set[str]
    ) -> None:
        # The condition of a fragment holds in a valid document: the objects of parts are of no union.
        for node in filter(self._is_included, selections.selections if selections else ()):
            if isinstance(node, ast.FieldNode):
                merged.setdefault((node.alias or node.name).value, []).append(node)
            elif isinstance(node, ast.InlineFragmentNode):
                self._collect(node.selection_set, merged, spread)
            elif isinstance(node, ast.FragmentSpreadNode) and node.name.value not in spread:
                spread.add(node.name.value)
                self._collect(self._document.fragments[node.name.value].selection_set, merged, spread)

    def _is_included(self, node: ast.SelectionNode) -> bool:
        if not node.directives:
            return True
        skip = get_directive_values(graphql.GraphQLSkipDirective, node, self._variables) or {"if": False}
        include = get_directive_values(graphql.GraphQLIncludeDirective, node, self._variables) or {"if": True}
        return bool(include["if"] and not skip["if"])


def _variables(node: ast.Node) -> Iterator[str]:
    """Yield the names of the variables in a value."""
    if isinstance(node, ast.VariableNode):
        yield node.name.value
    inside = node.values if isinstance(node, ast.ListValueNode) else getattr(node, "fields", ())
    for each in inside:
        yield from _variables(each.value if isinstance(each, ast.ObjectFieldNode) else each)


def printed(field: Field, key: str | None = None) -> str:
    """Return a field as text, with what is selected below it, under a key of its own."""
    below = "" if field.below is None else f" {{ {' '.join(printed(each, each.key) for each in field.below)} }}"
    return (field.text if key in (field.name, None) else f"{key}: {field.text}") + below


def select(value: Any, fields: Fields | None, *, as_sent: bool = False) -> Any:
    """Return what a client gets of a value of the upstream, or, `as_sent`, of a response to its own selection. Raises
    KeyError or TypeError if the upstream has sent another form."""
    if fields is None or value is None:
        return value
    if isinstance(value, list):
        return [select(each, fields, as_sent=as_sent) for each in value]
    selected = {}
    for field in fields:
        member: Any = field.type_name or value[field.key if as_sent else field.name]
        if not as_sent and (flags := field.sellers) is not None:
            shown = [each for each in member if flags["includeBrokers"] or not each["isBroker"]]
            member = [each for each in shown if each["isAuthorized"] or not flags["authorizedOnly"]]
        selected[field.key] = member if field.below is None else select(member, field.below, as_sent=as_sent)
    return selected


def paths(fields: Fields | None, prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of what is selected, those within parts from the part on."""
    for field in fields or ():
        if field.type_name is None:
            path = f"{prefix}{field.source}"
            yield path
            yield from paths(field.below, "" if field.is_part else f"{path}.")


def depth(fields: Fields | None) -> int:
    """Return how far parts are selected within parts."""
    return max((field.is_part + depth(field.below) for field in fields or ()), default=0)


def parts_of(value: Any, field: Field) -> Iterator[Any]:
    """Yield the parts in the value of a field as a response has it, null for one that is not there. Parts within parts
    are not yielded."""
    if isinstance(value, list):
        for each in value:
            yield from parts_of(each, field)
    elif field.is_part:
        yield value
    elif isinstance(value, dict):
        for below in field.below or ():
            yield from parts_of(value.get(below.key), below)
