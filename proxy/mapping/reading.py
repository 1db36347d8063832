"""Reader of paths: turns a path into a Python expression, and selects the fields on it.

The result carries the conditions for null; the caller chooses the value for that case.
"""

from dataclasses import dataclass

from proxy.mapping import paths, selection
from proxy.mapping.schema import Schema

CONTEXT = ("country", "currency", "requested_uid", "sellers")  # of model.MappingContext, what a path can name


@dataclass(frozen=True, slots=True)
class Cursor:
    """Start of a path: an expression of the mapping function, and the selection that it reads from."""

    expression: str
    node: selection.Node


@dataclass(frozen=True, slots=True)
class ReadExpression:
    """Expression of a value, the conditions under which it is null, and the type that it has."""

    expression: str
    nulls: tuple[str, ...]
    node: selection.Node

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

    def origin(self, route: paths.Route) -> Cursor:
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
        route = paths.parse(text)
        if route.origin == "context":
            return _context(route.steps[0].name)
        return self.follow(scope.origin(route), route.steps)

    def follow(self, start: Cursor, steps: tuple[paths.Step, ...]) -> ReadExpression:
        """Return the value at the end of some steps."""
        expression, node = start.expression, start.node
        nulls: list[str] = []
        for step in steps:
            selected = node.select(self._schema, step)
            expression, node = f"{expression}.{step.name}", selected.node
            if selected.type.nullable:
                nulls.append(f"{expression} is None")
        return ReadExpression(expression, tuple(nulls), node)

    def up_to_lists(self, steps: tuple[paths.Step, ...], start: selection.Node) -> list[tuple[paths.Step, ...]]:
        """Split the steps into groups that each end at a list; the last group may end at a single value."""
        groups: list[tuple[paths.Step, ...]] = []
        group: tuple[paths.Step, ...] = ()
        node = start
        for step in steps:
            selected = node.select(self._schema, step)
            group, node = (*group, step), selected.node
            if selected.type.is_list:
                groups.append(group)
                group = ()
        # A path without steps (`.`) is one empty group: a loop over the value itself.
        return [*groups, group] if group or not steps else groups

    def is_list(self, steps: tuple[paths.Step, ...], start: selection.Node) -> bool:
        """Return whether the last of these steps holds a list."""
        if not steps:
            return False
        owner = self.follow(Cursor("", start), steps[:-1]).node
        return owner.select(self._schema, steps[-1]).type.is_list


def _context(name: str) -> ReadExpression:
    if name not in CONTEXT:
        available = ", ".join(f"${field}" for field in CONTEXT)
        raise LookupError(f"the request's context has no ${name}; it has {available}")
    return ReadExpression(f"context.{name}", (), selection.Node("String"))
