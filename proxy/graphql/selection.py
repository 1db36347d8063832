"""Selections of clients: fields merged as the GraphQL specification says, and the function that renders parts.

A selection of parts is compiled once to what v3's mappings are compiled to: the fields that it reads, a decoder that
reads only these, and a Python function that makes of a record the object that the client gets. Values are passed on as
the JSON that the upstream sent (GraphQL October 2021 §6.3, §6.4).
"""

import itertools
import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.execution import values
from graphql.language import ast

from proxy.mapping.compiler import CompiledObject
from proxy.planning import exact_match

PART = "SupPart"
SELLERS = "sellers(includeBrokers: true)"  # with brokers once, of which any arguments of the field are a part
SELLER_FLAGS = {"includeBrokers", "authorizedOnly"}
TYPENAME = "__typename"
# Fields that are read here, with the types that they are read as: by the arguments of sellers, and by matching.
READ: Mapping[tuple[str, str], Any] = {
    ("SupPartSeller", "isBroker"): bool,
    ("SupPartSeller", "isAuthorized"): bool,
    (PART, "mpn"): str,
    (PART, "akaMpns"): list[str],
}


class NotHeldError(Exception):
    """A selection has a field that cannot be derived from records of parts."""


class Field(NamedTuple):
    """Field of a merged selection: its key in the response, and the nodes that select it; all have its name and
    arguments."""

    key: str
    nodes: tuple[ast.FieldNode, ...]

    @property
    def name(self) -> str:
        return self.nodes[0].name.value


class Selections:
    """Merges the selections of one operation; `variables` are those that its directives and arguments have."""

    def __init__(
        self,
        schema: graphql.GraphQLSchema,
        fragments: Mapping[str, ast.FragmentDefinitionNode],
        variables: values.VariableValues,
        client_names: Mapping[str, str],
    ) -> None:
        self.schema = schema
        self.variables = variables
        self._fragments = fragments
        self._client_names = client_names

    def fields(self, *selections: ast.SelectionSetNode | None) -> list[Field]:
        """Return the merged fields of selection sets on one object type, in the order of the response. The schema has
        no interface or union, so that the condition of a fragment always holds in a valid document."""
        merged: dict[str, list[ast.FieldNode]] = {}
        self._collect(selections, merged, set())
        return [Field(key, tuple(nodes)) for key, nodes in merged.items()]

    def below(self, field: Field) -> list[Field]:
        """Return the merged fields below a field."""
        return self.fields(*(node.selection_set for node in field.nodes))

    def arguments(self, kind: graphql.GraphQLObjectType, field: Field) -> dict[str, Any]:
        """Return the arguments of a field with their defaults. Raises GraphQLError for one that is missing."""
        return values.get_argument_values(kind.fields[field.name], field.nodes[0], self.variables)

    def type_name(self, kind: graphql.GraphQLNamedType) -> str:
        """Return the name that `__typename` shows."""
        return self._client_names.get(kind.name, kind.name)

    def _collect(
        self,
        selections: Sequence[ast.SelectionSetNode | None],
        merged: dict[str, list[ast.FieldNode]],
        spread: set[str],
    ) -> None:
        for node in itertools.chain.from_iterable(each.selections for each in selections if each is not None):
            if not self._is_included(node):
                continue
            if isinstance(node, ast.FieldNode):
                merged.setdefault((node.alias or node.name).value, []).append(node)
            elif isinstance(node, ast.InlineFragmentNode):
                self._collect((node.selection_set,), merged, spread)
            elif isinstance(node, ast.FragmentSpreadNode) and node.name.value not in spread:
                spread.add(node.name.value)
                self._collect((self._fragments[node.name.value].selection_set,), merged, spread)

    def _is_included(self, node: Any) -> bool:
        if not node.directives:
            return True
        skip = values.get_directive_values(graphql.GraphQLSkipDirective, node, self.variables)
        include = values.get_directive_values(graphql.GraphQLIncludeDirective, node, self.variables)
        return not (skip and skip["if"]) and (include is None or bool(include["if"]))


class _Node:
    """What is read of an object of the upstream: its fields with their arguments, and what is read below them."""

    def __init__(self, kind: graphql.GraphQLObjectType) -> None:
        self.kind = kind
        self.children: dict[str, _Node | None] = {}

    def leaf(self, field: str) -> None:
        self.children[field] = None

    def child(self, field: str, kind: graphql.GraphQLObjectType) -> "_Node":
        node = self.children.get(field)
        if node is None:
            node = self.children[field] = _Node(kind)
        return node

    def text(self) -> str:
        parts = (f"{field} {{ {node.text()} }}" if node else field for field, node in sorted(self.children.items()))
        return " ".join(parts) or TYPENAME

    def paths(self) -> Iterator[str]:
        for field, node in self.children.items():
            yield field
            if node is not None:
                yield from (f"{field}.{path}" for path in node.paths())

    def record(self) -> type:
        """Return the type that records are decoded into. Scalars stay JSON."""
        members, names = [], {}
        for field, node in sorted(self.children.items()):
            name = field.partition("(")[0]
            attribute = attribute_of(name)
            names[attribute] = name
            kind: Any = msgspec.Raw if node is None else node.record()
            kind = READ.get((self.kind.name, name), kind)
            members.append((attribute, kind if node is None else _wrapped(self.kind.fields[name].type, kind)))
        return msgspec.defstruct(self.kind.name, members, rename=names, gc=False)


def attribute_of(field: str) -> str:
    """Return the name of a field as an attribute, which a keyword would not be."""
    return f"{field}_" if keyword.iskeyword(field) else field


def _wrapped(kind: Any, inner: Any) -> Any:
    if isinstance(kind, graphql.GraphQLNonNull):
        return _bare(kind.of_type, inner)
    return _bare(kind, inner) | None


def _bare(kind: Any, inner: Any) -> Any:
    return list[_wrapped(kind.of_type, inner)] if isinstance(kind, graphql.GraphQLList) else inner  # type: ignore[misc]


class _PartWriter:
    """Writes the expression that renders a part."""

    def __init__(self, selections: Selections) -> None:
        self._selections = selections
        self._variables = (f"v{number}" for number in itertools.count())

    def compile(self, part: graphql.GraphQLObjectType, fields: list[Field]) -> CompiledObject:
        node, variable = _Node(part), "part"
        for number in exact_match.NUMBERS:
            node.leaf(number)
        expression = self._object(part, fields, variable, node)
        source = f"def render({variable}, context):\n    return {expression}\n"
        namespace: dict[str, Any] = {}
        try:
            exec(compile(source, "<selection>", "exec"), namespace)  # noqa: S102 - names of the schema and of GraphQL only
        except (SyntaxError, RecursionError, MemoryError) as error:  # lists nested deeper than Python allows
            raise NotHeldError("nested too deeply") from error
        return CompiledObject(node.text(), frozenset(node.paths()), node.record(), namespace["render"], source)

    def _object(self, kind: graphql.GraphQLObjectType, fields: list[Field], value: str, node: _Node) -> str:
        members = (f"{field.key!r}: {self._member(kind, field, value, node)}" for field in fields)
        return "{" + ", ".join(members) + "}"

    def _member(self, kind: graphql.GraphQLObjectType, field: Field, value: str, node: _Node) -> str:
        if field.name == TYPENAME:
            return repr(self._selections.type_name(kind))
        definition = kind.fields[field.name]
        inner = graphql.get_named_type(definition.type)
        if holds_parts(inner):
            raise NotHeldError(field.name)
        read = f"{value}.{attribute_of(field.name)}"
        if kind.name == PART and field.name == "sellers":
            return self._sellers(field, read, inner, node)
        if field.nodes[0].arguments:
            raise NotHeldError(field.name)
        if not isinstance(inner, graphql.GraphQLObjectType):
            node.leaf(field.name)
            return read
        below = node.child(field.name, inner)
        return self._value(definition.type, inner, self._selections.below(field), read, below)

    def _sellers(self, field: Field, read: str, seller: Any, node: _Node) -> str:
        kind = node.kind
        try:
            arguments = self._selections.arguments(kind, field)
        except graphql.GraphQLError as error:  # null where it is no value: an error of each part
            raise NotHeldError(field.name) from error
        if any(arguments.get(name) is not None for name in arguments.keys() - SELLER_FLAGS):
            raise NotHeldError(field.name)  # a page of sellers
        below = node.child(SELLERS, seller)
        variable = next(self._variables)
        conditions = []
        if not arguments["includeBrokers"]:
            conditions.append(f"not {variable}.{attribute_of('isBroker')}")
            below.leaf("isBroker")
        if arguments["authorizedOnly"]:
            conditions.append(f"{variable}.{attribute_of('isAuthorized')}")
            below.leaf("isAuthorized")
        rendered = self._object(seller, self._selections.below(field), variable, below)
        clause = f" if {' and '.join(conditions)}" if conditions else ""
        return f"[{rendered} for {variable} in {read}{clause}]"

    def _value(self, kind: Any, inner: Any, fields: list[Field], read: str, node: _Node) -> str:
        """Return the expression of an object, a list of objects, or null."""
        if not isinstance(kind, graphql.GraphQLNonNull):
            return (
                f"(None if {read} is None else {self._value(graphql.GraphQLNonNull(kind), inner, fields, read, node)})"
            )
        if isinstance(kind.of_type, graphql.GraphQLList):
            variable = next(self._variables)
            return f"[{self._value(kind.of_type.of_type, inner, fields, variable, node)} for {variable} in {read}]"
        return self._object(inner, fields, read, node)


def holds_parts(kind: graphql.GraphQLNamedType) -> bool:
    """Return whether objects of a type are parts, or have parts as fields: nested parts are no records."""
    return kind.name == PART or (
        isinstance(kind, graphql.GraphQLObjectType)
        and any(graphql.get_named_type(field.type).name == PART for field in kind.fields.values())
    )


def compile_part(selections: Selections, fields: list[Field]) -> CompiledObject:
    """Compile a selection of parts. Raises NotHeldError."""
    part = selections.schema.type_map[PART]
    assert isinstance(part, graphql.GraphQLObjectType)  # noqa: S101 - the shipped schema has it
    return _PartWriter(selections).compile(part, fields)
