"""Paths in mapping files, such as `sellers(includeBrokers: true).offers.prices{quantity price}`: parsed, read as Python
expressions, and collected in selection sets, which are printed as GraphQL and make the types that responses are decoded
into.

Dots are short for nested selections; the rest is GraphQL and is parsed as such. A path that is read carries the
conditions for null; the compiler chooses the value for that case. The schema is the part of the upstream's that the
mappings read, from mappings/schema.graphql: a path that is not in it fails at start.
"""

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import graphql
import msgspec

CONTEXT = ("country", "currency", "requested_uid", "sellers")  # of model.MappingContext, what a path can name
NOTHING = "__typename"  # an empty selection set is not valid GraphQL
RECORDS_MAX = 1024  # cached types of records: projections share most of theirs
SCALARS: dict[str, type] = {
    # Numeric, but GraphQL sends ids as strings.
    "ID": str,
    "String": str,
    # RFC 3339; a transform parses it, where a field needs that.
    "Time": str,
    "DateTime": str,
    "Int": int,
    "Float": float,
    "Boolean": bool,
    "Map": dict,
}


class PathError(ValueError):
    """The text is not a valid path; the message gives the reason."""


class Step(NamedTuple):
    """One field of a path: its name, its printed arguments, and the selection in braces below a last step."""

    name: str
    arguments: str = ""
    below: tuple["Step", ...] = ()


class Route(NamedTuple):
    """Parsed path. `origin` is "here", "above" (`^`) or "context" (`$`, then `steps` is the one name)."""

    origin: str
    steps: tuple[Step, ...]


@lru_cache(maxsize=4096)
def parse(text: str) -> Route:
    """Parse a path. Cached, because every projection parses the same paths. Raises PathError."""
    if text.startswith("$"):
        return Route("context", (Step(text[1:]),))
    origin, below = ("above", text[1:]) if text.startswith("^") else ("here", text)
    if below in ("", "."):
        return Route(origin, ())
    # At its dots, except those inside parentheses and braces.
    cuts, depth = [-1], 0
    for position, char in enumerate(below):
        depth += (char in "({") - (char in ")}")
        if char == "." and depth == 0:
            cuts.append(position)
    steps: list[Step] = []
    for segment in (below[a + 1 : b] for a, b in pairwise([*cuts, len(below)])):
        try:
            # Parsed as a document of one field, so that arguments and braces need no grammar of their own.
            document = graphql.parse("{" + segment + "}", no_location=True)
        except graphql.GraphQLError as error:
            raise PathError(f"{text!r} is not a path: {error.message}") from error
        match document.definitions[0]:
            case graphql.OperationDefinitionNode(
                selection_set=graphql.SelectionSetNode(selections=(graphql.FieldNode() as only,))
            ):
                steps.append(_step(only))
            case _:
                raise PathError(f"{text!r} is not a path: {segment!r} is more than one field")
    # Braces end a path: what is selected in them is read by a transform, not by further steps.
    if any(step.below for step in steps[:-1]):
        raise PathError(f"{text!r} is not a path: only its last step can have braces")
    return Route(origin, tuple(steps))


def _step(node: graphql.FieldNode) -> Step:
    arguments = ", ".join(graphql.print_ast(argument) for argument in node.arguments or ())
    selections = node.selection_set.selections if node.selection_set else ()
    below = tuple(_step(child) for child in selections if isinstance(child, graphql.FieldNode))
    return Step(node.name.value, f"({arguments})" if arguments else "", below)


class FieldType(NamedTuple):
    """Type of a field: the bare type's name, and whether it is a list and may be null."""

    name: str
    nullable: bool
    is_list: bool
    items_nullable: bool


Schema = Mapping[str, Mapping[str, FieldType]]  # the fields of all types that a mapping can read; scalars have none


# Building is slow, and tests and commands load the same file again.
@lru_cache(maxsize=1)
def read_schema(sdl: str) -> Schema:
    """Return the object types of a schema with their fields, and scalars."""
    schema: dict[str, dict[str, FieldType]] = {name: {} for name in SCALARS}
    for owner in graphql.build_schema(sdl).type_map.values():
        if not isinstance(owner, graphql.GraphQLObjectType):
            continue
        fields = schema[owner.name] = {}
        for name, each in owner.fields.items():
            bare: Any = each.type
            nullable = not isinstance(bare, graphql.GraphQLNonNull)
            bare = bare if nullable else bare.of_type
            is_list = isinstance(bare, graphql.GraphQLList)
            bare = bare.of_type if is_list else bare
            items_nullable = is_list and not isinstance(bare, graphql.GraphQLNonNull)
            bare = bare.of_type if isinstance(bare, graphql.GraphQLNonNull) else bare
            fields[name] = FieldType(bare.name, nullable, is_list, items_nullable)
    return schema


@dataclass(slots=True)
class Selected:
    """Selected field: its step, its type, and the selection below it. `text` is its name with its arguments."""

    step: Step
    type: FieldType
    node: "Node"
    text: str


@dataclass(slots=True)
class Node:
    """Selected object type, and its selected fields by name: a field has the same arguments in all paths."""

    type_name: str
    fields: dict[str, Selected] = field(default_factory=dict)

    def select(self, schema: Schema, step: Step) -> Selected:
        """Add a field with its selection in braces, or find it if it was added before. Raises LookupError."""
        selected, text = self.fields.get(step.name), f"{step.name}{step.arguments}"
        if selected is None:
            kind = schema.get(self.type_name, {}).get(step.name)
            if kind is None:
                raise LookupError(f"the service's type {self.type_name} has no field {step.name!r}")
            selected = self.fields[step.name] = Selected(step, kind, Node(kind.name), text)
        if selected.text != text:
            raise LookupError(f"{text} is {selected.text} in another path; a field has the same arguments in all paths")
        for child in step.below:
            selected.node.select(schema, child)
        return selected

    def text(self) -> str:
        """Return the fields as GraphQL, without outer braces; in a fixed order, so that documents are shared."""
        return " ".join(
            each.text if each.type.name in SCALARS else f"{each.text} {{ {each.node.text() or NOTHING} }}"
            for _, each in sorted(self.fields.items())
        )

    def paths(self) -> Iterator[str]:
        """Yield every selected field with its arguments. A selection set can replace one whose paths it has."""
        for each in self.fields.values():
            yield each.text
            yield from (f"{each.text}.{below}" for below in each.node.paths())

    def record(self) -> type:
        """Return the type that one object of a response is decoded into. Only nullable fields may be absent."""
        if self.type_name in SCALARS:
            return SCALARS[self.type_name]
        fields: list[tuple[Any, ...]] = []
        for name, each in sorted(self.fields.items()):
            kind: Any = each.node.record()
            if each.type.is_list:
                kind = types.GenericAlias(list, (kind | None if each.type.items_nullable else kind,))
            fields.append((name, kind | None, None) if each.type.nullable else (name, kind))
        # A service sends the fields of a selection set in its order; msgspec decodes them faster in a struct's order,
        # which keyword-only fields keep: others are moved behind those without a default.
        # It has no reference cycles, so the garbage collector need not track its objects.
        return _record(self.type_name, tuple(fields), kw_only=True, gc=False)


_record = lru_cache(RECORDS_MAX)(msgspec.defstruct)


class ReadExpression(NamedTuple):
    """Expression of a value in the mapping function, the selection of its type, and the conditions under which it is
    null. Paths start at one: an object, or the element of a list."""

    expression: str
    node: Node
    nulls: tuple[str, ...] = ()

    def follow(self, schema: Schema, step: Step) -> tuple["ReadExpression", bool]:
        """Return the value of a field of this object, which is selected, and whether it is a list."""
        selected = self.node.select(schema, step)
        expression = f"{self.expression}.{step.name}"
        nulls = (*self.nulls, f"{expression} is None") if selected.type.nullable else self.nulls
        return ReadExpression(expression, selected.node, nulls), selected.type.is_list

    def guarded(self, value: str, blank: str) -> str:
        """Return `value`, or `blank` where any field on the path is null."""
        # `None if x is None else x` is `x`: the value itself is null where it should be.
        passes_null = self.nulls == (f"{value} is None",) and blank == "None"
        if not self.nulls or passes_null:
            return value
        return f"({blank} if {' or '.join(self.nulls)} else {value})"


class Scope(NamedTuple):
    """Objects that a path can start from: the object itself, and the one that it is listed under (`^`)."""

    here: ReadExpression
    above: ReadExpression | None

    def origin(self, route: Route) -> ReadExpression:
        """Return the object that a route starts at. Raises LookupError for a `^` without a parent object."""
        if route.origin == "here":
            return self.here
        if self.above is None:
            raise LookupError("nothing is around this object: `^` has no meaning here")
        return self.above


def read(schema: Schema, text: str, scope: Scope) -> ReadExpression:
    """Read one path of a mapping file. Raises PathError, or LookupError for a field that the schema does not have."""
    route = parse(text)
    if route.origin == "context":
        name = route.steps[0].name
        if name not in CONTEXT:
            available = ", ".join(f"${field}" for field in CONTEXT)
            raise LookupError(f"the request's context has no ${name}; it has {available}")
        return ReadExpression(f"context.{name}", Node("String"))
    found = scope.origin(route)
    for step in route.steps:
        found, _ = found.follow(schema, step)
    return found
