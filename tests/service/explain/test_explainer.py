"""Explanations are made of the plan that serves the request."""

import os
from typing import Any

import msgspec
import pytest
from support import cases

from proxy import config, errors
from proxy.config import loader
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import Explanation
from proxy.kit import shipped
from proxy.traffic.v3_request import V3Request, parse_target

SHIPPED = loader.load(shipped.path("config.yaml"), os.environ, upstream=False)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(SHIPPED)


def explain(explainer: Explainer, target: str, application: str | None = None) -> Explanation:
    path, query, apikey = parse_target(target)
    return explainer.explain(V3Request(path, query), apikey=apikey, application=application)


def configured(**applications: config.ApplicationSettings) -> Explainer:
    return Explainer(msgspec.structs.replace(SHIPPED, applications=applications))


def application(*keys: str, **settings: Any) -> config.ApplicationSettings:
    apikeys = tuple(config.ApiKeySettings(config.digest(key), name=key.lower()) for key in keys)
    return config.ApplicationSettings(apikeys=apikeys, **settings)


def test_a_single_number_is_one_match(explainer: Explainer) -> None:
    (match,) = explain(explainer, '/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N"}]').operations
    assert (match.name, match.parts_max, match.records) == ("supMultiMatch", 3, "supMultiMatch[].parts[]")


def test_a_single_number_can_be_a_search_and_a_count_on_condition() -> None:
    settings = msgspec.structs.replace(SHIPPED, translation=config.TranslationSettings("supSearchMpn"))
    explanation = explain(
        Explainer(settings), '/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N","limit":5}]'
    )

    search, count = explanation.operations
    assert (search.name, search.parts_max, search.condition) == ("supSearchMpn", 5, None)
    assert search.variables == {"q": "SN74S74N", "start": 0, "limit": 5, "country": "US", "currency": "USD"}
    assert search.records == "supSearchMpn.results[].part"
    assert (count.name, count.parts_max, count.records) == ("supMultiMatch", 0, "")
    assert count.condition is not None
    assert explanation.cost is not None
    assert (explanation.cost.parts_max, explanation.cost.requests, explanation.cost.requests_max) == (5, 1, 2)


def test_operations_name_the_v3_queries_that_they_resolve(explainer: Explainer) -> None:
    explanation = explain(explainer, '/v3/parts/match?queries=[{"mpn":"SN74*"},{"x":1},{"sku":"A1"},{"q":"diode"}]')

    assert [(each.name, each.queries) for each in explanation.operations] == [
        ("supSearchMpn", (0,)),
        ("supMultiMatch", (2,)),
        ("supSearch", (3,)),
    ]
    assert explanation.queries[1].error is not None
    assert [each.name for each in explanation.ignored] == ["queries[1].x"]
    assert explanation.stored is not None
    assert [each.queries for each in explanation.stored.queries] == [(0,), (2,), (3,)]


EQUAL = '/v3/parts/match?queries=[{"mpn":"A1B"},{"x":1},{"mpn":"A1B","reference":"r"},{"sku":"A1"}]'


def test_equal_queries_are_sent_once(explainer: Explainer) -> None:
    explanation = explain(explainer, EQUAL)

    (operation,) = explanation.operations
    assert [each.get("mpn") for each in operation.variables["queries"]] == ["A1B", None]
    assert operation.queries == (0, 2, 3)
    assert operation.parts_max == 6


def test_an_unlisted_name_stands_as_a_placeholder(explainer: Explainer) -> None:
    explanation = explain(explainer, "/v3/parts/search?filter[fields][brand.name][]=Nobody&limit=7")

    brands, search = explanation.operations
    assert explanation.lists == ("Brand",)
    assert (brands.name, brands.parts_max, brands.records) == ("supManufacturers", 0, "")
    assert search.variables["filters"] == {"manufacturer_id": ["<id of Nobody>"]}


@cases.parametrize("target, status, part")
def test_an_error_is_explained(explainer: Explainer, target: str, status: int, part: str) -> None:
    explanation = explain(explainer, target)

    assert explanation.error is not None
    assert explanation.error.status == status
    assert part in explanation.error.message
    assert explanation.operations == ()


MATCH = '/v3/parts/match?queries=[{"mpn":"SN74S74N"}]'


def test_the_api_key_or_a_name_selects_the_application() -> None:
    explainer = configured(erp=application("A", country="DE"), shop=application("B", "C", currency="EUR"))

    clients = [
        explain(explainer, target, name).client
        for target, name in (
            (f"{MATCH}&apikey=C", None),
            (MATCH, None),
            (f"{MATCH}&apikey=A", "shop/c"),
            (MATCH, "shop"),
        )
    ]

    assert [(each.application, each.api_key, each.problem is None) for each in clients if each] == [
        ("shop", "c", True),
        ("erp", "a", False),
        ("shop", "c", True),
        ("shop", "b", True),
    ]
    with pytest.raises(errors.ConfigError, match="'other'; there are erp, shop"):
        explain(explainer, MATCH, "other")


def test_a_field_without_its_plan_feature_is_empty_and_not_selected() -> None:
    explanation = explain(configured(erp=application("A", features=("TECH_SPECS",))), f"{MATCH}&include[]=datasheets")

    fields = {each.path: each for each in explanation.fields}
    assert (fields["datasheets"].kind, fields["datasheets"].blank) == ("no feature", [])
    assert fields["offers[].factory_lead_days"].kind == "no feature"
    assert "documentCollections" not in explanation.operations[0].document
    assert not any(path.startswith("datasheets[]") for path in fields)


def test_the_projection_decides_which_fields_are_explained(explainer: Explainer) -> None:
    target = f"{MATCH}&include[]=specs&show[]=mpn&show[]=specs.resistance.value&show[]=offers&slice[offers]=:0"
    fields = {each.path: each.kind for each in explain(explainer, target).fields}

    assert fields == {
        "mpn": "exact",
        "offers": "emptied",
        "specs": "exact",
        "specs.resistance.value": "derived",
    }


def test_upstream_paths_lead_from_the_record(explainer: Explainer) -> None:
    target = f"{MATCH}&include[]=datasheets&include[]=external_links&include[]=broker_listings"
    fields = {each.path: each for each in explain(explainer, target).fields}

    assert fields["offers[].seller.name"].upstream == (
        "sellers(includeBrokers: true)[].company.id",
        "sellers(includeBrokers: true)[].company.name",
    )
    assert fields["offers[].is_authorized"].upstream == ("sellers(includeBrokers: true)[].isAuthorized",)
    assert fields["datasheets"].upstream == ("documentCollections[].documents[]",)
    assert "only where is_datasheet_group(documentCollections[].name)" in fields["datasheets"].note
    assert fields["broker_listings"].upstream == ("sellers(includeBrokers: true)[]",)
    assert fields["redirected_uids"].upstream == ("v3uid", "$requested_uid")


def test_a_limited_quota_is_named_with_the_cost() -> None:
    explanation = explain(configured(erp=application("A", parts=2, period="lifetime")), MATCH)

    assert explanation.cost is not None
    assert "Quota of erp: 2 in all; with fewer than 3 left, the response is a 429." in explanation.cost.note


def test_stored_results_are_named_by_what_must_be_equal_for_a_hit(explainer: Explainer) -> None:
    stored = [explain(explainer, target).stored for target in (MATCH, f"{MATCH}&include[]=specs")]
    keys = {each.queries[0].key for each in stored if each is not None}
    assert keys == {'supMultiMatch {"mpn":"SN74S74N"}'}
    assert [(each.seconds, each.stale_seconds) for each in stored if each is not None] == [(84_600, 1_800)] * 2


def test_a_search_that_finds_nothing_costs_nothing(explainer: Explainer) -> None:
    explanation = explain(explainer, "/v3/parts/search?filter[fields][brand.uid][]=0000000000000000")

    assert explanation.cost is not None
    assert (explanation.operations, explanation.cost.parts_max) == ((), 0)
    assert [each.name for each in explanation.ignored] == ["filter[fields][brand.uid]=0000000000000000"]


def test_a_search_by_an_unknown_spec_has_the_estimate_of_its_cost(explainer: Explainer) -> None:
    explanation = explain(explainer, "/v3/parts/search?filter[fields][specs.no_such.value][]=1&limit=7")

    assert explanation.cost is not None
    assert ([each.name for each in explanation.operations], explanation.cost.parts_max) == (["supAttributes"], 7)


def test_a_key_in_another_parameter_is_hidden(explainer: Explainer) -> None:
    explanation = explain(explainer, "/v3/parts/search?q=x&apikey=PLANTED_KEY&include[]=PLANTED_KEY&password=hunter2")

    text = msgspec.json.encode(explanation).decode()
    assert "PLANTED_KEY" not in text
    assert "hunter2" not in text
    assert "apikey=$APIKEY" in text
