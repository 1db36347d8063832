"""Two replies to one call, judged: what is whole, what moved, what was asked twice."""

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


def test_the_same_twice_is_equivalent(judge: Any, call: Any, reply: Any) -> None:
    comparison = judge().compare(call, 7.0, ResponsePair(reply(parts("X1"), seconds=0.2), reply(parts("X1"), parts=3)))
    assert comparison.equivalent
    assert (comparison.call, comparison.at, comparison.parts, comparison.price) == (call, 7.0, 3, 3)
    assert (comparison.old_seconds, comparison.new_seconds) == (0.2, 0.1)


def test_what_differs_is_found_with_its_cause(judge: Any, call: Any, reply: Any) -> None:
    comparison = judge().compare(call, 0, ResponsePair(reply(parts("X1", "X2")), reply(parts("X9"))))
    assert found(comparison) == [
        ("value", "results[*].items[*].mpn", "unexplained"),
        ("missing", "results[*].items[*]", "missing part"),
    ]


def test_what_rules_hide_is_counted_and_no_finding(judge: Any, call: Any, reply: Any) -> None:
    old, new = reply(parts("X1")), reply({**parts("X1"), "msec": 99})
    comparison = judge("shipped_rules: true").compare(call, 0, ResponsePair(old, new))
    assert comparison.equivalent
    assert comparison.hidden == {"msec": 1}
    assert judge("shipped_rules: true").differences(call, old, new) == []


@pytest.mark.parametrize(
    "old, new, findings",
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
def test_whole_replies_differ_by_status_or_body(
    judge: Any, call: Any, reply: Any, old: Any, new: Any, findings: Any
) -> None:
    comparison = judge().compare(call, 0, ResponsePair(reply(*old), reply(*new)))
    assert comparison.trouble is None
    assert found(comparison) == findings


@pytest.mark.parametrize(
    "old, new, trouble",
    [
        ({"trouble": "no connection"}, {}, "old: no connection"),
        ({}, {"trouble": "no answer in 30 s"}, "new: no answer in 30 s"),
        ({"body": b"<!doctype html>"}, {}, "old: HTML instead of JSON"),
        ({"body": b""}, {}, "old: an empty body"),
    ],
)
def test_what_cannot_be_compared_is_trouble_of_a_side(
    judge: Any, call: Any, reply: Any, old: Any, new: Any, trouble: str
) -> None:
    comparison = judge().compare(call, 0, ResponsePair(reply(parts("X1"), **old), reply(parts("X2"), parts=2, **new)))
    assert (comparison.trouble, comparison.findings, comparison.parts) == (trouble, (), 2)
    assert not comparison.equivalent
    assert judge().differences(call, reply(parts("X1"), **old), reply(parts("X2"), **new)) == []


def test_a_script_is_read_as_the_json_in_it(judge: Any, reply: Any) -> None:
    call = requests.V3Request("/parts/match", (("callback", "show"),))
    old, new = reply(b'show({"hits": 1})'), reply(b'/**/show({"hits": 1});')
    assert judge().compare(call, 0, ResponsePair(old, new)).equivalent
    plain = reply(b'{"hits": 1}')
    assert found(judge().compare(call, 0, ResponsePair(old, plain))) == [("format", "(body)", "unexplained")]


def test_a_script_that_nobody_asked_for_is_no_json(judge: Any, call: Any, reply: Any) -> None:
    assert (
        judge().compare(call, 0, ResponsePair(reply(b"show({})"), reply({}))).trouble
        == "old: something that is no JSON"
    )


def test_slowness_counts_where_the_settings_say_so(judge: Any, call: Any, reply: Any) -> None:
    old, new = reply(parts("X1"), seconds=1.0), reply(parts("X1"), seconds=2.6)
    assert judge().compare(call, 0, ResponsePair(old, new)).equivalent
    strict = judge("latency: 1.5")
    assert found(strict.compare(call, 0, ResponsePair(old, new))) == [("latency", "(latency)", "latency")]
    assert strict.differences(call, old, new) == []
    assert judge("latency: 1.7").compare(call, 0, ResponsePair(old, new)).equivalent


def test_what_the_sides_agree_on_when_asked_again_has_moved(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply(parts("X1")), reply(parts("X2"), parts=1))
    again = {"old_again": reply(parts("X2")), "new_again": reply(parts("X2"), parts=1)}
    comparison = judge().compare(call, 0, pair, **again)
    assert comparison.equivalent
    assert [(each.difference.path, each.cause) for each in comparison.moved] == [("results[*].items[*].mpn", "moved")]
    assert (comparison.parts, comparison.price) == (2, 1)


def test_what_neither_side_says_any_longer_has_moved_though_they_still_differ(
    judge: Any, call: Any, reply: Any
) -> None:
    pair = ResponsePair(reply(parts("X1")), reply(parts("X2")))
    comparison = judge().compare(call, 0, pair, old_again=reply(parts("X3")), new_again=reply(parts("X4")))
    assert len(comparison.moved) == 1
    assert comparison.equivalent


def test_what_the_new_side_goes_on_saying_is_found_though_the_old_one_has_changed(
    judge: Any, call: Any, reply: Any
) -> None:
    """It may be wrong about both."""
    pair = ResponsePair(reply(parts("X1")), reply(parts("wrong")))
    for again in ({}, {"new_again": reply(parts("wrong"))}):
        comparison = judge().compare(call, 0, pair, old_again=reply(parts("X2")), **again)
        assert (len(comparison.findings), comparison.moved) == (1, ())


def test_what_is_still_there_when_asked_again_is_found(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply(parts("X1")), reply(parts("X2")))
    comparison = judge().compare(call, 0, pair, old_again=reply(parts("X1")), new_again=reply(parts("X2")))
    assert (len(comparison.findings), comparison.moved) == (1, ())


def test_one_side_asked_again_is_enough(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply(parts("X1")), reply(parts("X2")))
    assert judge().compare(call, 0, pair, old_again=reply(parts("X2"))).equivalent
    assert judge().compare(call, 0, pair, new_again=reply(parts("X1"))).equivalent


@pytest.mark.parametrize(
    "again",
    [
        {"status": 503},
        {"trouble": "no connection"},
        {"body": b"<html>"},
        {"body": b'{"__class__":"ServerErrorResponse"}'},
    ],
)
def test_what_an_error_lacks_has_not_moved(judge: Any, call: Any, reply: Any, again: Any) -> None:
    pair = ResponsePair(reply(parts("X1")), reply(parts("X2")))
    broken = msgspec.structs.replace(reply(parts("X2")), **again)
    comparison = judge().compare(call, 0, pair, old_again=broken, new_again=broken)
    assert len(comparison.findings) == 1
    assert len(judge().compare(call, 0, pair, new_again=broken).findings) == 1


def test_a_status_of_the_new_side_has_not_moved_because_it_is_gone(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply(parts("X1")), reply({"message": "closed"}, 503))
    same = {"old_again": reply(parts("X1")), "new_again": reply(parts("X1"))}
    assert found(judge().compare(call, 0, pair, **same)) == [("status", "(status)", "status")]


def test_a_status_that_the_old_side_itself_has_changed_has_moved(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply({"message": "closed"}, 503), reply(parts("X1")))
    comparison = judge().compare(call, 0, pair, old_again=reply(parts("X1")), new_again=reply(parts("X1")))
    assert comparison.equivalent
    assert comparison.moved[0].difference.kind == "status"


def test_the_old_sides_own_unrest_is_noted_for_calls_of_the_sample_only(judge: Any, call: Any, reply: Any) -> None:
    pair, again = ResponsePair(reply(parts("X1")), reply(parts("X1"))), reply(parts("X2"))
    sampled, other = judge(ALWAYS_TWICE), judge("shipped_rules: false\nnoise: {share: 0}")
    assert sampled.asks_twice(call)
    assert not other.asks_twice(call)
    assert sampled.compare(call, 0, pair, old_again=again).wavers == ("results[*].items[*].mpn",)
    assert sampled.compare(call, 0, pair, old_again=pair.old).wavers == ()
    assert sampled.compare(call, 0, pair).wavers is None
    assert other.compare(call, 0, pair, old_again=again).wavers is None


def test_a_second_answer_that_never_came_says_nothing_of_unrest(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply(parts("X1")), reply(parts("X1")))
    assert judge(ALWAYS_TWICE).compare(call, 0, pair, old_again=reply(parts("X1"), trouble="gone")).wavers is None


def test_keys_are_taken_out_of_what_is_kept_and_not_of_what_is_compared(judge: Any, call: Any, reply: Any) -> None:
    hiding = judge(redact=lambda text: text.replace("k3y", "…").replace("0ther", "…"))
    comparison = hiding.compare(call, 0, ResponsePair(reply(parts("k3y")), reply(parts("0ther"))))
    (finding,) = comparison.findings
    assert (finding.difference.old, finding.difference.new) == ("…", "…")


def test_a_refusal_is_known_to_cost_nothing(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply({"message": "no"}, status=404), reply({"message": "no"}, status=404, parts=None))
    comparison = judge().compare(call, 0, pair)
    assert (comparison.parts, comparison.price) == (0, 0)
    pair = ResponsePair(reply({}), reply({}, parts=None))
    assert judge().compare(call, 0, pair).price is None


def test_a_list_that_says_no_cost_is_known_to_cost_nothing(judge: Any, call: Any, reply: Any) -> None:
    listed = msgspec.structs.replace(call, path="/brands/search")
    pair = ResponsePair(reply({"results": []}), reply({"results": []}, parts=None))
    assert judge().compare(listed, 0, pair).price == 0


@pytest.mark.parametrize(
    "old, new, trouble",
    [
        (200, 403, "new: no application has the key of erp (HTTP 403: no key)"),
        (404, 401, "new: no application has the key of erp (HTTP 401: no key)"),
        (403, 200, "old: the side does not know the key of erp (HTTP 403: no key)"),
    ],
)
def test_a_key_that_one_side_does_not_know_is_trouble_and_no_difference(
    judge: Any, call: Any, reply: Any, old: int, new: int, trouble: str
) -> None:
    refusal = {"__class__": "ClientErrorResponse", "message": "no key"}
    pair = ResponsePair(*(reply({} if status == 200 else refusal, status) for status in (old, new)))
    found = judge().compare(call, 0.0, pair)
    assert (found.trouble, found.findings) == (trouble, ())
    assert judge().differences(call, *pair) == []


def test_two_sides_that_both_refuse_a_key_are_compared(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply({"message": "a"}, 403), reply({"message": "b"}, 403))
    assert [each.cause for each in judge().compare(call, 0.0, pair).findings] == ["error shape"]


def test_a_status_comes_with_the_message_of_the_side_that_refuses(judge: Any, call: Any, reply: Any) -> None:
    pair = ResponsePair(reply({}), reply({"__class__": "ClientErrorResponse", "message": "q is empty"}, 400))
    (finding,) = judge().compare(call, 0.0, pair).findings
    assert (finding.difference.kind, finding.difference.said) == ("status", "q is empty")
