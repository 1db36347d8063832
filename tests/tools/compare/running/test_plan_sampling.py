"""Tests of deduplication and sampling of requests."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from proxy.tools.compare.running import plan
from proxy.traffic.v3_request import V3Request


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
    assert plan.deduplicate(requests).requests() == [
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
    assert distinct.occurrences == 3 * len(MANY) == distinct.dropped + sum(request.times for request in kept)
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
