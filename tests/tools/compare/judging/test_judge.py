"""Tests of the judgement of two responses: completeness, changed data, repeated requests."""

from typing import Any

import msgspec
import pytest
from support import cases

from proxy.tools.compare.judging.judge import ResponsePair
from proxy.traffic.v3_request import V3Request


def parts(*mpns: Any, **more: Any) -> Any:
    items = [{"__class__": "Part", "uid": f"{at:016}", "mpn": mpn} for at, mpn in enumerate(mpns)]
    return {"__class__": "PartsMatchResponse", "msec": 1, "results": [{"items": items, **more}]}


def stock(count: int) -> Any:
    offers = [
        {"__class__": "PartOffer", "sku": "S", "in_stock_quantity": count, "prices": {"USD": [[1, f"{count}.0"]]}}
    ]
    return {"results": [{"items": [{"__class__": "Part", "uid": "1" * 16, "mpn": "X1", "offers": offers}]}]}


def found(comparison: Any) -> Any:
    return [(each.difference.kind, each.difference.path, each.cause) for each in comparison.findings]


def test_equal_responses_are_equivalent(judge: Any, v3_request: Any, response: Any) -> None:
    comparison = judge().compare(
        v3_request, 7.0, ResponsePair(response(parts("X1"), seconds=0.2), response(parts("X1"), parts=3))
    )
    assert comparison.equivalent
    assert (comparison.request, comparison.at, comparison.parts, comparison.price) == (v3_request, 7.0, 3, 3)
    assert (comparison.baseline_seconds, comparison.candidate_seconds) == (0.2, 0.1)


def test_difference_is_reported_with_its_cause(judge: Any, v3_request: Any, response: Any) -> None:
    comparison = judge().compare(v3_request, 0, ResponsePair(response(parts("X1", "X2")), response(parts("X9"))))
    assert found(comparison) == [
        ("missing", "results[*].items[*]", "missing part"),
        ("value", "results[*].items[*].mpn", "unexplained"),
    ]


def test_ignored_difference_is_counted_and_no_finding(judge: Any, v3_request: Any, response: Any) -> None:
    baseline, candidate = response(parts("X1")), response({**parts("X1"), "msec": 99})
    comparison = judge("shipped_rules: true").compare(v3_request, 0, ResponsePair(baseline, candidate))
    assert comparison.equivalent
    assert comparison.ignored == {"msec": 1}


@cases.parametrize("baseline, candidate, findings")
def test_responses_differ_by_status_or_body(
    judge: Any, v3_request: Any, response: Any, baseline: Any, candidate: Any, findings: Any
) -> None:
    sides = (
        response(body.encode() if isinstance(body, str) else body, status) for body, status in (baseline, candidate)
    )
    comparison = judge().compare(v3_request, 0, ResponsePair(*sides))
    assert comparison.failure is None
    assert found(comparison) == [tuple(finding) for finding in findings]


@pytest.mark.parametrize(
    "baseline, candidate, failure",
    [
        ({"failure": "no connection"}, {}, "baseline: no connection"),
        ({}, {"failure": "no response in 30 s"}, "candidate: no response in 30 s"),
        ({"body": b"<!doctype html>"}, {}, "baseline: HTML instead of JSON"),
        ({"body": b""}, {}, "baseline: an empty body"),
    ],
)
def test_incomparable_response_is_a_failure_of_its_side(
    judge: Any, v3_request: Any, response: Any, baseline: Any, candidate: Any, failure: str
) -> None:
    comparison = judge().compare(
        v3_request, 0, ResponsePair(response(parts("X1"), **baseline), response(parts("X2"), parts=2, **candidate))
    )
    assert (comparison.failure, comparison.findings, comparison.parts) == (failure, (), 2)
    assert not comparison.equivalent


def test_jsonp_is_read_as_its_json(judge: Any, response: Any) -> None:
    v3_request = V3Request("/parts/match", (("callback", "show"),))
    baseline, candidate = response(b'show({"hits": 1})'), response(b'/**/show({"hits": 1});')
    assert judge().compare(v3_request, 0, ResponsePair(baseline, candidate)).equivalent
    plain = response(b'{"hits": 1}')
    assert found(judge().compare(v3_request, 0, ResponsePair(baseline, plain))) == [("format", "(body)", "unexplained")]


def test_unrequested_jsonp_is_no_json(judge: Any, v3_request: Any, response: Any) -> None:
    assert (
        judge().compare(v3_request, 0, ResponsePair(response(b"show({})"), response({}))).failure
        == "baseline: something that is no JSON"
    )


def test_slowness_counts_if_configured(judge: Any, v3_request: Any, response: Any) -> None:
    baseline, candidate = response(parts("X1"), seconds=1.0), response(parts("X1"), seconds=2.6)
    assert judge().compare(v3_request, 0, ResponsePair(baseline, candidate)).equivalent
    strict = judge("latency: 1.5")
    assert found(strict.compare(v3_request, 0, ResponsePair(baseline, candidate))) == [
        ("latency", "(latency)", "latency")
    ]
    assert judge("latency: 1.7").compare(v3_request, 0, ResponsePair(baseline, candidate)).equivalent


def test_price_and_stock_that_the_repeated_baseline_agrees_on_have_moved(
    judge: Any, v3_request: Any, response: Any
) -> None:
    pair = ResponsePair(response(stock(5)), response(stock(7)))
    assert judge().may_have_moved(v3_request, *pair)
    comparison = judge().compare(v3_request, 0, pair, baseline_again=response(stock(7)))
    assert comparison.equivalent
    assert {(each.difference.path.rpartition(".")[2], each.cause) for each in comparison.moved} == {
        ("in_stock_quantity", "moved"),
        ("USD[*]", "moved"),
    }


def test_other_data_have_not_moved(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response(parts("X1")), response(parts("X2")))
    assert not judge().may_have_moved(v3_request, *pair)
    comparison = judge().compare(v3_request, 0, pair, baseline_again=response(parts("X2")))
    assert (len(comparison.findings), comparison.moved) == (1, ())


@pytest.mark.parametrize("again", [{}, {"status": 503}, {"failure": "no connection"}, {"body": b"<html>"}])
def test_difference_that_a_repetition_does_not_explain_is_a_finding(
    judge: Any, v3_request: Any, response: Any, again: Any
) -> None:
    pair = ResponsePair(response(stock(5)), response(stock(7)))
    repeated = msgspec.structs.replace(response(stock(6)), **again)
    comparison = judge().compare(v3_request, 0, pair, baseline_again=repeated)
    assert (len(comparison.findings), comparison.moved) == (2, ())


def test_api_keys_are_redacted_in_samples_and_not_in_the_comparison(judge: Any, v3_request: Any, response: Any) -> None:
    hiding = judge(redact=lambda text: text.replace("k3y", "…").replace("0ther", "…"))
    comparison = hiding.compare(v3_request, 0, ResponsePair(response(parts("k3y")), response(parts("0ther"))))
    (finding,) = comparison.findings
    assert (finding.difference.baseline, finding.difference.candidate) == ("…", "…")


def test_refusal_costs_nothing(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response({"message": "no"}, status=404), response({"message": "no"}, status=404, parts=None))
    comparison = judge().compare(v3_request, 0, pair)
    assert (comparison.parts, comparison.price) == (0, 0)
    pair = ResponsePair(response({}), response({}, parts=None))
    assert judge().compare(v3_request, 0, pair).price is None


def test_list_without_cost_header_costs_nothing(judge: Any, v3_request: Any, response: Any) -> None:
    listed = msgspec.structs.replace(v3_request, path="/brands/search")
    pair = ResponsePair(response({"results": []}), response({"results": []}, parts=None))
    assert judge().compare(listed, 0, pair).price == 0


@cases.parametrize("baseline, candidate, failure")
def test_response_that_proves_nothing_is_a_failure(
    judge: Any, v3_request: Any, response: Any, baseline: int, candidate: int, failure: str
) -> None:
    refusal = {"__class__": "ClientErrorResponse", "message": "no key"}
    pair = ResponsePair(*(response({} if status == 200 else refusal, status) for status in (baseline, candidate)))
    found = judge().compare(v3_request, 0.0, pair)
    assert (found.failure, found.findings) == (failure, ())


def test_status_difference_has_the_message_of_the_refusing_side(judge: Any, v3_request: Any, response: Any) -> None:
    pair = ResponsePair(response({}), response({"__class__": "ClientErrorResponse", "message": "q is empty"}, 400))
    (finding,) = judge().compare(v3_request, 0.0, pair).findings
    assert (finding.difference.kind, finding.difference.message) == ("status", "q is empty")
