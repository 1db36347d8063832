"""What a run is going to ask."""

from random import Random

from support.comparison_server import call_from_target

from proxy.compare.judging.counting import SourceCount
from proxy.compare.running import plan

CALLS = [call_from_target(f"/v3/parts/search?q={n}&limit=5", client="erp") for n in range(100)]
CALLS += [call_from_target(f"/v3/brands/search?q={n % 3}", client="shop") for n in range(9)]


def test_each_call_is_asked_once_in_an_order_that_mixes_all_sorts() -> None:
    made = plan.make_plan(CALLS, None, Random(1))
    assert len(made.calls) == made.distinct == 103
    assert {call.id for call in made.calls} == {call.id for call in CALLS}
    assert [call.id for call in made.calls] != list(dict.fromkeys(call.id for call in CALLS))
    assert made.asked == {
        ("erp", "/parts/search"): SourceCount(100, 100),
        ("shop", "/brands/search"): SourceCount(3, 9),
    }
    shop = [place for place, call in enumerate(made.calls) if call.client == "shop"]
    assert shop != [100, 101, 102]


def test_a_sample_knows_the_whole_and_is_the_same_for_the_same_seed() -> None:
    made = plan.make_plan(CALLS, 10, Random(1))
    assert len(made.calls) == 10
    assert made.distinct == 103
    assert made.asked["shop", "/brands/search"].times == 9
    assert any(call.client == "shop" for call in made.calls)
    assert plan.make_plan(CALLS, 10, Random(1)).digest == made.digest
    assert plan.make_plan(CALLS, 10, Random(2)).digest != made.digest


def test_more_calls_than_can_be_held_count_in_what_the_source_holds() -> None:
    made = plan.make_plan(CALLS, None, Random(1), held=50)
    assert len(made.calls) <= 50
    assert made.dropped == len(CALLS) - sum(call.times for call in made.calls)
    assert made.asked["erp", "/parts/search"].times == 100
    assert made.asked["erp", "/parts/search"].calls > sum(call.client == "erp" for call in made.calls)
    assert made.asked["shop", "/brands/search"] == SourceCount(3, 9)


def test_what_is_done_is_left_out_and_no_longer_counted() -> None:
    made = plan.make_plan(CALLS, None, Random(1))
    calls, estimate = plan.remaining(made, {call.id for call in made.calls if call.client == "shop"})
    assert len(calls) == 100
    assert (estimate.calls, estimate.parts) == (100, 500)
