"""Tests of the request plan of a run."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
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


def match(client: Any, *numbers: Any) -> Any:
    return V3Request("/parts/match", (("queries", json.dumps([{"mpn": number} for number in numbers])),), client)


def search(client: Any, q: Any) -> Any:
    return V3Request("/brands/search", (("q", q),), client)


MANY = [
    *(match("a", f"M{n}") for n in range(700)),
    *(match("a", *(f"M{n}-{k}" for k in range(20))) for n in range(200)),
    *(search("b", f"x{n}") for n in range(95)),
    *(V3Request(f"/parts/{n:016x}", (), "b") for n in range(4)),
    match("c", "ONE"),
]


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


def test_reservoir_is_bounded_with_exact_counts() -> None:
    distinct = plan.DistinctRequests(most=100)
    for request in [*MANY, *reversed(MANY), *MANY]:
        distinct.add(request)
    kept = distinct.requests()
    assert 90 <= len(kept) <= 100
    assert {request.times for request in kept} == {3}
    assert 3 * len(MANY) == distinct.dropped + sum(request.times for request in kept)
    assert {plan.stratum(request) for request in MANY} == {plan.stratum(request) for request in kept}


def test_few_requests_are_all_sampled() -> None:
    assert plan.sample(MANY, len(MANY), Random(1)) == MANY


@pytest.mark.parametrize("most", [5, 6, 20, 100, 999])
def test_every_stratum_is_represented_proportionally(most: int) -> None:
    chosen = plan.sample(MANY, most, Random(1))
    counts = Counter(map(plan.stratum, chosen))
    whole = Counter(map(plan.stratum, MANY))
    assert (len(chosen), set(counts)) == (most, set(whole))
    in_proportion = {each: most * whole[each] / len(MANY) for each in whole}
    assert all(abs(counts[each] - in_proportion[each]) < 3 for each in whole)
    assert [request.id for request in MANY if request in chosen] == [request.id for request in chosen]


def test_sample_is_stable_for_a_random_source() -> None:
    first, again, other = (plan.sample(MANY, 50, Random(seed)) for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.parametrize("most", [0, 1, 3])
def test_sample_smaller_than_strata_takes_the_largest(most: int) -> None:
    chosen = plan.sample(MANY, most, Random(1))
    assert [plan.stratum(request).size for request in chosen] == [2, 5, 0][:most]


def test_strata_are_clients_endpoints_and_sizes() -> None:
    requests = [
        match("a", "X"),
        match("b", "X"),
        match("a", *"ABCDEFGHIJ"),
        match("a", *"ABCDEFGHIJKLMNOPQRST"),
        search("a", "x"),
    ]
    assert len(set(map(plan.stratum, requests))) == len(requests)
    assert plan.stratum(match("a", "X")) == plan.stratum(match("a", "Y"))
