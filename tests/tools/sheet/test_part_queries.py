"""Tests of the queries of spreadsheets: their keys, and the upstream requests that they become."""

from typing import Any

import msgspec
import pytest
from support import cases

from proxy import config
from proxy.gateway import applications
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.operations import OperationResult
from proxy.tools.sheet.part_queries import PartQueries, PartView, by_currency, gateway_request
from proxy.tools.sheet.parts import Offer, Part, PartOfSource, PartQuery, PartSpec, Price, SimilarPart

MAPPINGS = loader.load(shipped.path("mappings"))


def view(*features: str) -> PartView:
    return PartView(MAPPINGS, shipped.path("mappings"), "octopart", frozenset(features))


def queries(*lines: PartQuery, country: str = "US", of: PartView | None = None) -> PartQueries:
    apikey = config.ApiKeySettings(config.digest("a-key"))
    entry = config.ApplicationSettings(apikeys=(apikey,), country=country)
    client = applications.Applications({"demo": entry}).all[0]
    used = of or view()
    return PartQueries(gateway_request(client, used, lines[0].currency, 0.0), lines, used)


def test_distinct_queries_are_grouped_by_currency_and_by_hundred() -> None:
    dollars = [PartQuery(f"A{n}") for n in range(150)]
    euros = [PartQuery(f"A{n}", currency="EUR") for n in range(3)]
    groups = by_currency([*dollars, *euros, *dollars])
    assert groups == [dollars[:100], dollars[100:], euros]
    assert by_currency([]) == []


def test_groups_of_a_line_follow_each_other() -> None:
    lines = [PartQuery(f"A{n}", currency=code) for n in range(150) for code in ("USD", "EUR")]
    groups = [(group[0].mpn, group[0].currency, len(group)) for group in by_currency(lines)]
    assert groups == [("A0", "USD", 100), ("A0", "EUR", 100), ("A100", "USD", 50), ("A100", "EUR", 50)]


def test_each_criterion_currency_and_country_has_a_key_of_its_own() -> None:
    query = PartQuery("A")
    variants = [
        query._replace(mpn="B"),
        query._replace(manufacturer="TI"),
        query._replace(mpn="", sku="A"),
        query._replace(currency="EUR"),
        query._replace(sources=True),
    ]
    keys = [queries(each).keys[0].key for each in (query, *variants)]
    keys.append(queries(query, country="DE").keys[0].key)
    assert len(set(keys)) == 7
    assert queries(query).keys == queries(query).keys


def test_plan_asks_for_one_part_a_query_and_for_a_hundred_queries_a_request() -> None:
    lines = [PartQuery(f"A{n}", manufacturer="TI" if n % 2 else "") for n in range(150)]
    plan = queries(*lines).plan(list(range(20, 150)), {})
    first, second = plan.operations
    assert [first.parts_max, second.parts_max] == [100, 30]
    assert [first.positions, second.positions] == [tuple(range(100)), tuple(range(100, 130))]
    assert first.variables["queries"][:2] == [
        {"mpn": "A20", "start": 0, "limit": 1},
        {"mpn": "A21", "manufacturer": "TI", "start": 0, "limit": 1},
    ]
    assert (first.variables["country"], first.variables["currency"]) == ("US", "USD")


def test_sources_of_twenty_numbers_are_one_request() -> None:
    lines = [PartQuery(f"A{n}", sources=True) for n in range(30)]
    first, second = queries(*lines).plan(list(range(30)), {}).operations
    assert [first.parts_max, second.parts_max] == [100, 50]
    assert first.variables["queries"][0] == {"mpn": "A0", "start": 0, "limit": 5}
    mixed = [each for n in range(30) for each in (PartQuery(f"A{n}"), lines[n])]
    assert [len(group) for group in by_currency(mixed)] == [30, 20, 10]


def test_results_keep_their_order_errors_and_hits() -> None:
    plan = queries(PartQuery("A"), PartQuery("B")).plan([0, 1], {})
    assert plan.count_operations({}) == []
    refused, hit = OperationResult([], 0, "no such thing"), OperationResult(["record"], 7)
    first, second = plan.results({1: hit, 0: refused}, {})
    assert (first.error, second.parts, second.hits) == ("no such thing", ["record"], 7)


def test_requests_of_different_currencies_cannot_be_merged() -> None:
    used = view()
    dollars, euros = (queries(PartQuery("A", currency=code), of=used).plan([0], {}) for code in ("USD", "EUR"))
    again = queries(PartQuery("B"), of=used).plan([0], {})
    assert dollars.operations[0].batch_key is again.operations[0].batch_key
    assert dollars.operations[0].batch_key is not euros.operations[0].batch_key


@cases.parametrize("feature, field, sources")
def test_fields_are_selected_only_in_plans_that_have_them(feature: str, field: str, sources: bool) -> None:
    query = PartQuery("A", sources=sources)
    assert field in view(feature).compiled(query).part.selection
    assert field not in view().compiled(query).part.selection
    assert field not in view(feature).compiled(query._replace(sources=not sources)).part.selection


@pytest.mark.parametrize(
    "record, object_",
    [
        (Part, "SheetPart"),
        (PartSpec, "SheetSpec"),
        (Offer, "SheetOffer"),
        (Price, "SheetPrice"),
        (PartOfSource, "SheetSource"),
        (SimilarPart, "SheetSimilarPart"),
    ],
)
def test_records_have_exactly_the_fields_of_the_mapping(record: Any, object_: str) -> None:
    folder = shipped.path("mappings") / "sheet"
    rules = loader.load_view(MAPPINGS, folder, "octopart", "SheetPart", "SheetSource").rules
    assert {field.name for field in msgspec.structs.fields(record)} == set(rules[object_].fields)
