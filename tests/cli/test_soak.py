"""A load under faults, held: the short run of `python -m bench.soak`, whose every check has to pass.

And that its checks do not pass by themselves: what they say of replies that are wrong.
"""

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 170  # a slow machine's; usually it takes 50, most of them for idle connections to be closed
RIGHT = {"__class__": "PartsMatchResult", "items": [{"mpn": "A"}], "hits": 1, "reference": None, "error": None}
OTHER = RIGHT | {"items": [{"mpn": "B"}]}
FAILED = RIGHT | {"items": [], "hits": 0, "error": "the GraphQL service sent an answer that is cut"}
CUT = {"cut": 1}


def test_every_response_is_right_and_every_part_booked_under_faults() -> None:
    command = [sys.executable, "-m", "bench.soak", "4", "100", "--share", "0.15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong" in done.stdout


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("bench.soak.replies")


@pytest.fixture
def soak(replies: Any) -> Any:
    """The module that concludes, a plan of 1 000 requests with 5 % faults, and an outcome with nothing wrong."""
    module = importlib.import_module("bench.soak.outcome")
    outcome = module.Outcome(answered=Counter({"search": 900}), memory=[80.0, 100.0, 109.0], asked=400, struck=20)
    outcome.totals = {"parts": 120, "spoiled_parts": 20, "faults": {"cut": 20}}
    outcome.ledger = module.Ledger(used=100, doubtful=30, reserved=0)
    outcome.judge.statuses.update({200: 985, 503: 15})
    outcome.judge.learned = 10**9
    return module, module.Plan(10.0, 100.0, 1, 0.05), outcome


@pytest.fixture
def judge(replies: Any) -> Any:
    """Has learned the answer to a match of two queries."""
    judge = replies.ResponseJudge()
    judge.learn("/", _reply(replies, RIGHT, OTHER, msec=1))
    return judge


def _reply(replies: Any, *results: Any, status: int = 200, **body: Any) -> Any:
    body = {"results": results, **body} if results else body
    return replies.Reply(status, {"X-Parts-Cost": "2", "X-Cache": "miss"}, json.dumps(body).encode())


def test_equal_response_is_right_at_any_duration(replies: Any, judge: Any) -> None:
    judge.see("/", _reply(replies, RIGHT, OTHER, msec=9))
    assert (judge.findings, judge.cost, judge.statuses[200]) == ([], 4, 1)


def test_query_error_is_allowed_if_a_fault_explains_it(replies: Any, judge: Any) -> None:
    judge.see("/", _reply(replies, RIGHT, FAILED))
    assert (judge.findings, judge.failed_queries) == ([], 1)
    assert list(judge.unexplained(CUT)) == []
    assert list(judge.unexplained({"reset": 9})) == [f"1 times {FAILED['error']!r}, which no fault explains"]


@pytest.mark.parametrize(
    "results",
    [(OTHER, RIGHT), (RIGHT,), (RIGHT, RIGHT), (RIGHT, FAILED | {"hits": 1}), (RIGHT, FAILED | {"error": None})],
)
def test_response_to_another_request_is_wrong(replies: Any, judge: Any, results: Any) -> None:
    judge.see("/", _reply(replies, *results))
    assert judge.findings


@pytest.mark.parametrize(
    "status, body",
    [
        (502, {"__class__": "ClientErrorResponse", "message": "no"}),
        (500, {"__class__": "ServerErrorResponse", "message": "no"}),
        (503, {"message": "no"}),
        (503, {"__class__": "ServerErrorResponse", "message": "no", "trace": "…"}),
    ],
)
def test_error_in_another_shape_is_wrong(replies: Any, judge: Any, status: int, body: Any) -> None:
    judge.see("/", _reply(replies, status=status, **body))
    assert len(judge.findings) == 1


def test_internal_error_is_explained_by_no_fault(replies: Any, judge: Any) -> None:
    judge.see("/", _reply(replies, status=502, __class__="ServerErrorResponse", message="Internal error (request 1)"))
    assert judge.findings == []
    assert len(list(judge.unexplained(CUT))) == 1


def _found(soak: Any, kinds: Any = ("search",)) -> Any:
    module, plan, outcome = soak
    return list(module.findings(plan, outcome, kinds))


def test_soak_without_errors_passes(soak: Any) -> None:
    assert _found(soak) == []


def _set(**values: object) -> Callable[[Any], None]:
    def change(outcome: Any) -> None:
        for name, value in values.items():
            setattr(outcome, name, value)

    return change


@pytest.mark.parametrize(
    "change, words",
    [
        (_set(memory=[80.0, 100.0, 111.0]), "memory has grown from 100 to 111 MB"),
        (_set(ledger=(99, 30, 0)), "99 parts are booked, the sandbox has returned 100"),
        (_set(ledger=(101, 30, 0), late=9), "101 parts are booked, the sandbox has returned 100"),
        (_set(ledger=(100, 19, 0)), "19 parts are in doubt, fewer than the 20 billed and not booked"),
        (_set(ledger=(100, 30, 1)), "1 parts are held"),
        (_set(struck=6), "6 of 400 upstream requests were struck, too few"),
        (_set(answered=Counter({"search": 0})), "nothing was answered under load of: search"),
        (lambda outcome: outcome.judge.statuses.update({503: 1}), "16 responses are a 503, more than 15"),
        (lambda outcome: outcome.judge.statuses.update({502: 9_000}), "most requests have failed"),
        (lambda outcome: setattr(outcome.judge, "learned", 1), "was never full: 1 to keep"),
        (lambda outcome: outcome.judge.messages.update(["odd"]), "1 times 'odd', which no fault explains"),
        (_set(tasks=(4, 100, 13)), "13 tasks are not done"),
        (_set(descriptors=(20, 100, 29)), "29 descriptors are open"),
    ],
)
def test_errors_of_a_soak_are_reported(soak: Any, change: Any, words: str) -> None:
    change(soak[2])
    (found,) = _found(soak)
    assert words in found


def test_slow_machine_excuses_failures_but_no_memory_growth(soak: Any) -> None:
    soak[2].late = 5
    soak[2].ledger = (90, 40, 0)
    soak[2].judge.statuses[503] = 100
    soak[2].memory[2] = 120.0
    assert _found(soak) == ["memory has grown from 100 to 120 MB"]
