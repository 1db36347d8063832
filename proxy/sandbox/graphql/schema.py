"""The schema of the query service with its resolvers: schema.graphql and the tables of the resolver
modules, joined.

Called once at start. A resolver for a field that the schema lacks is an error there.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from graphql import (
    DocumentNode,
    GraphQLField,
    GraphQLFieldResolver,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    build_ast_schema,
    parse,
)
from graphql.validation.validate import assert_valid_sdl

from proxy.sandbox.graphql import context, executor, gates, naming
from proxy.sandbox.graphql.resolvers import (
    administration,
    aggregations,
    companies,
    design_changes,
    design_collaboration,
    design_library,
    design_projects,
    design_work,
    design_workspaces,
    internals,
    offers,
    parts,
    references,
    search,
    words,
)

SDL = Path(__file__).with_name("schema.graphql")
DESIGN_SDL = Path(__file__).with_name("design.graphql")
DESIGN = (
    design_workspaces,
    design_projects,
    design_library,
    design_collaboration,
    design_changes,
    design_work,
)
TABLES = (parts, offers, companies, search, aggregations, words, references, internals, administration, *DESIGN)
# Types whose values are views around a record.
VIEWED = frozenset({"SupPart", "SupPartSeller", "SupOffer"})
# Fields that are read from an attribute of another name.
_ATTRIBUTES = {place: attribute for module in TABLES for place, attribute in module.ATTRIBUTES.items()}


def build(missing: Iterable[str] = ()) -> GraphQLSchema:
    """The executable schema, without the fields (Type.field) that are `missing`."""
    sdl = _valid(SDL.read_text(encoding="utf-8") + DESIGN_SDL.read_text(encoding="utf-8"))
    schema = build_ast_schema(sdl, assume_valid_sdl=True)
    resolvers = _joined()
    for type_name, field_name in resolvers:
        cast(GraphQLObjectType, schema.type_map[type_name]).fields[field_name]
    for kind in schema.type_map.values():
        if isinstance(kind, GraphQLObjectType) and not kind.name.startswith("__"):
            _attach(kind, resolvers)
    cast(GraphQLScalarType, schema.type_map["Map"]).coerce_input_value = _open_object
    cast(GraphQLUnionType, schema.type_map["SupUnionPayload"]).resolve_type = internals.payload_type
    cast(GraphQLUnionType, schema.type_map["DesUnionPayload"]).resolve_type = design_library.payload_type
    for place, subscriber in design_collaboration.SUBSCRIBERS.items():
        type_name, _, field_name = place.partition(".")
        cast(GraphQLObjectType, schema.type_map[type_name]).fields[field_name].subscribe = subscriber
    for place in missing:
        type_name, _, field_name = place.partition(".")
        del cast(GraphQLObjectType, schema.type_map[type_name]).fields[field_name]
    return schema


@lru_cache(maxsize=1)
def _valid(sdl: str) -> DocumentNode:
    """Read and checked once: both take longer than all else at a sandbox's start. Nobody changes a document."""
    document = parse(sdl)
    assert_valid_sdl(document)
    return document


def places(schema: GraphQLSchema) -> frozenset[str]:
    """Every field that could be missing, as Type.field: not the only one of its type."""
    return frozenset(
        f"{kind.name}.{name}"
        for kind in schema.type_map.values()
        if isinstance(kind, GraphQLObjectType) and not kind.name.startswith("__") and len(kind.fields) > 1
        for name in kind.fields
    )


def _joined() -> dict[tuple[str, str], GraphQLFieldResolver]:
    joined: dict[tuple[str, str], GraphQLFieldResolver] = {}
    for module in TABLES:
        for place, resolver in module.RESOLVERS.items():
            type_name, _, field_name = place.partition(".")
            joined[type_name, field_name] = resolver
    return joined


def _attach(kind: GraphQLObjectType, resolvers: Mapping[tuple[str, str], GraphQLFieldResolver]) -> None:
    prefix = "record." if kind.name in VIEWED else ""
    for name, field in kind.fields.items():
        resolver = resolvers.get((kind.name, name))
        attribute = _ATTRIBUTES.get(f"{kind.name}.{name}") or prefix + naming.snake(name)
        field.resolve = gates.guarded(kind.name, name, resolver or _reader(attribute))
        _shorten(field, attribute, resolver is None and not gates.is_gated(kind.name, name))


def _shorten(field: GraphQLField, attribute: str, plain: bool) -> None:
    short = executor.leaf(field, attribute) if plain else None
    if short is not None:
        field.extensions[executor.LEAF] = short


def _reader(attribute: str) -> GraphQLFieldResolver:
    read = attrgetter(attribute)

    def resolve(source: Any, _info: context.Info, **_arguments: Any) -> Any:
        return read(source)

    return resolve


def _open_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"Map cannot represent non-object value: {value!r}")
    return value
