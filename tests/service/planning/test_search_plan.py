"""Tests of parts/search plans: the page, and a count for each separate set of criteria (contract v3-rest.md §1.1)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors
from proxy.kit import shipped, slices
from proxy.mapping import loader
from proxy.model import Drilldown, FacetField, MappingContext, SearchRequest
from proxy.planning import projection_cache, queries, search, search_support

MAPPINGS = loader.load(shipped.path("mappings"), "octopart")
TABLES = MAPPINGS.tables.with_list("Brand", {"Yageo": ("621",), "A": ("1",)})
PROJECTIONS = projection_cache.ProjectionCache(MAPPINGS)
ALL = frozenset({"TECH_SPECS"})
R = "specs.resistance.value"


def plan_of(request: SearchRequest) -> search.Plan:
    return search.plan(request, slices.run_to_end(search_support.parse_filters(request)), TABLES, ALL)


def planned(**request: Any) -> tuple[queries.Query, list[tuple[dict[str, Any], int, str]]]:
    """The query, and variables, worst cost and document of every operation that counts."""
    plan = plan_of(SearchRequest(**{"q": "x", **request}))
    (query,) = plan.queries()
    counting = list(plan.count_operations(PROJECTIONS.count, MappingContext("US", "USD")).values())
    bodies = [json.loads(each.payload) for each in counting]
    return query, [
        (body["variables"], each.parts_max, body["query"]) for body, each in zip(bodies, counting, strict=True)
    ]


COUNTED = {"q": "x", "country": "US", "currency": "USD", "start": 0, "limit": 0}
TI = (("brand.name", ("Texas Instruments",)),)
FILTERED = {"filters": {"manufacturer_id": ["370"]}}
OF_R = {"filtered": ["resistance"]}  # described for spec_metadata


@cases.parametrize(
    "request_, page, criteria, counts",
    ({"filters": TI}, (0, 10), FILTERED, []),
    (
        {"facets": (FacetField("brand.name", include=True),), "filters": TI},
        (0, 10),
        FILTERED,
        [{"size": 10, **FILTERED}],
    ),
    (
        {
            "facets": (FacetField("brand.name", include=True, exclude_filter=True),),
            "filters": TI,
            "sortby": "mpn asc",
        },
        (0, 10),
        {"sort": "mpn", "sortDir": "asc", **FILTERED},
        [{"size": 10}],
    ),
    (
        {"stats": ((R, True),), "filter_queries": (f"{R}:[1 TO 2]",), "filters": TI},
        (0, 10),
        {"filters": {"manufacturer_id": ["370"], "resistance": ["(1.0__2.0)"]}},
        [
            {**OF_R, "filters": {"manufacturer_id": ["370"], "resistance": ["(1.0__2.0)"]}},
            {"size": 1000, "attributes": ["resistance"], "selection": "EXPLICIT", **FILTERED},
        ],
    ),
    (
        {"drilldown": Drilldown(include=True, exclude_filter=True), "filters": (*TI, (R, ("5",)))},
        (0, 10),
        {"filters": {"manufacturer_id": ["370"], "resistance": ["5"]}},
        [
            {**OF_R, "filters": {"manufacturer_id": ["370"], "resistance": ["5"]}},
            {"size": 100, "attributes": [], "selection": "WITH_SUGGESTED", **FILTERED},
        ],
    ),
)
def test_page_and_counts_are_separate(
    request_: Any, page: tuple[int, int], criteria: dict[str, Any], counts: list[Any]
) -> None:
    query, counted = planned(**request_)
    assert ((query.start, query.end), query.criteria) == (tuple(page), {"q": "x", **criteria})
    assert [variables for variables, _, _ in counted] == [{**COUNTED, **each} for each in counts]


fields = st.sampled_from(["brand.name", "offers.seller.uid", "category_uids", "avg_avail", R, "specs.pin_count.value"])
facets = st.builds(FacetField, fields, st.booleans(), st.booleans(), st.integers(0, 1000), st.integers(0, 100))


@given(
    st.integers(0, 1000),
    st.integers(0, 100),
    st.lists(facets, max_size=4, unique_by=lambda facet: facet.field),
    st.lists(st.sampled_from(["brand.name:A", f"{R}:[1 TO 2]", "avg_avail:[1 TO *]"]), max_size=2, unique=True),
    st.sampled_from([(), ((R, False),), ((R, True),)]),
    st.none() | st.builds(Drilldown, st.booleans(), st.booleans(), st.integers(0, 100)),
)
def test_counts_cost_nothing_within_upstream_ranges(
    start: int, limit: int, facets: Any, queries: Any, stats: Any, drilldown: Any
) -> None:
    query, counted = planned(
        start=start, limit=limit, facets=tuple(facets), facet_queries=tuple(queries), stats=stats, drilldown=drilldown
    )
    assert (query.start, query.end) == (start, start + limit)
    for variables, cost, document in counted:
        assert (cost, "part {" in document) == (0, False)
        assert 10 <= variables.get("size", 10) <= 1000
        signature = document.partition(")")[0]
        assert all(f"${name}:" in signature for name in variables)


@pytest.mark.parametrize(
    "request_",
    [
        {"sortby": "x asc"},
        {"filters": (("x", ("1",)),)},
        {"filter_queries": ("x",)},
        {"facet_queries": ("x:1",)},
        {"facets": (FacetField("x", include=True),)},
        {"stats": (("x", False),)},
    ],
)
def test_inexpressible_search_is_refused_before_any_request(request_: Any) -> None:
    with pytest.raises(errors.BadRequest):
        planned(**request_)
