"""Part of the upstream's schema that the mappings read, from mappings/schema.graphql.

The compiler looks up the types of paths here, so that a path that is not in the schema fails at start.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import graphql

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
