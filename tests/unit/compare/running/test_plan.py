"""What a run is going to ask."""

from random import Random

from support.comparison_server import request_from_target

from proxy.compare.judging.counting import SourceCount
from proxy.compare.running import plan

REQUESTS = [request_from_target(f"/v3/parts/search?q={n}&limit=5", client="erp") for n in range(100)]
REQUESTS += [request_from_target(f"/v3/brands/search?q={n % 3}", client="shop") for n in range(9)]


def test_each_request_is_asked_once_in_an_order_that_mixes_all_sorts() -> None:
    made = plan.make_plan(REQUESTS, None, Random(1))
    assert len(made.requests) == made.distinct == 103
    assert {request.id for request in made.requests} == {request.id for request in REQUESTS}
    assert [request.id for request in made.requests] != list(dict.fromkeys(request.id for request in REQUESTS))
    assert made.asked == {
        ("erp", "/parts/search"): SourceCount(100, 100),
        ("shop", "/brands/search"): SourceCount(3, 9),
    }
    shop = [place for place, request in enumerate(made.requests) if request.client == "shop"]
    assert shop != [100, 101, 102]


def test_a_sample_knows_the_whole_and_is_the_same_for_the_same_seed() -> None:
    made = plan.make_plan(REQUESTS, 10, Random(1))
    assert len(made.requests) == 10
    assert made.distinct == 103
    assert made.asked["shop", "/brands/search"].times == 9
    assert any(request.client == "shop" for request in made.requests)
    assert plan.make_plan(REQUESTS, 10, Random(1)).digest == made.digest
    assert plan.make_plan(REQUESTS, 10, Random(2)).digest != made.digest


def test_more_requests_than_can_be_held_count_in_what_the_source_holds() -> None:
    made = plan.make_plan(REQUESTS, None, Random(1), held=50)
    assert len(made.requests) <= 50
    assert made.dropped == len(REQUESTS) - sum(request.times for request in made.requests)
    assert made.asked["erp", "/parts/search"].times == 100
    assert made.asked["erp", "/parts/search"].requests > sum(request.client == "erp" for request in made.requests)
    assert made.asked["shop", "/brands/search"] == SourceCount(3, 9)


def test_what_is_done_is_left_out_and_no_longer_counted() -> None:
    made = plan.make_plan(REQUESTS, None, Random(1))
    requests, estimate = plan.remaining(made, {request.id for request in made.requests if request.client == "shop"})
    assert len(requests) == 100
    assert (estimate.requests, estimate.parts) == (100, 500)
