"""Tests of GraphQL documents: all are valid by the complete schema (contract graphql.md §1)."""

from pathlib import Path

import graphql
import msgspec
import pytest

from proxy import config, model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import documents, fetches, match, projection_cache, queries

COMPLETE = Path(__file__).parents[3] / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql"
EVERYTHING = frozenset(config.FEATURES)
SEARCHES: tuple[queries.SearchRoot, ...] = ("supSearch", "supSearchMpn")


@pytest.fixture(scope="session")
def complete_schema() -> graphql.GraphQLSchema:
    return graphql.build_schema(COMPLETE.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def shipped_schema() -> graphql.GraphQLSchema:
    text = (shipped.path("mappings") / "schema.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text.replace("{site}", "octopart"))


def texts(projections: projection_cache.ProjectionCache) -> list[str]:
    """The documents for whole parts with all and without features, for counts, and for lists."""
    whole = [fetches.Documents(projections.whole(features).selection) for features in (frozenset[str](), EVERYTHING)]
    asked = [queries.matching(0, 1, mpn="A"), queries.part("1"), *(queries.search(root, 0, 1, {}) for root in SEARCHES)]
    fetched = [each.operation([fetches.Fetch(query, None)], "US", "USD") for each in whole for query in asked]
    counts = [projections.count(names) for names in (frozenset[str](), frozenset(documents.AGGREGATIONS))]
    counted = match.count(model.PartsMatchQuery(mpn="A"), model.MappingContext("US", "USD"))
    return [
        *(msgspec.json.decode(each.payload)["query"] for each in [*fetched, counted]),
        *(each.text for each in [*counts, *(each.document for each in projections.list_definitions().values())]),
    ]


def test_every_document_is_valid_against_the_complete_schema(
    mappings: loader.Mappings, complete_schema: graphql.GraphQLSchema
) -> None:
    every = texts(projection_cache.ProjectionCache(mappings))
    assert len(set(every)) == 15
    faults = {text: graphql.validate(complete_schema, graphql.parse(text)) for text in every}
    assert {text: found for text, found in faults.items() if found} == {}


def test_validation_finds_an_invalid_document(complete_schema: graphql.GraphQLSchema) -> None:
    assert graphql.validate(complete_schema, graphql.parse("{ supSearch(q: 1) { hit } }"))


def test_plan_without_features_selects_none_of_their_fields(mappings: loader.Mappings) -> None:
    selection = projection_cache.ProjectionCache(mappings).whole(frozenset()).selection
    gated = ("specs", "documentCollections", "bestDatasheet", "referenceDesigns", "cad", "factoryLeadDays")
    assert [name for name in gated if f" {name} " in selection.replace("{", " ")] == []


def test_complete_schema_has_all_of_the_shipped_one(
    shipped_schema: graphql.GraphQLSchema, complete_schema: graphql.GraphQLSchema
) -> None:
    """Types, fields that are not null, arguments with their defaults, and the values of enums."""
    assert graphql.find_breaking_changes(shipped_schema, complete_schema) == []
    defaults = graphql.DangerousChangeType.ARG_DEFAULT_VALUE_CHANGE
    changes = graphql.find_dangerous_changes(shipped_schema, complete_schema)
    assert [change for change in changes if change.type == defaults] == []
