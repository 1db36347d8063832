"""Tests of the request plan of a run."""

from support.comparison_server import request_from_target

from proxy.tools.compare import comparison

REQUESTS = [request_from_target(f"/v3/parts/search?q={n}&limit=5", client="erp") for n in range(100)]
REQUESTS += [request_from_target(f"/v3/brands/search?q={n % 3}", client="shop") for n in range(9)]


def test_each_request_is_planned_once_in_mixed_order() -> None:
    made = comparison.make_plan(REQUESTS, None)
    assert len(made.requests) == made.distinct == 103
    assert {request.id for request in made.requests} == {request.id for request in REQUESTS}
    assert [request.id for request in made.requests] != list(dict.fromkeys(request.id for request in REQUESTS))
    assert made.in_source == {"/parts/search": 100, "/brands/search": 3}
    assert {request.times for request in made.requests if request.client == "shop"} == {3}
    assert made.parts == 500


def test_sample_has_some_of_each_kind_and_is_stable() -> None:
    made = comparison.make_plan(REQUESTS, 10)
    assert (len(made.requests), made.distinct) == (10, 103)
    assert {request.client for request in made.requests} == {"erp", "shop"}
    assert comparison.make_plan(REQUESTS, 10).requests == made.requests


def test_requests_beyond_the_capacity_are_counted() -> None:
    made = comparison.make_plan(REQUESTS, None, held=50)
    assert (len(made.requests), made.dropped) == (50, 59)
