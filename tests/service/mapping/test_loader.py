"""The mapping loader: a mistake in mappings/ stops the program at start; all documents are valid (graphql.md §1)."""

from collections.abc import Callable
from pathlib import Path

import graphql
import msgspec
import pytest
from support import cases

from proxy import config, errors, model
from proxy.kit import shipped
from proxy.mapping import compiler, loader
from proxy.planning import documents, facets, match, queries

HEAD = "Part:\n  reads: SupPart\n  source: here\n  fields:\n    mpn: mpn\n"
OFFER = "Offer:\n  reads: SupOffer\n  source: here\n  fields:\n    sku: sku\n"


def test_folder_of_rules_is_loaded_as_a_mapping(load: Callable[..., loader.Mappings]) -> None:
    book = load(HEAD + "    offers: {from: offers, each: Offer, include: true}\n" + OFFER)
    assert list(book.rules) == ["Part", "Offer"]
    assert book.rules["Part"].hidden == {"offers"}
    assert book.places["Part", "offers"].startswith("part.yaml:6")


@cases.parametrize("rules, place, says")
def test_mistake_is_found_on_loading(load: Callable[..., loader.Mappings], rules: str, place: str, says: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load(rules.replace("HEAD", HEAD).replace("OFFER", OFFER))
    assert caught.value.message.startswith(place)
    assert says in caught.value.message


@cases.parametrize("rule, says")
def test_rule_that_contradicts_the_schema_is_found_on_compiling(
    load: Callable[..., loader.Mappings], rule: str, says: str
) -> None:
    more = "" if rule.startswith("{") and "Offer" in rule else "    used: {from: offers, each: Offer}\n"
    quoted = rule if rule.startswith("{") else f'"{rule}"'
    book = load(f"{HEAD}    x: {quoted}\n{more}{OFFER}")
    with pytest.raises(errors.ConfigError) as caught:
        compiler.compile_object(book, "Part", model.Projection())
    assert caught.value.message.startswith("part.yaml:6")
    assert "Part.x: " in caught.value.message
    assert says in caught.value.message


def test_object_in_two_files_is_a_mistake(load: Callable[..., loader.Mappings]) -> None:
    with pytest.raises(errors.ConfigError, match=r"^part\.yaml:1.*: object Part is described twice$"):
        load(HEAD, another__yaml=HEAD)


@cases.parametrize("file, text, place")
def test_mistake_in_a_table_is_found(load: Callable[..., loader.Mappings], file: str, text: str, place: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load(HEAD, **{file: text})
    assert caught.value.message.startswith(place)


def test_mistake_in_a_table_names_the_file(load: Callable[..., loader.Mappings]) -> None:
    with pytest.raises(errors.ConfigError, match=r"^uids\.yaml:\d+.*`name`$"):
        load(HEAD, uids__yaml="Seller:\n  - {uid: abc}\n")


def test_view_has_objects_of_its_own_with_the_schema_of_the_mappings(
    load: Callable[..., loader.Mappings], tmp_path: Path
) -> None:
    write_view(tmp_path, "WrapperPart:\n  reads: SupPart\n  source: here\n  fields:\n    number: mpn\n")
    mappings = load(HEAD)
    view = mappings.views["WrapperPart"]
    assert (list(view.rules), list(mappings.rules)) == (["WrapperPart"], ["Part"])
    assert compiler.compile_object(view, "WrapperPart", model.Projection()).selection == "mpn"


@pytest.mark.parametrize(
    "rules, says", [(HEAD, "nothing uses the object Part"), ("WrapperPart:\n  reads: SupPart\n", "view.yaml:1")]
)
def test_mistake_of_a_view_is_found_on_loading(
    load: Callable[..., loader.Mappings], tmp_path: Path, rules: str, says: str
) -> None:
    write_view(tmp_path, rules)
    with pytest.raises(errors.ConfigError) as caught:
        load(HEAD)
    assert says in caught.value.message


def write_view(tmp_path: Path, rules: str) -> None:
    folder = tmp_path / "v4"
    folder.mkdir()
    (folder / "view.yaml").write_text(rules, encoding="utf-8")


COMPLETE = Path(__file__).parents[3] / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql"
EVERYTHING = frozenset(config.FEATURES)
SEARCHES: tuple[queries.SearchRoot, ...] = ("supSearch", "supSearchMpn")


@pytest.fixture(scope="session")
def complete_schema() -> graphql.GraphQLSchema:
    return graphql.build_schema(COMPLETE.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def shipped_schema() -> graphql.GraphQLSchema:
    text = (shipped("mappings") / "schema.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text.replace("{site}", "octopart"))


def texts(projections: documents.ProjectionCache) -> list[str]:
    """The documents for whole parts with all and without features, for counts, and for lists."""
    whole = [documents.of_parts(projections.whole(features).selection) for features in (frozenset[str](), EVERYTHING)]
    asked = [
        queries.matching(0, 1, mpn="A"),
        queries.part("1"),
        *(queries.of_list(root, 0, 1, {}) for root in SEARCHES),
    ]
    fetched = [queries.operation(each, [query.fetch()], "US", "USD") for each in whole for query in asked]
    counts = [documents.count(names) for names in (frozenset[str](), frozenset(facets.AGGREGATIONS))]
    counted = match.plan(model.PartsMatchQuery(mpn="A"), False).count_operation(model.MappingContext("US", "USD"))
    return [
        *(msgspec.json.decode(each.payload)["query"] for each in [*fetched, counted]),
        *(each.text for each in [*counts, *(each.document for each in projections.list_definitions().values())]),
    ]


def test_every_document_is_valid_against_the_complete_schema(
    mappings: loader.Mappings, complete_schema: graphql.GraphQLSchema
) -> None:
    every = texts(documents.ProjectionCache(mappings))
    assert len(set(every)) == 15
    faults = {text: graphql.validate(complete_schema, graphql.parse(text)) for text in every}
    assert {text: found for text, found in faults.items() if found} == {}


def test_plan_without_features_selects_none_of_their_fields(mappings: loader.Mappings) -> None:
    selection = documents.ProjectionCache(mappings).whole(frozenset()).selection
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
