"""What to do next, for every way in which a run can end."""

import msgspec
import pytest
from support import comparison_result

from proxy.compare.reports import advice
from proxy.compare.results import ComparisonResult, DifferenceGroup


def test_a_ready_run_says_to_switch_over() -> None:
    (step,) = advice.next_steps(comparison_result.ready_result())
    assert step.startswith("Point the clients at the candidate")


def test_what_stands_in_the_way_is_named_largest_first() -> None:
    steps = advice.next_steps(comparison_result.result())
    starts = ["17 requests could not", "Begin with /parts/match, results[*].items[*].offers[*].prices.USD[*]: another"]
    starts += ["Compare more requests of key 1", "Look again at", "Remove rules", "Then compare again"]
    assert [step.startswith(start) for step, start in zip(steps, starts, strict=True)] == [True] * 6


@pytest.mark.parametrize(
    "cause, says",
    [
        ("unexplained", "Change its mapping"),
        ("status", "the side that refuses says why"),
        ("latency", "raise latency in compare.yaml"),
        ("missing part", "Look such a part up in the new service"),
        ("extra part", "Look such a part up in the old service"),
    ],
)
def test_what_no_mapping_puts_right_is_not_to_be_put_right_there(cause: str, says: str) -> None:
    groups = comparison_result.result().groups
    (first,) = {step for step in advice.next_steps(_only(groups[0], cause)) if step.startswith("Begin with")}
    assert says in first
    assert ("mapping" in first) == (cause == "unexplained")


def _only(group: DifferenceGroup, cause: str) -> ComparisonResult:
    return comparison_result.result(groups=(msgspec.structs.replace(group, cause=cause, counts=True),))


def test_a_run_that_broke_off_is_to_be_resumed_first() -> None:
    first, *rest = advice.next_steps(comparison_result.result(complete=False))
    assert first.startswith("The run did not reach its end")
    assert rest


def test_a_ready_verdict_on_a_part_of_the_requests_does_not_say_to_switch_over() -> None:
    steps = advice.next_steps(msgspec.structs.replace(comparison_result.ready_result(), complete=False))
    assert not any("Point the clients" in step for step in steps)


@pytest.mark.parametrize("verdict", ["ready", "not ready", "inconclusive"])
def test_there_is_always_something_to_do(verdict: str) -> None:
    bare = comparison_result.result(verdict=verdict, rows=(), groups=(), rules=(), failures=(), failed=())
    assert advice.next_steps(bare)
