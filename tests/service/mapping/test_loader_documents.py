"""Tests of GraphQL documents: all are valid by the complete schema (contract graphql.md §1)."""

from pathlib import Path

import graphql
import pytest

from proxy import config, model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import operations, projection_cache

COMPLETE = Path(__file__).parents[3] / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql"
EVERYTHING = frozenset(config.FEATURES)


@pytest.fixture(scope="session")
def complete_schema() -> graphql.GraphQLSchema:
    return graphql.build_schema(COMPLETE.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def shipped_schema() -> graphql.GraphQLSchema:
    text = (shipped.path("mappings") / "schema.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text.replace("{site}", "octopart"))


def projections(mappings: loader.Mappings) -> list[model.Projection]:
    """Every include[] alone and all together, all and nothing without features, and a few odd projections."""
    includes = [
        frozenset[str](),
        *(frozenset({name}) for name in mappings.includable("Part")),
        mappings.includable("Part"),
    ]
    plain = [model.Projection(include, features=EVERYTHING) for include in includes]
    plain += [model.Projection(include, features=frozenset()) for include in (includes[0], includes[-1])]
    paths = (("offers",), ("offers", "sku"), ("brand", "name"), ("specs", "*", "value"), ("unknown",))
    shown = [model.Projection(includes[-1], show=frozenset({path}), features=EVERYTHING) for path in paths]
    hidden = [model.Projection(includes[-1], hide=frozenset({path}), features=EVERYTHING) for path in paths]
    cut = [
        model.Projection(cut=frozenset({paths[0]}), features=EVERYTHING),
        model.Projection(emptied=frozenset({paths[0]}), features=EVERYTHING),
    ]
    return [*plain, *shown, *hidden, *cut]


def every_document(mappings: loader.Mappings) -> list[operations.Document]:
    """The documents of all of them."""
    made = projection_cache.ProjectionCache(mappings)
    found = []
    for projection in projections(mappings):
        for skus in (False, True):
            match = made.match(projection, skus).documents
            found += [match.multi_match, match.search_mpn, match.search, match.count]
            found += [match.search_mpn.merged(3), match.search.merged(33)]
    return found


def test_every_document_is_valid_against_the_complete_schema(
    mappings: loader.Mappings, complete_schema: graphql.GraphQLSchema
) -> None:
    texts = {document.text for document in every_document(mappings)}
    assert len(texts) > 40
    faults = {text: graphql.validate(complete_schema, graphql.parse(text)) for text in texts}
    assert {text: found for text, found in faults.items() if found} == {}


def test_validation_finds_an_invalid_document(complete_schema: graphql.GraphQLSchema) -> None:
    assert graphql.validate(complete_schema, graphql.parse("{ supSearch(q: 1) { hit } }"))


def test_plan_without_features_selects_none_of_their_fields(mappings: loader.Mappings) -> None:
    projection = model.Projection(mappings.includable("Part"))
    text = projection_cache.ProjectionCache(mappings).match(projection).documents.multi_match.text
    gated = ("specs", "documentCollections", "bestDatasheet", "referenceDesigns", "cad", "factoryLeadDays")
    assert [name for name in gated if f" {name} " in text.replace("{", " ")] == []


def types_of(schema: graphql.GraphQLSchema) -> dict[str, graphql.GraphQLNamedType]:
    return {name: kind for name, kind in schema.type_map.items() if not name.startswith("__")}


def test_shipped_schema_has_only_types_of_the_complete_one(
    shipped_schema: graphql.GraphQLSchema, complete_schema: graphql.GraphQLSchema
) -> None:
    theirs = types_of(complete_schema)
    assert {name: type(kind) for name, kind in types_of(shipped_schema).items()} == {
        name: type(theirs[name]) for name in types_of(shipped_schema) if name in theirs
    }


def test_shipped_schema_fields_equal_the_complete_ones(
    shipped_schema: graphql.GraphQLSchema, complete_schema: graphql.GraphQLSchema
) -> None:
    different = []
    for name, kind in types_of(shipped_schema).items():
        if not isinstance(kind, graphql.GraphQLObjectType | graphql.GraphQLInputObjectType):
            continue
        theirs = complete_schema.type_map[name].fields  # type: ignore[attr-defined]
        different += [
            f"{name}.{field}: {one.type}, not {theirs[field].type if field in theirs else 'there'}"
            for field, one in kind.fields.items()
            if field not in theirs or str(one.type) != str(theirs[field].type)
        ]
    assert different == []


def test_shipped_schema_arguments_and_enums_equal_the_complete_ones(
    shipped_schema: graphql.GraphQLSchema, complete_schema: graphql.GraphQLSchema
) -> None:
    different = []
    for name, kind in types_of(shipped_schema).items():
        theirs = complete_schema.type_map[name]
        if isinstance(kind, graphql.GraphQLEnumType):
            different += [f"{name}.{value}" for value in set(kind.values) - set(theirs.values)]  # type: ignore[attr-defined]
        if isinstance(kind, graphql.GraphQLObjectType):
            for field, one in kind.fields.items():
                known = theirs.fields[field].args  # type: ignore[attr-defined]
                different += [
                    f"{name}.{field}({argument}: {ours_.type} = {ours_.default_value})"
                    for argument, ours_ in one.args.items()
                    if argument not in known
                    or str(known[argument].type) != str(ours_.type)
                    or known[argument].default_value != ours_.default_value
                ]
    assert different == []
