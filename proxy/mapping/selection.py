"""Selection sets: a tree of fields that grows while rules are compiled. It is printed as GraphQL, and makes the
types that responses are decoded into."""

import types
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from proxy.mapping.paths import Step
from proxy.mapping.schema import SCALARS, FieldType, Schema

NOTHING = "__typename"  # an empty selection set is not valid GraphQL
RECORDS_MAX = 1024  # cached types of records: projections share most of theirs


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
