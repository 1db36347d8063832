"""Tests of the advice for every outcome of a run."""

import msgspec
import pytest
from support import cases, comparison_result

from proxy.tools.compare.reports import advice
from proxy.tools.compare.results import ComparisonResult, DifferenceGroup


def test_ready_run_advises_to_switch() -> None:
    (step,) = advice.next_steps(comparison_result.ready_result())
    assert step.startswith("Point the clients at the candidate")


def test_blocking_groups_are_named_largest_first() -> None:
    steps = advice.next_steps(comparison_result.result())
    starts = [
        "17 requests could not",
        "Begin with /parts/match, results[*].items[*].offers[*].prices.USD[*]: different",
    ]
    starts += ["Compare more requests of key 1", "Renew or remove", "Remove unused", "Then compare again"]
    assert [step.startswith(start) for step, start in zip(steps, starts, strict=True)] == [True] * 6


@cases.parametrize("cause, says")
def test_unmappable_difference_is_not_advised_as_a_mapping_change(cause: str, says: str) -> None:
    groups = comparison_result.result().groups
    (first,) = {step for step in advice.next_steps(_only(groups[0], cause)) if step.startswith("Begin with")}
    assert says in first
    assert ("mapping" in first) == (cause == "unexplained")


def _only(group: DifferenceGroup, cause: str) -> ComparisonResult:
    return comparison_result.result(groups=(msgspec.structs.replace(group, cause=cause, counts=True),))


def test_incomplete_run_is_advised_to_resume() -> None:
    first, *rest = advice.next_steps(comparison_result.result(complete=False))
    assert first.startswith("The run is not complete")
    assert rest


def test_ready_verdict_on_a_sample_does_not_advise_to_switch() -> None:
    steps = advice.next_steps(msgspec.structs.replace(comparison_result.ready_result(), complete=False))
    assert not any("Point the clients" in step for step in steps)


@pytest.mark.parametrize("verdict", ["ready", "not ready", "inconclusive"])
def test_advice_is_never_empty(verdict: str) -> None:
    bare = comparison_result.result(verdict=verdict, rows=(), groups=(), rules=(), failures=(), failed=())
    assert advice.next_steps(bare)
