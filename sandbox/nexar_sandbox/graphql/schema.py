"""The executable schema of the query service: schema.graphql, design.graphql of the design services, and resolvers.

A resolver for a field that the schema lacks is an error at start. A field may need a feature of the plan (contract
graphql.md §6); the message of that error is our choice. Without the feature LIFECYCLE no field is rejected: lifecycle
attributes are omitted from `specs` and `specAggs`. INVENTORY_HISTORY has no field in the schema.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, cast

import graphql
from graphql.validation.validate import assert_valid_sdl

from nexar_sandbox.design import resources
from nexar_sandbox.graphql import context, errors, executor
from nexar_sandbox.graphql.resolvers import (
    administration,
    aggregations,
    design,
    design_mutations,
    offers,
    parts,
    search,
)

# The feature that a field needs, as Type.field.
REQUIRED_FEATURES = {
    place: feature
    for feature, places in tomllib.loads(Path(__file__).with_name("features.toml").read_text("utf-8")).items()
    for place in places
}
SDL = Path(__file__).with_name("schema.graphql")
TABLES = (parts, offers, search, aggregations, administration, design, design_mutations)
# Types whose values are views of a record.
VIEW_TYPES = frozenset({"SupPart", "SupPartSeller", "SupOffer"})
# Types that only responses have: their values are dicts by the schema's names.
MAPPING_TYPES = frozenset(
    """
    AdmApplication AdmApplicationScope AdmApplicationSecurity AdmOrganization AdmSupplyCounts AdmUser
    SupAppliedFilter SupAttributeGroup SupCadBucket SupCategoryBucket SupCompanyBucket SupCountry
    SupErrorPayload SupInStockBucket SupOctocartLink SupSpecAgg SupSpecBucket
    """.split()  # noqa: SIM905  a list of names, not of quotes
)
# Fields that are read from an attribute with another name.
_ATTRIBUTES = {
    "SupPart.estimatedFactoryLeadDays": "record.factory_lead_days",
    "SupSpec.valueType": "attribute.value_type",
    "SupSpec.unitsName": "attribute.units_name",
    "SupSpec.unitsSymbol": "attribute.units_symbol",
}


def snake_case(name: str) -> str:
    """Return a field name in snake case: `has3dModel` is has3d_model."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


@lru_cache(maxsize=1)
def build() -> graphql.GraphQLSchema:
    """Return the executable schema. Every sandbox of a process has the same one, because nothing changes a schema that
    is built; building it takes most of the start of a sandbox."""
    sdl = graphql.parse(SDL.read_text(encoding="utf-8"))
    document = graphql.DocumentNode(definitions=(*sdl.definitions, *resources.SCHEMA.definitions))
    assert_valid_sdl(document)
    schema = graphql.build_ast_schema(document, assume_valid_sdl=True)
    resolvers = {place: resolver for module in TABLES for place, resolver in module.RESOLVERS.items()}
    for place in resolvers:
        _field(schema, place)
    resolvers = {**design.resolvers(schema), **resolvers}
    for kind in schema.type_map.values():
        if isinstance(kind, graphql.GraphQLObjectType) and not kind.name.startswith("__"):
            _attach(kind, resolvers)
    cast(graphql.GraphQLScalarType, schema.type_map["Map"]).coerce_input_value = _open_object
    cast(graphql.GraphQLUnionType, schema.type_map["SupUnionPayload"]).resolve_type = lambda *_: "SupErrorPayload"
    cast(graphql.GraphQLUnionType, schema.type_map["DesUnionPayload"]).resolve_type = design.payload_type
    for place, subscriber in design.SUBSCRIBERS.items():
        _field(schema, place).subscribe = subscriber
    return schema


def _field(schema: graphql.GraphQLSchema, place: str) -> graphql.GraphQLField:
    """Return the field at Type.field. Raises KeyError."""
    type_name, _, field_name = place.partition(".")
    field: graphql.GraphQLField = cast(graphql.GraphQLObjectType, schema.type_map[type_name]).fields[field_name]
    return field


def _attach(kind: graphql.GraphQLObjectType, resolvers: Mapping[str, graphql.GraphQLFieldResolver]) -> None:
    prefix = "record." if kind.name in VIEW_TYPES else ""
    for name, field in kind.fields.items():
        place = f"{kind.name}.{name}"
        read = itemgetter(name) if kind.name in MAPPING_TYPES else _attribute(place, prefix + snake_case(name))
        field.resolve = resolvers.get(place) or _reader(read)
        if place in REQUIRED_FEATURES:
            field.resolve = _with_feature_check(place, field.resolve)
        elif place not in resolvers:
            executor.set_leaf_reader(field, read)


def _attribute(place: str, name: str) -> Callable[[Any], Any]:
    return attrgetter(_ATTRIBUTES.get(place) or name)


def _reader(read: Callable[[Any], Any]) -> graphql.GraphQLFieldResolver:
    return lambda source, _info, **_arguments: read(source)


def _with_feature_check(place: str, resolver: graphql.GraphQLFieldResolver) -> graphql.GraphQLFieldResolver:
    feature = REQUIRED_FEATURES[place]

    def resolve(source: Any, info: context.Info, **arguments: Any) -> Any:
        application = info.context.application
        if application is None or feature not in application.features:
            raise errors.ServiceError(
                f"You do not have access to {place}: your plan lacks the feature {feature}. Please upgrade your plan."
            )
        return resolver(source, info, **arguments)

    return resolve


def _open_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"Map cannot represent non-object value: {value!r}")
    return value
