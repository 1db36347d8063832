"""Explanations are made of the plan that serves the request."""

import os

import pytest

from proxy.compare.requests import V3Request, parse_target
from proxy.config import loader
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import Explanation
from proxy.kit import shipped


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(loader.load(shipped.path("config.yaml"), os.environ, upstream=False))


def explain(explainer: Explainer, target: str) -> Explanation:
    path, query, apikey = parse_target(target)
    return explainer.explain(V3Request(path, query), apikey=apikey)


def test_a_single_number_is_a_search_and_a_count_on_condition(explainer: Explainer) -> None:
    explanation = explain(explainer, '/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N","limit":5}]')

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
        ("supSearch", (3,)),
        ("supMultiMatch", (2,)),
    ]
    assert explanation.queries[1].error is not None
    assert [each.name for each in explanation.ignored] == ["queries[1].x"]
    assert [each.query for each in explanation.cache.entries] == [0, 2, 3] if explanation.cache else False


def test_an_unlisted_name_stands_as_a_placeholder(explainer: Explainer) -> None:
    explanation = explain(explainer, "/v3/parts/search?filter[fields][brand.name][]=Nobody&limit=7")

    brands, search = explanation.operations
    assert explanation.lists == ("Brand",)
    assert (brands.name, brands.parts_max) == ("supManufacturers", 0)
    assert search.variables["filters"] == {"manufacturer_id": ["<id of Nobody>"]}


@pytest.mark.parametrize(
    "target, status, part",
    [
        ("/v3/parts/match", 400, "queries argument missing"),
        ("/v3/parts/search?limit=101", 400, "limit must be"),
        ("/v3/brands/searches", 404, "/v3/brands/search"),
    ],
)
def test_an_error_is_explained(explainer: Explainer, target: str, status: int, part: str) -> None:
    explanation = explain(explainer, target)

    assert explanation.error is not None
    assert explanation.error.status == status
    assert part in explanation.error.message
    assert explanation.operations == ()
