"""Two responses to one request, judged: what is whole, what moved, what was asked twice."""

from typing import Any

import msgspec
import pytest

from proxy.compare import requests
from proxy.compare.judging.judge import ResponsePair

ALWAYS_TWICE = "shipped_rules: false\nnoise: {share: 1}"


def parts(*mpns: Any, **more: Any) -> Any:
    items = [{"__class__": "Part", "mpn": mpn} for mpn in mpns]
    return {"__class__": "PartsMatchResponse", "msec": 1, "results": [{"items": items, **more}]}


def found(comparison: Any) -> Any:
    return [(each.difference.kind, each.difference.path, each.cause) for each in comparison.findings]


def test_the_same_twice_is_equivalent(judge: Any, v3_request: Any, response: Any) -> None:
    comparison = judge().compare(
        v3_request, 7.0, ResponsePair(response(parts("X1"), seconds=0.2), response(parts("X1"), parts=3))
    )
    assert comparison.equivalent
    assert (comparison.request, comparison.at, comparison.parts, comparison.price) == (v3_request, 7.0, 3, 3)
    assert (comparison.baseline_seconds, comparison.candidate_seconds) == (0.2, 0.1)


def test_what_differs_is_found_with_its_cause(judge: Any, v3_request: Any, response: Any) -> None:
    comparison = judge().compare(v3_request, 0, ResponsePair(response(parts("X1", "X2")), response(parts("X9"))))
    assert found(comparison) == [
        ("value", "results[*].items[*].mpn", "unexplained"),
        ("missing", "results[*].items[*]", "missing part"),
    ]


def test_what_rules_hide_is_counted_and_no_finding(judge: Any, v3_request: Any, response: Any) -> None:
    baseline, candidate = response(parts("X1")), response({**parts("X1"), "msec": 99})
    comparison = judge("shipped_rules: true").compare(v3_request, 0, ResponsePair(baseline, candidate))
    assert comparison.equivalent
    assert comparison.hidden == {"msec": 1}
    assert judge("shipped_rules: true").differences(v3_request, baseline, candidate) == []


@pytest.mark.parametrize(
    "baseline, candidate, findings",
    [
        ((parts("X1"), 200), ({"message": "no"}, 404), [("status", "(status)", "status")]),
        ((parts("X1"), 200), (b"<html>", 200), [("unreadable", "(body)", "unexplained")]),
        (({"message": "a"}, 403), ({"message": "b"}, 403), [("value", "message", "error shape")]),
        (
            ({"message": "a"}, 404),
            ({"message": "b"}, 400),
            [("status", "(status)", "status"), ("value", "message", "error shape")],
        ),
        ((b"<html>no</html>", 404), ({"message": "no"}, 404), [("unreadable", "(body)", "error shape")]),
        ((b"<html>no</html>", 404), (b"<html>none</html>", 404), [("value", "(body)", "error shape")]),
        ((b"<html>no</html>", 404), (b"<html>no</html>", 404), []),
        (
            ({"__class__": "ClientErrorResponse", "message": "a"}, 200),
            ({"__class__": "ClientErrorResponse", "message": "b"}, 200),
            [("value", "message", "error shape")],
        ),
    ],
)
def test_whole_responses_differ_by_status_or_body(
    judge: Any, v3_request: Any, response: Any, baseline: Any, candidate: Any, findings: Any
) -> None:
    comparison = judge().compare(v3_request, 0, ResponsePair(response(*baseline), response(*candidate)))
    assert comparison.failure is None
    assert found(comparison) == findings


@pytest.mark.parametrize(
    "baseline, candidate, failure",
    [
        ({"failure": "no connection"}, {}, "baseline: no connection"),
        ({}, {"failure": "no response in 30 s"}, "candidate: no response in 30 s"),
        ({"body": b"<!doctype html>"}, {}, "baseline: HTML instead of JSON"),
        ({"body": b""}, {}, "baseline: an empty body"),
    ],
)
def test_what_cannot_be_compared_is_failure_of_a_side(
    judge: Any, v3_request: Any, response: Any, baseline: Any, candidate: Any, failure: str
) -> None:
    comparison = judge().compare(
        v3_request, 0, ResponsePair(response(parts("X1"), **baseline), response(parts("X2"), parts=2, **candidate))
    )
    assert (comparison.failure, comparison.findings, comparison.parts) == (failure, (), 2)
    assert not comparison.equivalent
    assert judge().differences(v3_request, response(parts("X1"), **baseline), response(parts("X2"), **candidate)) == []


def test_a_script_is_read_as_the_json_in_it(judge: Any, response: Any) -> None:
    v3_request = requests.V3Request("/parts/match", (("callback", "show"),))
    baseline, candidate = response(b'show({"hits": 1})'), response(b'/**/show({"hits": 1});')
    assert judge().compare(v3_request, 0, ResponsePair(baseline, candidate)).equivalent
    plain = response(b'{"hits": 1}')
    assert found(judge().compare(v3_request, 0, ResponsePair(baseline, plain))) == [("format", "(body)", "unexplained")]


def test_a_script_that_nobody_asked_for_is_no_json(judge: Any, v3_request: Any, response: Any) -> None:
    assert (
        judge().compare(v3_request, 0, ResponsePair(response(b"show({})"), response({}))).failure
        == "baseline: something that is no JSON"
    )


def test_slowness_counts_where_the_settings_say_so(judge: Any, v3_request: Any, response: Any) -> None:
    baseline, candidate = response(parts("X1"), seconds=1.0), response(parts("X1"), seconds=2.6)
    assert judge().compare(v3_request, 0, ResponsePair(baseline, candidate)).equivalent
    strict = judge("latency: 1.5")
    assert found(strict.compare(v3_request, 0, ResponsePair(baseline, candidate))) == [
        ("latency", "(latency)", "latency")
    ]
    assert strict.differences(v3_request, baseline, candidate) == []
    assert judge("latency: 1.7").compare(v3_request, 0, ResponsePair(baseline, candidate)).equivalent


def test_what_the_sides_agree_on_when_asked_again_has_moved(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X2"), parts=1))
    again = {"baseline_again": response(parts("X2")), "candidate_again": response(parts("X2"), parts=1)}
    comparison = judge().compare(v3_request, 0, pair, **again)
    assert comparison.equivalent
    assert [(each.difference.path, each.cause) for each in comparison.moved] == [("results[*].items[*].mpn", "moved")]
    assert (comparison.parts, comparison.price) == (2, 1)


def test_what_neither_side_says_any_longer_has_moved_though_they_still_differ(
    judge: Any, v3_request: Any, response: Any
) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X2")))
    comparison = judge().compare(
        v3_request, 0, pair, baseline_again=response(parts("X3")), candidate_again=response(parts("X4"))
    )
    assert len(comparison.moved) == 1
    assert comparison.equivalent


def test_what_the_candidate_side_goes_on_saying_is_found_though_the_baseline_one_has_changed(
    judge: Any, v3_request: Any, response: Any
) -> None:
    """It may be wrong about both."""
    pair = ResponsePair(response(parts("X1")), response(parts("wrong")))
    for again in ({}, {"candidate_again": response(parts("wrong"))}):
        comparison = judge().compare(v3_request, 0, pair, baseline_again=response(parts("X2")), **again)
        assert (len(comparison.findings), comparison.moved) == (1, ())


def test_what_is_still_there_when_asked_again_is_found(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X2")))
    comparison = judge().compare(
        v3_request, 0, pair, baseline_again=response(parts("X1")), candidate_again=response(parts("X2"))
    )
    assert (len(comparison.findings), comparison.moved) == (1, ())


def test_one_side_asked_again_is_enough(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X2")))
    assert judge().compare(v3_request, 0, pair, baseline_again=response(parts("X2"))).equivalent
    assert judge().compare(v3_request, 0, pair, candidate_again=response(parts("X1"))).equivalent


@pytest.mark.parametrize(
    "again",
    [
        {"status": 503},
        {"failure": "no connection"},
        {"body": b"<html>"},
        {"body": b'{"__class__":"ServerErrorResponse"}'},
    ],
)
def test_what_an_error_lacks_has_not_moved(judge: Any, v3_request: Any, response: Any, again: Any) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X2")))
    broken = msgspec.structs.replace(response(parts("X2")), **again)
    comparison = judge().compare(v3_request, 0, pair, baseline_again=broken, candidate_again=broken)
    assert len(comparison.findings) == 1
    assert len(judge().compare(v3_request, 0, pair, candidate_again=broken).findings) == 1


def test_a_status_of_the_candidate_side_has_not_moved_because_it_is_gone(
    judge: Any, v3_request: Any, response: Any
) -> None:
    pair = ResponsePair(response(parts("X1")), response({"message": "closed"}, 503))
    same = {"baseline_again": response(parts("X1")), "candidate_again": response(parts("X1"))}
    assert found(judge().compare(v3_request, 0, pair, **same)) == [("status", "(status)", "status")]


def test_a_status_that_the_baseline_side_itself_has_changed_has_moved(
    judge: Any, v3_request: Any, response: Any
) -> None:
    pair = ResponsePair(response({"message": "closed"}, 503), response(parts("X1")))
    comparison = judge().compare(
        v3_request, 0, pair, baseline_again=response(parts("X1")), candidate_again=response(parts("X1"))
    )
    assert comparison.equivalent
    assert comparison.moved[0].difference.kind == "status"


def test_the_baseline_sides_own_unrest_is_noted_for_requests_of_the_sample_only(
    judge: Any, v3_request: Any, response: Any
) -> None:
    pair, again = ResponsePair(response(parts("X1")), response(parts("X1"))), response(parts("X2"))
    sampled, other = judge(ALWAYS_TWICE), judge("shipped_rules: false\nnoise: {share: 0}")
    assert sampled.is_in_noise_sample(v3_request)
    assert not other.is_in_noise_sample(v3_request)
    assert sampled.compare(v3_request, 0, pair, baseline_again=again).flaky_fields == ("results[*].items[*].mpn",)
    assert sampled.compare(v3_request, 0, pair, baseline_again=pair.baseline).flaky_fields == ()
    assert sampled.compare(v3_request, 0, pair).flaky_fields is None
    assert other.compare(v3_request, 0, pair, baseline_again=again).flaky_fields is None


def test_a_second_answer_that_never_came_says_nothing_of_unrest(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X1")))
    assert (
        judge(ALWAYS_TWICE)
        .compare(v3_request, 0, pair, baseline_again=response(parts("X1"), failure="gone"))
        .flaky_fields
        is None
    )


def test_keys_are_taken_out_of_what_is_kept_and_not_of_what_is_compared(
    judge: Any, v3_request: Any, response: Any
) -> None:
    hiding = judge(redact=lambda text: text.replace("k3y", "…").replace("0ther", "…"))
    comparison = hiding.compare(v3_request, 0, ResponsePair(response(parts("k3y")), response(parts("0ther"))))
    (finding,) = comparison.findings
    assert (finding.difference.baseline, finding.difference.candidate) == ("…", "…")


def test_a_refusal_is_known_to_cost_nothing(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response({"message": "no"}, status=404), response({"message": "no"}, status=404, parts=None))
    comparison = judge().compare(v3_request, 0, pair)
    assert (comparison.parts, comparison.price) == (0, 0)
    pair = ResponsePair(response({}), response({}, parts=None))
    assert judge().compare(v3_request, 0, pair).price is None


def test_a_list_that_says_no_cost_is_known_to_cost_nothing(judge: Any, v3_request: Any, response: Any) -> None:
    listed = msgspec.structs.replace(v3_request, path="/brands/search")
    pair = ResponsePair(response({"results": []}), response({"results": []}, parts=None))
    assert judge().compare(listed, 0, pair).price == 0


@pytest.mark.parametrize(
    "baseline, candidate, failure",
    [
        (200, 403, "candidate: no application has the key of erp (HTTP 403: no key)"),
        (404, 401, "candidate: no application has the key of erp (HTTP 401: no key)"),
        (403, 200, "baseline: the side does not know the key of erp (HTTP 403: no key)"),
    ],
)
def test_a_key_that_one_side_does_not_know_is_failure_and_no_difference(
    judge: Any, v3_request: Any, response: Any, baseline: int, candidate: int, failure: str
) -> None:
    refusal = {"__class__": "ClientErrorResponse", "message": "no key"}
    pair = ResponsePair(*(response({} if status == 200 else refusal, status) for status in (baseline, candidate)))
    found = judge().compare(v3_request, 0.0, pair)
    assert (found.failure, found.findings) == (failure, ())
    assert judge().differences(v3_request, *pair) == []


def test_two_sides_that_both_refuse_a_key_are_compared(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response({"message": "a"}, 403), response({"message": "b"}, 403))
    assert [each.cause for each in judge().compare(v3_request, 0.0, pair).findings] == ["error shape"]


def test_a_status_comes_with_the_message_of_the_side_that_refuses(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response({}), response({"__class__": "ClientErrorResponse", "message": "q is empty"}, 400))
    (finding,) = judge().compare(v3_request, 0.0, pair).findings
    assert (finding.difference.kind, finding.difference.message) == ("status", "q is empty")
