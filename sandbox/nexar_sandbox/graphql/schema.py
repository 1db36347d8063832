"""The executable schema of the query service: schema.graphql, design.graphql of the design services, and resolvers.

A resolver for a field that the schema lacks is an error at start. A field may need a feature of the plan (contract
graphql.md §6); the message of that error is our choice. Without the feature LIFECYCLE no field is rejected: lifecycle
attributes are omitted from `specs` and `specAggs`. INVENTORY_HISTORY has no field in the schema.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, cast

import graphql
from graphql.validation.validate import assert_valid_sdl

from nexar_sandbox.behavior import Behavior
from nexar_sandbox.design import records
from nexar_sandbox.graphql import context, documents, errors, executor
from nexar_sandbox.graphql.resolvers import (
    administration,
    aggregations,
    companies,
    design_fields,
    design_mutations,
    design_queries,
    internals,
    offers,
    parts,
    search,
)

# The feature that a field needs, by type and name.
REQUIRED_FEATURES = {
    tuple(place.split(".")): feature
    for feature, places in tomllib.loads(Path(__file__).with_name("features.toml").read_text("utf-8")).items()
    for place in places
}


def needs_feature(type_name: str, field_name: str) -> bool:
    return (type_name, field_name) in REQUIRED_FEATURES


def with_feature_check(
    type_name: str, field_name: str, resolver: graphql.GraphQLFieldResolver
) -> graphql.GraphQLFieldResolver:
    """Return the resolver with a check of the required feature; unchanged if the field needs none."""
    feature = REQUIRED_FEATURES.get((type_name, field_name))
    if feature is None:
        return resolver

    def resolve(source: Any, info: context.Info, **arguments: Any) -> Any:
        application = info.context.application
        if application is None or feature not in application.features:
            place = f"{type_name}.{field_name}"
            raise errors.FeatureError(
                f"You do not have access to {place}: your plan lacks the feature {feature}. Please upgrade your plan."
            )
        return resolver(source, info, **arguments)

    return resolve


SDL = Path(__file__).with_name("schema.graphql")
TABLES = (parts, offers, companies, search, aggregations, internals, administration, design_queries, design_mutations)
# Types whose values are views of a record.
VIEW_TYPES = frozenset({"SupPart", "SupPartSeller", "SupOffer"})
# Types that only responses have: their values are dicts by the schema's names.
MAPPING_TYPES = frozenset(
    """
    AdmApplication AdmApplicationScope AdmApplicationSecurity AdmOrganization AdmSupplyCounts AdmUser
    SupAppliedFilter SupAttributeGroup SupBlurb SupCadBucket SupCategoryBucket SupCircuitMakerPartInfo SupCompanyBucket
    SupCountry SupErrorPayload SupInStockBucket SupLevelBucket SupOctocartLink SupPartExtrasParameter
    SupPartExtrasTechnicalDetail SupSpecAgg SupSpecBucket SupSponsoredPart
    """.split()  # noqa: SIM905  a list of names, not of quotes
)
# Fields that are read from an attribute with another name.
_ATTRIBUTES = {
    **parts.ATTRIBUTES,
    **offers.ATTRIBUTES,
    **internals.ATTRIBUTES,
    **design_queries.ATTRIBUTES,
    **design_mutations.ATTRIBUTES,
}


def build(missing: Iterable[str] = ()) -> graphql.GraphQLSchema:
    """Return the executable schema, without the fields (Type.field) that are `missing`."""
    schema = graphql.build_ast_schema(_valid(SDL.read_text(encoding="utf-8")), assume_valid_sdl=True)
    resolvers = _written_resolvers()
    for type_name, field_name in resolvers:
        # KeyError for a resolver without a field.
        cast(graphql.GraphQLObjectType, schema.type_map[type_name]).fields[field_name]
    resolvers = {**design_fields.resolvers(schema), **resolvers}
    for kind in schema.type_map.values():
        if isinstance(kind, graphql.GraphQLObjectType) and not kind.name.startswith("__"):
            _attach(kind, resolvers)
    cast(graphql.GraphQLScalarType, schema.type_map["Map"]).coerce_input_value = _open_object
    cast(graphql.GraphQLUnionType, schema.type_map["SupUnionPayload"]).resolve_type = internals.payload_type
    cast(graphql.GraphQLUnionType, schema.type_map["DesUnionPayload"]).resolve_type = design_queries.payload_type
    for place, subscriber in design_queries.SUBSCRIBERS.items():
        type_name, _, field_name = place.partition(".")
        cast(graphql.GraphQLObjectType, schema.type_map[type_name]).fields[field_name].subscribe = subscriber
    for place in missing:
        type_name, _, field_name = place.partition(".")
        del cast(graphql.GraphQLObjectType, schema.type_map[type_name]).fields[field_name]
    return schema


@lru_cache(maxsize=1)
def complete() -> graphql.GraphQLSchema:
    """Return the schema with all fields. Every sandbox of a process has the same one, because nothing changes a
    schema that is built; building it takes most of the start of a sandbox."""
    return build()


@lru_cache(maxsize=1)
def _valid(sdl: str) -> graphql.DocumentNode:
    """Return the parsed and validated SDL, with that of design data. Cached, because this dominates the start-up time;
    it is never modified."""
    document = graphql.DocumentNode(definitions=(*graphql.parse(sdl).definitions, *records.SCHEMA.definitions))
    assert_valid_sdl(document)
    return document


def removable_fields(schema: graphql.GraphQLSchema) -> frozenset[str]:
    """Every field that a fault may remove, as Type.field: all but the only field of a type."""
    return frozenset(
        f"{kind.name}.{name}"
        for kind in schema.type_map.values()
        if isinstance(kind, graphql.GraphQLObjectType) and not kind.name.startswith("__") and len(kind.fields) > 1
        for name in kind.fields
    )


def _written_resolvers() -> dict[tuple[str, str], graphql.GraphQLFieldResolver]:
    joined: dict[tuple[str, str], graphql.GraphQLFieldResolver] = {}
    for module in TABLES:
        for place, resolver in module.RESOLVERS.items():
            type_name, _, field_name = place.partition(".")
            joined[type_name, field_name] = resolver
    return joined


def _attach(kind: graphql.GraphQLObjectType, resolvers: Mapping[tuple[str, str], graphql.GraphQLFieldResolver]) -> None:
    prefix = "record." if kind.name in VIEW_TYPES else ""
    for name, field in kind.fields.items():
        resolver = resolvers.get((kind.name, name))
        attribute = _ATTRIBUTES.get(f"{kind.name}.{name}") or prefix + records.snake_case(name)
        read = itemgetter(name) if kind.name in MAPPING_TYPES else attrgetter(attribute)
        field.resolve = with_feature_check(kind.name, name, resolver or _reader(read))
        # A field with a resolver or a feature check cannot be read directly.
        if resolver is None and not needs_feature(kind.name, name):
            executor.set_leaf_reader(field, read)


def _reader(read: Callable[[Any], Any]) -> graphql.GraphQLFieldResolver:
    return lambda source, _info, **_arguments: read(source)


def _open_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"Map cannot represent non-object value: {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class SchemaVariant:
    """A schema with a cache of documents: validity depends on the schema."""

    schema: graphql.GraphQLSchema
    documents: documents.DocumentCache


@lru_cache(maxsize=4)
def _shared_documents(full_schema: graphql.GraphQLSchema, behavior: Behavior) -> documents.DocumentCache:
    """Return the documents of all sandboxes of the process with this schema and behavior: a test starts hundreds of
    them and sends each the same documents."""
    return documents.DocumentCache(full_schema, behavior)


class SchemaVariants:
    """The complete schema, and the last variant without some fields."""

    def __init__(self, full_schema: graphql.GraphQLSchema, behavior: Behavior) -> None:
        self._behavior = behavior
        self.complete = SchemaVariant(full_schema, _shared_documents(full_schema, documents.relevant(behavior)))
        self._reduced: tuple[frozenset[str], SchemaVariant] = (frozenset(), self.complete)

    def current(self, missing: frozenset[str]) -> SchemaVariant:
        if not missing:
            return self.complete
        # Only the last variant is kept: faults change rarely.
        if self._reduced[0] != missing:
            reduced = build(missing)
            self._reduced = (missing, SchemaVariant(reduced, documents.DocumentCache(reduced, self._behavior)))
        return self._reduced[1]
