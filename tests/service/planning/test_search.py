"""Plans of parts/search: the page, operations that count and cost nothing, and unsupported counts and sort keys, which
are empty or ignored, and named (contract v3-rest.md §1.1). tests/service/cases has plans with their operations."""

import json
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support import cases

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.model import Drilldown, FacetField, MappingContext, SearchRequest
from proxy.planning import documents, facets, lucene, match, search

MAPPINGS = loader.load(shipped("mappings"), "octopart")
TABLES = structs.replace(MAPPINGS.tables, listed={"Brand": {"Yageo": ("621",), "A": ("1",)}})
PROJECTIONS = documents.ProjectionCache(MAPPINGS)
ALL = frozenset({"TECH_SPECS"})
R = "specs.resistance.value"
LOST = "specs.test_text_attribute.value"  # a key of v3's, and of no attribute


def named(features: frozenset[str] = ALL, **request: Any) -> list[str]:
    return list(planned(SearchRequest(**request), features).unsupported)


def planned(request: SearchRequest, features: frozenset[str] = ALL) -> search.Plan:
    """Plan with the shipped tables, which have all specs of the upstream."""
    steps = planning(request, features)
    try:
        assert next(steps) == documents.ATTRIBUTES
        steps.send(TABLES.specs)
    except StopIteration as done:
        plan: search.Plan = done.value
        return plan
    pytest.fail("another list is needed")


def planning(request: SearchRequest, features: frozenset[str] = ALL) -> Generator[str, Any, search.Plan]:
    *_, filters = lucene.parse_filters(request)
    return search.plan_with_lists(request, filters, TABLES, features)


fields = st.sampled_from(["brand.name", "offers.seller.uid", "category_uids", "avg_avail", R, "specs.pin_count.value"])
counted = st.builds(FacetField, fields, st.booleans(), st.booleans(), st.integers(0, 1000), st.integers(0, 100))


@given(
    st.integers(0, 1000),
    st.integers(0, 100),
    st.lists(counted, max_size=4, unique_by=lambda facet: facet.field),
    st.lists(st.sampled_from(["brand.name:A", f"{R}:[1 TO 2]", "avg_avail:[1 TO *]"]), max_size=2, unique=True),
    st.sampled_from([(), ((R, False),), ((R, True),)]),
    st.none() | st.builds(Drilldown, st.booleans(), st.booleans(), st.integers(0, 100)),
)
def test_counts_cost_nothing_within_upstream_ranges(
    start: int, limit: int, facets: Any, queries: Any, stats: Any, drilldown: Any
) -> None:
    request = SearchRequest("x", start, limit, "", (), (), tuple(facets), tuple(queries), stats, drilldown)
    plan = planned(request)
    (query,) = plan.queries
    assert (query.start, query.end) == (start, start + limit)
    for operation in search.count_operations(plan, MappingContext("US", "USD")).values():
        sent = json.loads(operation.payload)
        assert (operation.parts_max, "part {" in sent["query"]) == (0, False)
        assert 10 <= sent["variables"].get("size", 10) <= 1000
        signature = sent["query"].partition(")")[0]
        assert all(f"${name}:" in signature for name in sent["variables"])


def facet(field: str, include: bool = True) -> FacetField:
    return FacetField(field, include=include)


def test_unsupported_facets_are_reported_if_they_are_included() -> None:
    facets = (facet("brand.name"), facet(R), facet("offers.sku"), facet("uid", include=False))
    assert named(facets=facets, stats=((R, True),)) == ["facet[fields][offers.sku]"]


@cases.parametrize("sortby, ignored")
def test_unsupported_sort_keys_are_reported(sortby: str, ignored: list[str]) -> None:
    assert named(sortby=sortby) == list(dict.fromkeys(f"sortby={name}" for name in ignored))


@cases.parametrize(
    "request_",
    {"facets": (facet("flavor"),)},
    {"facets": (facet("specs.flavor.min"),)},
)
def test_unknown_field_and_filter_without_source_are_refused(request_: Any) -> None:
    with pytest.raises(errors.BadRequest):
        named(**request_)


@pytest.mark.parametrize(
    "request_",
    [{"facets": (facet(LOST),)}, {"stats": ((LOST, True),)}, {"sortby": LOST}, {"filters": ((LOST, ("1",)),)}],
)
def test_upstream_attributes_are_checked_before_a_spec_is_refused(request_: Any) -> None:
    assert next(planning(SearchRequest(**request_))) == documents.ATTRIBUTES


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("start, limit", [(0, 1), (0, 10), (50, 10), (1000, 100), (0, 100)])
def test_mpn_search_stays_within_the_limit_of_an_operation(count: int, start: int, limit: int) -> None:
    rows = match.candidate_limit(count, start, limit)
    assert 5 <= rows <= 100
    assert rows * count <= 100
    assert match.candidate_limit(count, start, 0) == 0


def field(name: str, **more: Any) -> FacetField:
    return FacetField(name, include=True, **more)


def spec(shortname: str, *buckets: tuple[str, float | None, int], **more: Any) -> facets.SpecAgg:
    kind = "number" if any(number is not None for _, number, _ in buckets) else "text"
    return facets.SpecAgg(
        attribute=facets.SpecAttribute(shortname.title(), shortname),
        buckets=[facets.Bucket(displayValue=shown, floatValue=number, count=count) for shown, number, count in buckets],
        **{"valueType": kind, **more},
    )


def test_suggested_spec_has_at_most_ten_values() -> None:
    many = SimpleNamespace(specAggs=[spec("resistance", *((f"{n} Ω", float(n), 1) for n in range(30)))])
    values = facets.drilldown_results(TABLES, many, 10, 100)[0][R]["facets"]
    assert [each["value"] for each in values] == [f"{n}.0" for n in range(10)]


@pytest.mark.parametrize(
    "buckets, size, count",
    [
        ([("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, 1)], 3, 5),
        ([("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, 1)], 2, None),  # there may be more
        ([("1 kΩ", 1000.0, 4), ("0 Ω or so", None, 1)], 3, 4),
        ([("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, None)], 3, None),
        ([], 3, None),  # it has a minimum
    ],
)
def test_stats_count_the_values_of_complete_buckets(buckets: list[Any], size: int, count: int | None) -> None:
    found = SimpleNamespace(specAggs=[spec("resistance", *buckets, siMin="2.2", siMax="1000")])
    assert facets.stats_result(facets.specs(TABLES, R, found), found, size)["count"] == count


def test_tolerance_is_not_named_after_a_quantity_whose_tolerance_is_a_spec_of_its_own() -> None:
    suggested = SimpleNamespace(specAggs=[spec("inductance"), spec("tolerance", ("5 %", 5.0, 1))])
    assert "specs.tolerance.value" in facets.drilldown_results(TABLES, suggested, 10, 100)[0]
