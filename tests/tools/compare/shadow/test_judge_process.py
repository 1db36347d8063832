"""Tests of the judge program itself: its responses, its state, and robustness against any data."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from proxy.kit.clock import ManualClock
from proxy.shadow import messages
from proxy.tools.compare.shadow import judge_process
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

KEY = "a-k3y/of its own"
REQUEST = V3Request("/parts/match", (("queries", '[{"mpn":"X"}]'),), "shop/1")


@pytest.fixture
def clock() -> Any:
    return ManualClock()


@pytest.fixture
def judging(tmp_path: Path, clock: Any) -> Any:
    rules = tmp_path / "rules.yaml"
    rules.write_text("noise: {share: 0}\nrules: []\nshipped_rules: false\n")
    return judge_process.JudgeProcess(messages.JudgeSetup(str(rules), "octopart", ""), clock)


def response(value: Any, status: int = 200, **more: Any) -> Any:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return SideResponse(status, body, 0.1, "application/json", **more)


def job(baseline: Any, candidate: Any, v3_request: Any = REQUEST, **more: Any) -> Any:
    return messages.JudgePair(v3_request, 1.0, response(baseline), response(candidate), secrets=(KEY,), **more)


def tally_text(judging: Any) -> Any:
    return json.loads(judging.answer(messages.TallyRequest()).text)


def test_pair_is_judged_and_tallied(judging: Any) -> None:
    assert judging.answer(job({"hits": 1}, {"hits": 1})).outcome == "equivalent"
    assert judging.answer(job({"hits": 1}, {"hits": 2})).outcome == "different"
    (row,) = tally_text(judging)["rows"].values()
    assert (row["client"], row["compared"], row["differing"]) == ("shop/1", 2, 1)


def test_difference_is_confirmed_before_it_is_counted(judging: Any) -> None:
    asked = job({"hits": 1}, {"hits": 2}, may_repeat=True)
    assert judging.answer(asked).outcome == "repeat"
    assert tally_text(judging)["rows"] == {}
    moved = messages.JudgePair(REQUEST, 1.0, asked.baseline, asked.candidate, baseline_again=response({"hits": 2}))
    assert judging.answer(moved).outcome == "equivalent"
    assert judging.answer(job({"hits": 1}, {"hits": 1}, may_repeat=True)).outcome == "equivalent"


def test_side_without_response_is_named(judging: Any) -> None:
    not_compared = SideResponse(0, b"", 0.1, failure="cannot be reached")
    for side, pair in (("baseline", (not_compared, response({}))), ("candidate", (response({}), not_compared))):
        verdict = judging.answer(messages.JudgePair(REQUEST, 1.0, *pair))
        assert (verdict.outcome, verdict.side) == ("failure", side)
    assert {each["reason"] for each in tally_text(judging)["failures"].values()} == {
        "baseline: cannot be reached",
        "candidate: cannot be reached",
    }


def test_results_hold_no_api_key(judging: Any) -> None:
    v3_request = V3Request("/parts/match", (("q", KEY), (KEY, "x")), "shop/1")
    judging.answer(job({KEY: {"a": KEY}, "b": f"http://x/?apikey={KEY}"}, {"b": [KEY]}, v3_request))
    text = judging.answer(messages.TallyRequest()).text
    assert "results" not in text
    assert all(spelling not in text for spelling in (KEY, KEY.replace("/", "\\/"), "k3y"))


@pytest.mark.parametrize(
    "baseline",
    [
        b'"\\ud800"',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"a":1e999999}',
        b'{"\\u0000":"\\u001b[31m<script>"}',
        b'{"a":1,"a":2}',
    ],
    ids=["half a character", "deep", "no UTF-8", "huge number", "control", "twice"],
)
def test_no_response_data_crashes_the_judge(judging: Any, baseline: bytes) -> None:
    assert judging.answer(
        messages.JudgePair(REQUEST, 1.0, response(baseline), response({"a": "x" * 1_000_000}))
    ).outcome in (
        "different",
        "failure",
    )
    json.loads(judging.answer(messages.TallyRequest()).text)


def test_judge_error_fails_only_its_request(judging: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError(KEY)

    monkeypatch.setattr("proxy.tools.compare.judging.judge.Judge.compare", breaks)
    verdict = judging.answer(job({}, {}))
    assert (verdict.outcome, verdict.side) == ("failure", "internal")
    assert [each["reason"] for each in tally_text(judging)["failures"].values()] == ["internal: RuntimeError"]


def test_judge_continues_from_stored_results(judging: Any, clock: Any) -> None:
    judging.answer(job({}, {}))
    text = judging.answer(messages.TallyRequest()).text
    other = judge_process.JudgeProcess(messages.JudgeSetup(None, "octopart", text), clock)
    other.answer(job({}, {}))
    (row,) = tally_text(other)["rows"].values()
    assert row["compared"] == 2


def test_rule_expires_at_runtime(tmp_path: Path, clock: Any) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("shipped_rules: false\nrules: [{path: hits, ignore: all, reason: a while, expires: 2023-11-14}]\n")
    judging = judge_process.JudgeProcess(messages.JudgeSetup(str(rules), "octopart", ""), clock)
    outcomes = []
    for seconds in (0, 86_400):
        clock.advance(seconds)
        verdict = judging.answer(job({"hits": 1}, {"hits": 2}))
        assert isinstance(verdict, messages.PairVerdict)
        outcomes.append(verdict.outcome)
    assert outcomes == ["equivalent", "different"]


def test_judge_serves_until_end_of_input(clock: Any) -> None:
    order = messages.JudgeSetup(None, "octopart", "")
    source = io.BytesIO(b"".join(map(messages.encode, (order, job({}, {}), messages.TallyRequest()))))
    sink = io.BytesIO()
    judge_process.serve(source, sink, clock)
    answers, text = [], sink.getvalue()
    while text:
        size = int.from_bytes(text[: messages.HEAD], "big")
        answers.append(messages.decode_for_worker(text[messages.HEAD :][:size]))
        text = text[messages.HEAD + size :]
    assert [type(each) for each in answers] == [messages.PairVerdict, messages.TallyReport]
