"""Selection sets: a tree of fields that grows while rules are compiled, then is printed as GraphQL and makes the types
that responses are decoded into.
"""

import types
from dataclasses import dataclass, field
from typing import Any

import msgspec

from proxy.mapping.paths import Step
from proxy.mapping.schema import SCALARS, FieldType, Schema

NOTHING = "__typename"  # stands for no fields, which is no GraphQL


class UnknownFieldError(LookupError):
    """A path leaves the schema; the message names type and field."""


@dataclass(slots=True)
class Node:
    """A selected object type and the fields selected of it, by alias."""

    type_name: str
    fields: dict[str, "Selected"] = field(default_factory=dict)

    def select(self, schema: Schema, step: Step) -> "Selected":
        """Add one field (and what its braces hold), or find it again. Raises UnknownFieldError."""
        known = self.fields.get(step.alias)
        if known is None:
            kind = schema.field(self.type_name, step.name)
            if kind is None:
                raise UnknownFieldError(f"the service's type {self.type_name} has no field {step.name!r}")
            known = self.fields[step.alias] = Selected(step, kind, Node(kind.name))
        for child in step.below:
            known.node.select(schema, child)
        return known

    def text(self) -> str:
        """The fields as GraphQL, without outer braces; in a fixed order, so that equal projections share documents."""
        return " ".join(selected.text() for _, selected in sorted(self.fields.items()))

    def paths(self) -> frozenset[str]:
        """Every field that is asked for, with its arguments: what a selection set must have to replace another."""
        return frozenset(path for _, selected in self.fields.items() for path in selected.paths())

    def record(self) -> type:
        """The type one object of the answer is decoded into. Nullable fields may be missing, others must be there."""
        if self.type_name in SCALARS:
            return SCALARS[self.type_name]
        required, optional = [], []
        for alias, selected in sorted(self.fields.items()):
            kind = selected.record()
            if selected.type.nullable:
                optional.append((alias, kind, None))
            else:
                required.append((alias, kind))
        # No cycles can arise in a decoded answer: the collector need not look at it.
        return msgspec.defstruct(self.type_name, [*required, *optional], gc=False)


@dataclass(slots=True)
class Selected:
    """A field in a selection: how it is asked for and what it holds."""

    step: Step
    type: FieldType
    node: Node

    def text(self) -> str:
        name = f"{self.step.name}{self.step.arguments}"
        prefix = "" if self.step.alias == self.step.name else f"{self.step.alias}: "
        if self.type.is_scalar:
            return f"{prefix}{name}"
        return f"{prefix}{name} {{ {self.node.text() or NOTHING} }}"

    def paths(self) -> list[str]:
        here = f"{self.step.alias}:{self.step.name}{self.step.arguments}"
        return [here, *(f"{here}.{below}" for below in self.node.paths())]

    def record(self) -> Any:
        kind: Any = self.node.record()
        if self.type.is_list:
            kind = types.GenericAlias(list, (kind | None if self.type.items_nullable else kind,))
        return kind | None if self.type.nullable else kind
