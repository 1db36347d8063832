"""A load under faults, held: the short run of `python -m bench.soak`, whose every check has to pass.

And that its checks do not pass by themselves: what they say of replies that are wrong.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 110  # a slow machine's; usually it takes 20, most of them for idle connections to be closed
RIGHT = {"__class__": "PartsMatchResult", "items": [{"mpn": "A"}], "hits": 1, "reference": None, "error": None}
OTHER = RIGHT | {"items": [{"mpn": "B"}]}
FAILED = RIGHT | {"items": [], "hits": 0, "error": "the GraphQL service sent an answer that is cut"}
CUT = {"cut": 1}


def test_under_faults_every_reply_is_right_and_every_part_is_booked():
    command = [sys.executable, "-m", "bench.soak", "4", "100", "--share", "0.15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong" in done.stdout


@pytest.fixture
def replies(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("bench.soak.replies")


@pytest.fixture
def judge(replies):
    """Has learned the answer to a match of two queries."""
    judge = replies.Judge()
    judge.learn("/", _reply(replies, RIGHT, OTHER, msec=1))
    return judge


def _reply(replies, *results, status=200, **body):
    body = {"results": results, **body} if results else body
    return replies.Reply(status, {"X-Parts-Cost": "2", "X-Cache": "miss"}, json.dumps(body).encode())


def test_the_same_answer_is_right_however_long_it_took(replies, judge):
    judge.see("/", _reply(replies, RIGHT, OTHER, msec=9))
    assert (judge.findings, judge.cost, judge.statuses[200]) == ([], 4, 1)


def test_a_query_may_fail_by_itself_where_a_fault_explains_it(replies, judge):
    judge.see("/", _reply(replies, RIGHT, FAILED))
    assert (judge.findings, judge.failed_queries) == ([], 1)
    assert list(judge.unexplained(CUT)) == []
    assert list(judge.unexplained({"reset": 9})) == [f"1 times {FAILED['error']!r}, which no fault explains"]


@pytest.mark.parametrize(
    "results",
    [(OTHER, RIGHT), (RIGHT,), (RIGHT, RIGHT), (RIGHT, FAILED | {"hits": 1}), (RIGHT, FAILED | {"error": None})],
)
def test_an_answer_to_something_else_is_wrong(replies, judge, results):
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
def test_an_error_in_another_shape_is_wrong(replies, judge, status, body):
    judge.see("/", _reply(replies, status=status, **body))
    assert len(judge.findings) == 1


def test_an_error_inside_is_explained_by_no_fault(replies, judge):
    judge.see("/", _reply(replies, status=502, __class__="ServerErrorResponse", message="Internal error (request 1)"))
    assert judge.findings == []
    assert len(list(judge.unexplained(CUT))) == 1
