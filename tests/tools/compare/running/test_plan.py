"""Tests of the request plan of a run."""

from random import Random
from typing import Any

from support.comparison_server import request_from_target

from proxy.tools.compare.judging.counting import SourceCount
from proxy.tools.compare.running import plan
from proxy.traffic.v3_request import V3Request

REQUESTS = [request_from_target(f"/v3/parts/search?q={n}&limit=5", client="erp") for n in range(100)]
REQUESTS += [request_from_target(f"/v3/brands/search?q={n % 3}", client="shop") for n in range(9)]


def test_each_request_is_planned_once_in_mixed_order() -> None:
    made = plan.make_plan(REQUESTS, None, Random(1))
    assert len(made.requests) == made.distinct == 103
    assert {request.id for request in made.requests} == {request.id for request in REQUESTS}
    assert [request.id for request in made.requests] != list(dict.fromkeys(request.id for request in REQUESTS))
    assert made.source_counts == {
        ("erp", "/parts/search"): SourceCount(100, 100),
        ("shop", "/brands/search"): SourceCount(3, 9),
    }
    shop = [place for place, request in enumerate(made.requests) if request.client == "shop"]
    assert shop != [100, 101, 102]


def test_sample_has_the_totals_and_is_stable_for_a_seed() -> None:
    made = plan.make_plan(REQUESTS, 10, Random(1))
    assert len(made.requests) == 10
    assert made.distinct == 103
    assert made.source_counts["shop", "/brands/search"].times == 9
    assert any(request.client == "shop" for request in made.requests)
    assert plan.make_plan(REQUESTS, 10, Random(1)).digest == made.digest
    assert plan.make_plan(REQUESTS, 10, Random(2)).digest != made.digest


def test_requests_beyond_the_capacity_count_in_the_totals() -> None:
    made = plan.make_plan(REQUESTS, None, Random(1), held=50)
    assert len(made.requests) <= 50
    assert made.dropped == len(REQUESTS) - sum(request.times for request in made.requests)
    assert made.source_counts["erp", "/parts/search"].times == 100
    assert made.source_counts["erp", "/parts/search"].requests > sum(
        request.client == "erp" for request in made.requests
    )
    assert made.source_counts["shop", "/brands/search"] == SourceCount(3, 9)


def test_completed_requests_are_left_out() -> None:
    made = plan.make_plan(REQUESTS, None, Random(1))
    requests, estimate = plan.remaining(made, {request.id for request in made.requests if request.client == "shop"})
    assert len(requests) == 100
    assert (estimate.requests, estimate.parts) == (100, 500)


def search(client: Any, q: Any) -> Any:
    return V3Request("/brands/search", (("q", q),), client)


def test_equal_requests_are_kept_once_and_counted() -> None:
    requests = [
        search("a", "x"),
        search("b", "x"),
        V3Request("/brands/search", (("q", "x"),), "a", 4, "log:9"),
        search("a", "y"),
    ]
    distinct = plan.DistinctRequests()
    for request in requests:
        distinct.add(request)
    assert distinct.requests() == [
        V3Request("/brands/search", (("q", "x"),), "a", 5),
        search("b", "x"),
        search("a", "y"),
    ]
