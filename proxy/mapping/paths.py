"""Paths in mapping files, such as `sellers(includeBrokers: true).offers.prices{quantity price}`: parsed, and read as
Python expressions, for which their fields are selected.

Dots are short for nested selections; the rest is GraphQL and is parsed as such. A path that is read carries the
conditions for null; the compiler chooses the value for that case.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import graphql

from proxy.mapping.selection import Node, Schema, Step

CONTEXT = ("country", "currency", "requested_uid", "sellers")  # of model.MappingContext, what a path can name


class PathError(ValueError):
    """The text is not a valid path; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Route:
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
    steps = tuple(_step(_field(segment, text)) for segment in _segments(below))
    # Braces end a path: what is selected in them is read by a transform, not by further steps.
    if any(step.below for step in steps[:-1]):
        raise PathError(f"{text!r} is not a path: only its last step can have braces")
    return Route(origin, steps)


def _segments(text: str) -> list[str]:
    """Split a path at its dots, except those inside parentheses and braces."""
    cuts, depth = [-1], 0
    for position, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "." and depth == 0:
            cuts.append(position)
    return [text[a + 1 : b] for a, b in pairwise([*cuts, len(text)])]


def _field(segment: str, text: str) -> graphql.FieldNode:
    try:
        # Parsed as a document of one field, so that arguments and braces need no grammar of their own.
        document = graphql.parse("{" + segment + "}", no_location=True)
    except graphql.GraphQLError as error:
        raise PathError(f"{text!r} is not a path: {error.message}") from error
    match document.definitions[0]:
        case graphql.OperationDefinitionNode(selection_set=graphql.SelectionSetNode(selections=(field,))) if isinstance(
            field, graphql.FieldNode
        ):
            return field
    raise PathError(f"{text!r} is not a path: {segment!r} is more than one field")


def _step(node: graphql.FieldNode) -> Step:
    arguments = ", ".join(graphql.print_ast(argument) for argument in node.arguments or ())
    selections = node.selection_set.selections if node.selection_set else ()
    below = tuple(_step(child) for child in selections if isinstance(child, graphql.FieldNode))
    return Step(node.name.value, f"({arguments})" if arguments else "", below)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Start of a path: an expression of the mapping function, and the selection that it reads from."""

    expression: str
    node: Node


@dataclass(frozen=True, slots=True)
class ReadExpression:
    """Expression of a value, the conditions under which it is null, and the type that it has."""

    expression: str
    nulls: tuple[str, ...]
    node: Node

    def guarded(self, value: str, blank: str) -> str:
        """Return `value`, or `blank` where any field on the path is null."""
        # `None if x is None else x` is `x`: the value itself is null where it should be.
        passes_null = self.nulls == (f"{value} is None",) and blank == "None"
        if not self.nulls or passes_null:
            return value
        return f"({blank} if {' or '.join(self.nulls)} else {value})"


@dataclass(frozen=True, slots=True)
class Scope:
    """Objects that a path can start from: the object itself, and the one that it is listed under (`^`)."""

    here: Cursor
    above: Cursor | None

    def origin(self, route: Route) -> Cursor:
        """Return the cursor that a route starts at. Raises LookupError for a `^` without a parent object."""
        if route.origin == "here":
            return self.here
        if self.above is None:
            raise LookupError("nothing is around this object: `^` has no meaning here")
        return self.above


class PathReader:
    """Follows paths through the schema and selects what they read."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def read(self, text: str, scope: Scope) -> ReadExpression:
        """Read one path of a mapping file. Raises PathError, or LookupError for a field that the schema does not
        have."""
        route = parse(text)
        if route.origin == "context":
            name = route.steps[0].name
            if name not in CONTEXT:
                available = ", ".join(f"${field}" for field in CONTEXT)
                raise LookupError(f"the request's context has no ${name}; it has {available}")
            return ReadExpression(f"context.{name}", (), Node("String"))
        return self.follow(scope.origin(route), route.steps)

    def follow(self, start: Cursor, steps: tuple[Step, ...]) -> ReadExpression:
        """Return the value at the end of some steps."""
        expression, node = start.expression, start.node
        nulls: list[str] = []
        for step in steps:
            selected = node.select(self._schema, step)
            expression, node = f"{expression}.{step.name}", selected.node
            if selected.type.nullable:
                nulls.append(f"{expression} is None")
        return ReadExpression(expression, tuple(nulls), node)

    def up_to_lists(self, steps: tuple[Step, ...], start: Node) -> list[tuple[Step, ...]]:
        """Split the steps into groups that each end at a list; the last group may end at a single value."""
        groups: list[tuple[Step, ...]] = []
        group: tuple[Step, ...] = ()
        node = start
        for step in steps:
            selected = node.select(self._schema, step)
            group, node = (*group, step), selected.node
            if selected.type.is_list:
                groups.append(group)
                group = ()
        # A path without steps (`.`) is one empty group: a loop over the value itself.
        return [*groups, group] if group or not steps else groups

    def is_list(self, steps: tuple[Step, ...], start: Node) -> bool:
        """Return whether the last of these steps holds a list."""
        if not steps:
            return False
        owner = self.follow(Cursor("", start), steps[:-1]).node
        return owner.select(self._schema, steps[-1]).type.is_list
