"""What responses mean: recorded, documented and conceivable ones of GraphQL, and those with tokens."""

import json
from typing import Any

import pytest
from service.upstream import graphql_responses
from service.upstream.graphql_responses import GOOD, OPERATION, coded, fault, reply
from service.upstream.identity_service import make_jwt
from support import cases

from proxy import errors
from proxy.upstream import classify, http_post

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z; the 1st is 1 388 800 s away
TO_THE_FIRST = 1_388_800
LIMIT = "You have exceeded your part limit of 605. Please upgrade your plan."
NO_PARTS = "You have exceeded your part limit of 0. Please upgrade your plan."
OUT_OF_SCOPE = "AUTH_NOT_AUTHORIZED"
INVALID, EXPIRED, NO_SCOPE = coded("AuthInvalidToken"), coded("AuthExpiredToken"), coded(OUT_OF_SCOPE)
TIMEOUT = fault("The request exceeded the configured timeout.", extensions={"code": "HC0045"})
UNEXPECTED = fault("Unexpected Execution Error")
RANGE = fault("start must be between 0 and 1000")
SPECS = fault("unknown text", path=["supMultiMatch", 0, "parts", 2, "specs"])
OFFERS = fault("unknown text", path=["supSearch", "results", 0, "part", "sellers", 1, "offers"])
NULL = {"supSearchMpn": None}


def judged(response: http_post.HttpResponse) -> Any:
    return graphql_responses.data(OPERATION, response, NOW)


@pytest.mark.parametrize(
    "status, body",
    [
        (200, {"data": GOOD, "extensions": {"requestId": "a43cf3e2-e319-4453-a1e9-59063ef113b4"}}),
        (200, {"data": GOOD, "errors": None}),
        (200, {"data": GOOD, "errors": []}),
        (200, {"data": GOOD, "errors": [fault("one field failed", path=["supSearchMpn", "results", 0])]}),
        (200, {"data": GOOD, "errors": [NO_SCOPE]}),
        (500, {"data": GOOD, "errors": [fault("one field failed")]}),
        (400, {"data": GOOD}),
    ],
)
def test_data_is_used_despite_status_and_errors(status: int, body: Any) -> None:
    assert judged(reply(status, body)).supSearchMpn == {"hits": 1}


WRONG = "answered HTTP {0} with {1} instead of GraphQL; check the address in upstream.graphql_url"


@pytest.mark.parametrize(
    "status, body, kind, message, is_failure, is_billed",
    [
        # The token is refused, whatever else is said.
        (401, b"", errors.CredentialsRefused, "HTTP 401", False, False),
        (401, b"<html>", errors.CredentialsRefused, "HTTP 401", False, False),
        (401, {"errors": [INVALID]}, errors.CredentialsRefused, "AuthInvalidToken", False, False),
        (200, {"errors": [RANGE, INVALID], "data": None}, errors.CredentialsRefused, "AuthInvalidToken", False, False),
        (200, {"errors": [EXPIRED], "data": NULL}, errors.CredentialsRefused, "AuthExpiredToken", False, False),
        (200, {"errors": [EXPIRED], "data": GOOD}, errors.CredentialsRefused, "AuthExpiredToken", False, False),
        (403, {"errors": [NO_SCOPE]}, errors.CredentialsRefused, OUT_OF_SCOPE, False, False),
        (200, {"errors": [NO_SCOPE | {"path": ["x"]}]}, errors.CredentialsRefused, OUT_OF_SCOPE, False, False),
        # The quota is exhausted, also beside data.
        *[
            (status, {"errors": [fault(LIMIT)], "data": data}, errors.QuotaExhausted, LIMIT, False, False)
            for status in (200, 429, 500)
            for data in (None, GOOD, "odd")
        ],
        (
            200,
            {"errors": [fault(NO_PARTS)]},
            errors.QuotaExhausted,
            f"this plan has no parts: {NO_PARTS}",
            False,
            False,
        ),
        (429, b"slow down", errors.TooManyRequests, "asks for fewer requests", False, False),
        # The service fails.
        (200, {"errors": [TIMEOUT], "data": None}, errors.UpstreamFault, "failed: The request exceeded", True, False),
        (200, {"errors": [UNEXPECTED], "data": None}, errors.UpstreamFault, "failed: Unexpected", True, False),
        (500, {"errors": [UNEXPECTED], "data": None}, errors.UpstreamFault, "with HTTP 500", True, False),
        (502, {"errors": [RANGE]}, errors.UpstreamFault, "with HTTP 502", True, False),
        *[
            (status, body, errors.UpstreamFault, f"answered with HTTP {status}", True, status != 503)
            for status in (500, 502, 503, 504)
            for body in (b"", b"<html>Bad gateway</html>", {"message": "broken"}, {"data": None})
        ],
        # The query is refused; fields that failed were executed.
        *[
            (status, {"errors": [RANGE, fault("no"), RANGE], **rest}, errors.QueryRefused, "1000; no$", False, False)
            for status, rest in ((200, {}), (400, {"data": None}), (200, {"data": NULL}))
        ],
        (
            200,
            {"errors": [UNEXPECTED, SPECS], "data": None},
            errors.QueryRefused,
            "Unexpected .*; unknown",
            False,
            True,
        ),
        (500, {"errors": [OFFERS], "data": None}, errors.QueryRefused, "unknown text", False, True),
        (200, {"errors": [NO_SCOPE | {"path": ["x", "part", "cad"]}]}, errors.QueryRefused, "…", False, True),
        (200, {"errors": [fault("null", extensions=None)]}, errors.QueryRefused, "null", False, False),
        (200, {"errors": [coded(["a list"])]}, errors.QueryRefused, "…", False, False),
        (200, {"errors": [fault("words " * 1000)]}, errors.QueryRefused, "^.{490,499} words…$", False, False),
        (400, {"errors": [fault("big", extensions={"code": "HC0047"})]}, errors.OversizedOperation, "big", False, True),
        # Something else has answered, perhaps after the query was executed.
        (200, b"\n<html>", errors.UpstreamUnreadable, WRONG.format(200, "HTML"), True, True),
        (403, b"<!doctype html>", errors.UpstreamUnreadable, WRONG.format(403, "HTML"), False, True),
        (404, b"<html>", errors.UpstreamUnreadable, WRONG.format(404, "HTML"), False, False),
        (404, {"message": "no Route matched"}, errors.UpstreamUnreadable, WRONG.format(404, "31 bytes"), False, False),
        (405, b"", errors.UpstreamUnreadable, WRONG.format(405, "0 bytes"), False, False),
        (308, b"", errors.UpstreamUnreadable, WRONG.format(308, "a redirect"), False, False),
    ],
)
def test_response_without_data_is_classified_by_cause_and_by_possible_cost(
    status: int, body: Any, kind: Any, message: str, is_failure: bool, is_billed: bool
) -> None:
    response = reply(status, body)
    with pytest.raises(kind, match=message) as found:
        judged(response)
    assert type(found.value) is kind
    assert classify.is_failure(response, found.value) is is_failure
    assert getattr(found.value, "may_be_billed", False) is is_billed
    if kind is errors.CredentialsRefused:
        assert found.value.code == message
    if kind is errors.QuotaExhausted:  # a plan without parts promises no date
        assert found.value.retry_after == (TO_THE_FIRST if message == LIMIT else None)


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
def test_other_response_is_unreadable_and_may_be_billed(status: int, body: Any) -> None:
    with pytest.raises(errors.UpstreamUnreadable, match=rf"that is not its answer \(HTTP {status}, ") as found:
        judged(reply(status, body))
    assert found.value.may_be_billed
    is_object = not isinstance(body, bytes) or body.startswith(b"{")
    assert classify.is_failure(reply(status, body), found.value) is (status == 200 and not is_object)


@cases.parametrize("status, retry_after, error, passed_on", (503, "9" * 30, 503, 86_400))
def test_retry_after_is_passed_on(status: int, retry_after: str | None, error: int, passed_on: int | None) -> None:
    with pytest.raises(errors.BridgeError) as found:
        judged(reply(status, b"", retry_after))
    assert (found.value.status, found.value.retry_after) == (error, passed_on)


@cases.parametrize("message, number", ("part limit of " + "9" * 5000, None), ("part limit of 1" + ",000" * 2000, None))
def test_number_of_a_part_limit_is_read_out_of_the_message(message: str, number: int | None) -> None:
    assert classify.part_limit(message) == number


DAY = 86_400.0


def parsed(status: int, body: bytes, retry_after: str | None = None) -> classify.AccessToken:
    headers = {"Retry-After": retry_after} if retry_after else {}
    return classify.access_token(http_post.HttpResponse(status, body, headers), "demo", NOW)


@pytest.mark.parametrize("rest", ["100", '"100"', "100.0"])
def test_opaque_token_expires_by_expires_in_and_is_not_shown(rest: str) -> None:
    token = parsed(200, f'{{"access_token":"opaque","expires_in":{rest}}}'.encode())
    assert (token.token, token.expires) == ("opaque", NOW + 100)
    assert "opaque" not in repr(token)


@cases.parametrize("body, message")
def test_200_without_usable_token_is_unreadable(body: str, message: str) -> None:
    with pytest.raises(errors.UpstreamUnreadable, match=message):
        parsed(200, body.encode("latin-1"))


@cases.parametrize("status, body, error, message")
def test_refusals_have_their_own_errors(status: int, body: str, error: str, message: str) -> None:
    with pytest.raises(getattr(errors, error), match=message):
        parsed(status, body.encode())


@pytest.mark.parametrize("header, seconds", [("7", 7), ("0", 1), (None, 60), ("soon", 60)])
def test_retry_after_of_a_429(header: str | None, seconds: int) -> None:
    with pytest.raises(errors.TokenLimit) as found:
        parsed(429, b"", header)
    assert found.value.retry_after == seconds


@pytest.mark.parametrize(
    "claim, expires_in, end",
    [
        (DAY, None, DAY),
        (600, DAY, 600),
        (DAY, 600, 600),
        *((claim, 60, 60) for claim in (None, "soon", True, 10**400, [1], float("nan"))),
    ],
)
def test_token_ends_at_the_soonest_of_what_is_said(claim: Any, expires_in: float | None, end: float) -> None:
    token = make_jwt(exp=NOW + claim if claim in (600, DAY) else claim)
    body = json.dumps({"access_token": token, "expires_in": expires_in}).encode()
    assert parsed(200, body).expires == NOW + end
