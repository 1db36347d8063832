"""Selection sets: a tree of fields of the schema, which grows while rules are compiled. It is printed as GraphQL, and
makes the types that responses are decoded into.

The schema is the part of the upstream's that the mappings read, from mappings/schema.graphql: a path that is not in it
fails at start.
"""

import types
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import graphql
import msgspec

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


@dataclass(frozen=True, slots=True)
class FieldType:
    """Type of a field: the bare type's name, and whether it is a list and may be null."""

    name: str
    nullable: bool
    is_list: bool
    items_nullable: bool


class Schema:
    """Object types and their fields. Built once from SDL text."""

    def __init__(self, sdl: str) -> None:
        self._schema = _built(sdl)

    def has(self, type_name: str) -> bool:
        """Return whether a mapping can read this type: an object type of the schema, or a scalar."""
        return type_name in SCALARS or isinstance(self._schema.type_map.get(type_name), graphql.GraphQLObjectType)

    def field(self, type_name: str, field_name: str) -> FieldType | None:
        """Return the type of a field, None if the schema has no such field."""
        owner = self._schema.type_map.get(type_name)
        if not isinstance(owner, graphql.GraphQLObjectType) or field_name not in owner.fields:
            return None
        return _unwrap(owner.fields[field_name].type)


# Building is slow, and tests and commands load the same file again.
@lru_cache(maxsize=1)
def _built(sdl: str) -> graphql.GraphQLSchema:
    return graphql.build_schema(sdl)


def _unwrap(wrapped: Any) -> FieldType:
    nullable = not isinstance(wrapped, graphql.GraphQLNonNull)
    bare = wrapped.of_type if not nullable else wrapped
    is_list = isinstance(bare, graphql.GraphQLList)
    items_nullable = False
    if is_list:
        bare = bare.of_type
        items_nullable = not isinstance(bare, graphql.GraphQLNonNull)
        bare = bare if items_nullable else bare.of_type
    return FieldType(bare.name, nullable, is_list, items_nullable)


@dataclass(frozen=True, slots=True)
class Step:
    """One field of a path: its name, its printed arguments, and the selection in braces below a last step."""

    name: str
    arguments: str = ""
    below: tuple["Step", ...] = ()


@dataclass(slots=True)
class Node:
    """Selected object type, and the fields selected of it, by name: a field has the same arguments wherever it is
    selected."""

    type_name: str
    fields: dict[str, "Selected"] = field(default_factory=dict)

    def select(self, schema: Schema, step: Step) -> "Selected":
        """Add a field with its selection in braces, or find it if it was added before. Raises LookupError."""
        selected = self.fields.get(step.name)
        if selected is None:
            kind = schema.field(self.type_name, step.name)
            if kind is None:
                raise LookupError(f"the service's type {self.type_name} has no field {step.name!r}")
            selected = self.fields[step.name] = Selected(step, kind, Node(kind.name))
        if selected.step.arguments != step.arguments:
            raise LookupError(
                f"{step.name}{step.arguments} is {selected.step.name}{selected.step.arguments} in another path;"
                " a field has the same arguments in all paths"
            )
        for child in step.below:
            selected.node.select(schema, child)
        return selected

    def text(self) -> str:
        """Return the fields as GraphQL, without outer braces; in a fixed order, so that equal projections share
        documents."""
        return " ".join(selected.text() for _, selected in sorted(self.fields.items()))

    def paths(self) -> frozenset[str]:
        """Return every selected field with its arguments. A selection set can replace another if it has all of its
        paths."""
        return frozenset(path for _, selected in self.fields.items() for path in selected.paths())

    def record(self) -> type:
        """Return the type that one object of a response is decoded into. Nullable fields may be absent, others are
        required."""
        # A scalar: Selected.record makes it a list, or nullable.
        if self.type_name in SCALARS:
            return SCALARS[self.type_name]
        fields = ((name, selected.record(), selected.type.nullable) for name, selected in sorted(self.fields.items()))
        # A service sends the fields of a selection set in its order; msgspec decodes them faster in a struct's order,
        # which keyword-only fields keep: others are moved behind those without a default.
        ordered = ((name, kind, None) if nullable else (name, kind) for name, kind, nullable in fields)
        return _record(self.type_name, tuple(ordered))


@lru_cache(RECORDS_MAX)
def _record(type_name: str, fields: tuple[tuple[Any, ...], ...]) -> type:
    # A decoded response has no reference cycles, so the garbage collector need not track its objects.
    return msgspec.defstruct(type_name, fields, kw_only=True, gc=False)


@dataclass(slots=True)
class Selected:
    """Selected field: its step, its type, and the selection below it."""

    step: Step
    type: FieldType
    node: Node

    def text(self) -> str:
        name = f"{self.step.name}{self.step.arguments}"
        if self.type.name in SCALARS:
            return name
        return f"{name} {{ {self.node.text() or NOTHING} }}"

    def paths(self) -> list[str]:
        here = f"{self.step.name}{self.step.arguments}"
        return [here, *(f"{here}.{below}" for below in self.node.paths())]

    def record(self) -> Any:
        kind: Any = self.node.record()
        if self.type.is_list:
            kind = types.GenericAlias(list, (kind | None if self.type.items_nullable else kind,))
        return kind | None if self.type.nullable else kind
