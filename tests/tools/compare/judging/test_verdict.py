"""Tests of verdicts: ready, not ready, inconclusive."""

from typing import Any

import msgspec
import pytest
from support import cases

from proxy.tools.compare.judging import verdict
from proxy.tools.compare.judging.settings import ReadinessSettings
from proxy.tools.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    EndpointResult,
    Interval,
    SideInfo,
    Verdict,
)

READY = ReadinessSettings(share=0.99, min_requests=100)


@cases.parametrize("equivalent, compared, whole, message")
def test_row_has_its_verdict(equivalent: int, compared: int, whole: bool, message: str) -> None:
    assert verdict.row_verdict(equivalent, compared, READY, whole=whole) == message


def test_minimum_number_of_requests_applies_to_any_share() -> None:
    lax = ReadinessSettings(share=0.5, min_requests=100)
    assert verdict.row_verdict(99, 99, lax, whole=False) == "inconclusive"
    assert verdict.row_verdict(100, 100, lax, whole=False) == "ready"


@pytest.mark.parametrize("failed, expected", [(0, "ready"), (1, "ready"), (10, "inconclusive"), (400, "inconclusive")])
def test_failed_requests_may_differ(failed: int, expected: Verdict) -> None:
    assert verdict.row_verdict(1000, 1000, READY, whole=False, not_compared=failed) == expected


def row(judged: Verdict = "ready", requests: int = 10, not_compared: int = 0) -> EndpointResult:
    return EndpointResult(
        "erp", "/parts/match", requests, requests, requests, not_compared, requests, 1.0, Interval(0.7, 1.0), judged
    )


@cases.parametrize("message, failed, complete, whole")
def test_run_has_the_verdict_of_its_worst_row(message: Any, failed: Any, complete: bool, whole: str) -> None:
    assert verdict.run_verdict([row(each) for each in message], failed, complete=complete) == whole


ONE = (row(),)


def result(*, rows: Any = ONE, counts: Any = (), failed: Any = (), complete: bool = True) -> Any:
    groups = tuple(
        DifferenceGroup("/parts/match", "p", "value", "unexplained", "", 1, 1, each, 0, 0, (), ()) for each in counts
    )
    return ComparisonResult(
        started=0,
        ended=1,
        source="log",
        sides=(SideInfo("baseline", "a"), SideInfo("candidate", "b")),
        verdict="ready",
        rows=rows,
        groups=groups,
        rules=(),
        latencies=(),
        cost=ComparisonCost(0, None, None),
        failures=(),
        failed=failed,
        notes=(),
        complete=complete,
    )


@pytest.mark.parametrize(
    "made, thresholds, code",
    [
        (result(), False, 0),
        (result(counts=(False,)), False, 0),
        (result(counts=(True,)), False, 1),
        (result(counts=(True,)), True, 0),
        (result(failed=("price: …",)), True, 1),
        (result(failed=("the rule x has expired",)), False, 1),
        (result(rows=()), False, 2),
        (result(rows=(row(), row(requests=0))), False, 2),
        (result(rows=(row(not_compared=1),)), False, 2),
        (result(complete=False), False, 2),
        (result(complete=False, counts=(True,)), False, 1),
    ],
)
def test_exit_code_follows_the_verdict(made: Any, thresholds: bool, code: int) -> None:
    assert verdict.exit_code(made, thresholds=thresholds) == code


def test_single_equivalent_request_is_inconclusive() -> None:
    assert verdict.row_verdict(1, 1, READY, whole=True) == "inconclusive"
    assert verdict.row_verdict(0, 1, READY, whole=True) == "not ready"


def test_client_without_a_compared_200_is_never_ready() -> None:
    assert verdict.row_verdict(400, 400, READY, whole=True, succeeded=False) == "inconclusive"
    unserved = msgspec.structs.replace(row("inconclusive"), succeeded=0)
    assert verdict.exit_code(result(rows=(unserved,)), thresholds=True) == verdict.NOT_COMPARED
    elsewhere = msgspec.structs.replace(row(), endpoint="/brands/search")
    assert verdict.exit_code(result(rows=(unserved, elsewhere)), thresholds=True) == verdict.EQUIVALENT


@cases.parametrize("hits, of, low, high")
def test_interval_is_that_of_wilson(hits: int, of: int, low: float, high: float) -> None:
    found = verdict.wilson_interval(hits, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
