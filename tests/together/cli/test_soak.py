"""Tests of `python -m bench.soak`: a short run passes every check, and each check detects the error that it is for."""

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import cases

ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 170  # for a slow machine; usually it takes 50, most of them until idle connections are closed
RIGHT = {"__class__": "PartsMatchResult", "items": [{"mpn": "A"}], "hits": 1, "reference": None, "error": None}
OTHER = RIGHT | {"items": [{"mpn": "B"}]}
FAILED = RIGHT | {"items": [], "hits": 0, "error": "the GraphQL service sent an answer that is cut"}
CUT = {"cut": 1}


def test_every_response_is_right_and_every_part_booked_under_faults() -> None:
    command = [sys.executable, "-m", "bench.soak", "4", "100", "--share", "0.15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "errors" in done.stdout


@pytest.fixture
def response_judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("bench.soak.response_judge")


@pytest.fixture
def soak(response_judge: Any) -> Any:
    """Module of the checks, a plan of 1 000 requests with 5 % faults, and an outcome without errors."""
    module = importlib.import_module("bench.soak.outcome")
    outcome = module.SoakOutcome(
        succeeded=Counter({"search": 900}), memory=[80.0, 100.0, 109.0], upstream_requests=400, faulted=20
    )
    outcome.totals = {"parts": 120, "spoiled_parts": 20, "faults": {"cut": 20}}
    outcome.ledger = module.LedgerTotals(used=100, uncertain=30, reserved=0)
    outcome.judge.statuses.update({200: 985, 503: 15})
    outcome.judge.baseline_bytes = 10**9
    return module, module.SoakPlan(10.0, 100.0, 1, 0.05), outcome


@pytest.fixture
def judge(response_judge: Any) -> Any:
    """Judge with the baseline response to a match of two queries."""
    judge = response_judge.ResponseJudge()
    judge.add_baseline("/", _response(response_judge, RIGHT, OTHER, msec=1))
    return judge


def _response(response_judge: Any, *results: Any, status: int = 200, **body: Any) -> Any:
    body = {"results": results, **body} if results else body
    return response_judge.ReceivedResponse(status, {"X-Parts-Cost": "2", "X-Cache": "miss"}, json.dumps(body).encode())


def test_equal_response_is_right_at_any_duration(response_judge: Any, judge: Any) -> None:
    judge.check("/", _response(response_judge, RIGHT, OTHER, msec=9))
    assert (judge.errors, judge.cost, judge.statuses[200]) == ([], 4, 1)


def test_query_error_is_allowed_if_a_fault_explains_it(response_judge: Any, judge: Any) -> None:
    judge.check("/", _response(response_judge, RIGHT, FAILED))
    assert (judge.errors, judge.failed_queries) == ([], 1)
    assert list(judge.unexplained(CUT)) == []
    assert list(judge.unexplained({"reset": 9})) == [f"1 times {FAILED['error']!r}, which no fault explains"]


@pytest.mark.parametrize(
    "results",
    [(OTHER, RIGHT), (RIGHT,), (RIGHT, RIGHT), (RIGHT, FAILED | {"hits": 1}), (RIGHT, FAILED | {"error": None})],
)
def test_response_to_another_request_is_wrong(response_judge: Any, judge: Any, results: Any) -> None:
    judge.check("/", _response(response_judge, *results))
    assert judge.errors


@cases.parametrize("status, body")
def test_error_in_another_shape_is_wrong(response_judge: Any, judge: Any, status: int, body: Any) -> None:
    judge.check("/", _response(response_judge, status=status, **body))
    assert len(judge.errors) == 1


def test_internal_error_is_explained_by_no_fault(response_judge: Any, judge: Any) -> None:
    judge.check(
        "/",
        _response(response_judge, status=502, __class__="ServerErrorResponse", message="Internal error (request 1)"),
    )
    assert judge.errors == []
    assert len(list(judge.unexplained(CUT))) == 1


def _errors(soak: Any, kinds: Any = ("search",)) -> Any:
    module, plan, outcome = soak
    return list(module.check(plan, outcome, kinds))


def test_soak_without_errors_passes(soak: Any) -> None:
    assert _errors(soak) == []


def _set(**values: object) -> Callable[[Any], None]:
    def change(outcome: Any) -> None:
        for name, value in values.items():
            setattr(outcome, name, value)

    return change


@pytest.mark.parametrize(
    "change, text",
    [
        (_set(memory=[80.0, 100.0, 111.0]), "memory grew from 100 to 111 MB"),
        (_set(ledger=(99, 30, 0)), "99 parts are booked, the sandbox returned 100"),
        (_set(ledger=(101, 30, 0), late=9), "101 parts are booked, the sandbox returned 100"),
        (_set(ledger=(100, 19, 0)), "19 parts are uncertain usage, fewer than the 20 billed and not booked"),
        (_set(ledger=(100, 30, 1)), "1 parts are still reserved"),
        (_set(faulted=6), "6 of 400 upstream requests had a fault, too few"),
        (_set(succeeded=Counter({"search": 0})), "no request succeeded under load of: search"),
        (lambda outcome: outcome.judge.statuses.update({503: 1}), "16 responses are a 503, more than 15"),
        (lambda outcome: outcome.judge.statuses.update({502: 9_000}), "most requests failed"),
        (lambda outcome: setattr(outcome.judge, "baseline_bytes", 1), "was never full: all responses have 1"),
        (lambda outcome: outcome.judge.messages.update(["odd"]), "1 times 'odd', which no fault explains"),
        (_set(tasks=(4, 100, 13)), "13 tasks are not done"),
        (_set(descriptors=(20, 100, 29)), "29 descriptors are open"),
    ],
)
def test_errors_of_a_soak_are_reported(soak: Any, change: Any, text: str) -> None:
    change(soak[2])
    (error,) = _errors(soak)
    assert text in error


@pytest.mark.parametrize(
    "token_faults, refused, counted",
    [({"expired": 1}, 100, 15), ({"expired": 1}, 101, 16), ({"401": 1, "expired": 1}, 200, 15), ({}, 1, 16)],
)
def test_an_expired_token_excuses_the_refusals_of_one_back_off(
    soak: Any, token_faults: dict[str, int], refused: int, counted: int
) -> None:
    """At 100 requests per second; 15 other responses with a 503 are allowed."""
    outcome = soak[2]
    outcome.totals["faults"] |= token_faults
    outcome.judge.without_token = refused
    outcome.judge.statuses.update({503: refused})
    assert _errors(soak) == ([] if counted == 15 else [f"{counted} responses are a 503, more than 15"])


@pytest.mark.parametrize(
    "message, refused",
    [("no token of application soak in time", 1), ("the GraphQL service asks for fewer requests", 0)],
)
def test_responses_without_a_token_are_counted(response_judge: Any, judge: Any, message: str, refused: int) -> None:
    judge.check("/", _response(response_judge, status=503, __class__="ServerErrorResponse", message=message))
    assert (judge.errors, judge.without_token) == ([], refused)


def test_slow_machine_excuses_failures_but_no_memory_growth(soak: Any) -> None:
    soak[2].late = 5
    soak[2].ledger = (90, 40, 0)
    soak[2].judge.statuses[503] = 100
    soak[2].memory[2] = 120.0
    assert _errors(soak) == ["memory grew from 100 to 120 MB"]
