"""Classification of recorded, documented and conceivable responses."""

from typing import Any

import pytest
from service.upstream.graphql_responses import GOOD, OPERATION, PART_LIMIT, REQUEST_ID, coded, fault, reply
from support import cases

from proxy import errors
from proxy.upstream import classify, http_post

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z; the 1st is 1 388 800 s away
TO_THE_FIRST = 1_388_800


def judged(response: http_post.HttpResponse) -> Any:
    return classify.data(response, classify.decode(OPERATION, response), NOW)


@pytest.mark.parametrize(
    "status, body",
    [
        (200, {"data": GOOD, "extensions": REQUEST_ID}),
        (200, {"data": GOOD, "errors": None}),
        (200, {"data": GOOD, "errors": []}),
        (200, {"data": GOOD, "errors": [fault("one field failed", path=["supSearchMpn", "results", 0])]}),
        (500, {"data": GOOD, "errors": [fault("one field failed")]}),
        (400, {"data": GOOD}),
    ],
)
def test_data_is_used_despite_errors(status: int, body: Any) -> None:
    assert judged(reply(status, body)).supSearchMpn == {"hits": 1}


OUT_OF_SCOPE = "AUTH_NOT_AUTHORIZED"


@pytest.mark.parametrize(
    "status, body, code",
    [
        (401, b"", "HTTP 401"),
        (401, b"<html>", "HTTP 401"),
        (401, {"errors": [coded("AuthInvalidToken")]}, "AuthInvalidToken"),
        (200, {"data": None, "errors": [fault("first"), coded("AuthInvalidToken")]}, "AuthInvalidToken"),
        (200, {"data": {"supSearchMpn": None}, "errors": [coded("AuthExpiredToken")]}, "AuthExpiredToken"),
        (200, {"data": GOOD, "errors": [coded("AuthExpiredToken")]}, "AuthExpiredToken"),
        (403, {"errors": [coded(OUT_OF_SCOPE)]}, OUT_OF_SCOPE),
        (200, {"data": None, "errors": [coded(OUT_OF_SCOPE) | {"path": ["supSearchMpn"]}]}, OUT_OF_SCOPE),
    ],
)
def test_refused_token_is_recognized(status: int, body: Any, code: str) -> None:
    with pytest.raises(errors.CredentialsRefused) as found:
        judged(reply(status, body))
    assert found.value.code == code


@pytest.mark.parametrize(
    "error",
    [
        fault("no extensions at all"),
        fault("null", extensions=None),
        coded(OUT_OF_SCOPE) | {"path": ["supSearchMpn", "results", 0]},  # it is about that field
        coded(["a list"]),
    ],
)
def test_other_error_is_no_refused_token(error: Any) -> None:
    with pytest.raises(errors.QueryRefused):
        judged(reply(200, {"errors": [error]}))
    assert judged(reply(200, {"data": GOOD, "errors": [error, coded(OUT_OF_SCOPE)]})).supSearchMpn == {"hits": 1}


@pytest.mark.parametrize("status", [200, 429, 500])
@pytest.mark.parametrize("rest", [{}, {"data": None}, {"data": GOOD}, {"data": []}])
def test_exhausted_quota_is_recognized_by_its_message(status: int, rest: Any) -> None:
    body = {"errors": [fault(PART_LIMIT, extensions={"schemaName": "Supply"})], **rest}
    with pytest.raises(errors.QuotaExhausted) as found:
        judged(reply(status, body))
    assert found.value.message == PART_LIMIT
    assert (found.value.status, found.value.retry_after) == (429, TO_THE_FIRST)


def test_part_limit_of_0_is_a_plan_without_parts_and_promises_no_date() -> None:
    message = "You have exceeded your part limit of 0. Please upgrade your plan."
    with pytest.raises(errors.QuotaExhausted) as found:
        judged(reply(200, {"errors": [fault(message)], "data": None}))
    assert (found.value.message, found.value.retry_after) == (f"this plan has no parts: {message}", None)


@pytest.mark.parametrize(
    "message, number",
    [
        *cases.of(__file__, "number_of_a_part_limit_is_read_out_of_the_message"),
        ("part limit of " + "9" * 5000, None),
        ("part limit of 1" + ",000" * 2000, None),
    ],
)
def test_number_of_a_part_limit_is_read_out_of_the_message(message: str, number: int | None) -> None:
    assert classify.part_limit(message) == number


@pytest.mark.parametrize("status, rest", [(200, {}), (400, {"data": None}), (200, {"data": {"supSearchMpn": None}})])
def test_refusal_keeps_the_upstream_message(status: int, rest: Any) -> None:
    faults = [fault("start must be between 0 and 1000"), fault("limit must be between 0 and 100", path=["x"])]
    with pytest.raises(errors.QueryRefused) as found:
        judged(reply(status, {"errors": [*faults, faults[0]], **rest}))
    assert found.value.message == "start must be between 0 and 1000; limit must be between 0 and 100"
    assert not found.value.may_be_billed


@pytest.mark.parametrize(
    "status, error, seen",
    [
        (200, fault("The request exceeded the configured timeout.", extensions={"code": "HC0045"}), 502),
        (500, fault("Remote", extensions={"code": "HC0006"}), 502),
        (200, fault("Unexpected Execution Error"), 502),
        (500, fault("Unexpected Execution Error"), 502),
        (502, fault("start must be between 0 and 1000"), 502),
        (503, fault("anything"), 503),
        (504, fault("anything"), 502),
    ],
)
def test_service_failure_is_no_query_refusal(status: int, error: Any, seen: int) -> None:
    with pytest.raises(errors.UpstreamFault, match="the GraphQL service") as found:
        judged(reply(status, {"errors": [error], "data": None}))
    assert found.value.status == seen


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "path",
    [["supMultiMatch", 0, "parts", 2, "specs"], ["supSearch", "results", 0, "part", "sellers", 1, "offers"]],
)
def test_field_that_failed_may_be_billed(status: int, path: list[str | int]) -> None:
    with pytest.raises(errors.QueryRefused) as found:
        judged(reply(status, {"errors": [fault("unknown text", path=path)], "data": None}))
    assert found.value.may_be_billed


def test_operation_that_is_too_complex_is_no_refused_query() -> None:
    with pytest.raises(errors.OversizedOperation) as found:
        judged(reply(400, {"errors": [fault("too complex", extensions={"code": "HC0047"})]}))
    assert found.value.may_be_billed


def test_long_refusal_is_truncated() -> None:
    with pytest.raises(errors.QueryRefused) as found:
        judged(reply(200, {"errors": [fault("words " * 1000)]}))
    assert len(found.value.message) == 498
    assert found.value.message.endswith(" words…")


@cases.parametrize(
    "status, retry_after, error, passed_on",
    (503, "9" * 30, 503, 86_400),
)
@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", {"message": "broken"}, {"data": None}])
def test_5xx_without_errors_is_upstream_fault(
    status: int, retry_after: str | None, error: int, passed_on: int | None, body: Any
) -> None:
    with pytest.raises(errors.UpstreamFault, match=f"the GraphQL service answered with HTTP {status}") as found:
        judged(reply(status, body, retry_after))
    assert (found.value.status, found.value.retry_after) == (error, passed_on)


@pytest.mark.parametrize("status", [200, 400])
@cases.parametrize(
    "body",
    b"",
    b'{"data":{"supSearchMpn":{"hi',
    b"\xff\xfe",
    b'{"data":{"supSearchMpn":{"\xff":1}}}',
    b"[" * 100_000,
    b"[]",
    b"null",
)
def test_other_response_is_unreadable(status: int, body: Any) -> None:
    with pytest.raises(errors.UpstreamUnreadable, match=f"sent an unusable response \\(HTTP {status}, "):
        judged(reply(status, body))


@pytest.mark.parametrize(
    "response, what",
    [
        (reply(200, b"\n<html>maintenance</html>"), "200 with HTML"),
        (reply(403, b"<!doctype html>"), "403 with HTML"),
        (reply(404, b"no such page"), "404 with 12 bytes"),
        (reply(404, {"message": "no Route matched"}), "404 with 31 bytes"),
        (reply(302, b""), "302 with a redirect"),
    ],
)
def test_response_of_a_wrong_address_names_the_setting(response: Any, what: str) -> None:
    with pytest.raises(errors.UpstreamUnreadable) as found:
        judged(response)
    wrong = f"the GraphQL service answered HTTP {what} instead of GraphQL; check the address in upstream.graphql_url"
    assert found.value.message == wrong


@pytest.mark.parametrize(
    "response, failure, billed",
    [
        (reply(500, b"<html>"), True, True),
        (reply(502, {"errors": [fault("anything")]}), True, False),
        (reply(503, b"<html>"), True, False),
        (reply(200, {"errors": [fault("Unexpected Execution Error")]}), True, False),
        (reply(200, b"<html>"), True, True),
        (reply(200, b""), True, True),
        (reply(200, b' {"data":{"supSearchMpn":{"hits":"odd"}}}'), False, True),
        (reply(403, b"<html>"), False, True),
        (reply(404, b"<html>"), False, False),
        (reply(405, b""), False, False),
        (reply(308, b""), False, False),
    ],
)
def test_unusable_responses_are_classified_by_cause_and_by_possible_cost(
    response: Any, failure: bool, billed: bool
) -> None:
    with pytest.raises(errors.ServerError) as found:
        judged(response)
    assert classify.is_failure(response, found.value) is failure
    assert found.value.may_be_billed is billed


@pytest.mark.parametrize(
    "response, kind, retry_after",
    [
        (reply(429, b"slow down", "3"), errors.TooManyRequests, 3),
        (reply(200, {"errors": [fault("no")]}), errors.QueryRefused, None),
    ],
)
def test_refusal_is_no_service_failure(response: Any, kind: Any, retry_after: int | None) -> None:
    with pytest.raises(kind) as found:
        judged(response)
    assert found.value.retry_after == retry_after
    assert not classify.is_failure(response, found.value)
