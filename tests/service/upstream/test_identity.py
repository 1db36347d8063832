"""Parsing of token responses."""

from typing import Any

import pytest
from service.upstream.identity_service import make_jwt
from support import cases

from proxy import errors
from proxy.upstream import http_post, identity

NOW = 1_700_000_000.0
DAY = 86_400.0


def parsed(status: int, body: bytes, retry_after: str | None = None) -> identity.AccessToken:
    headers = {"Retry-After": retry_after} if retry_after else {}
    return identity.parse(http_post.HttpResponse(status, body, headers), "demo", NOW)


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


@pytest.mark.parametrize("claim", [None, "soon", True, 10**400, [1], float("nan")])
def test_claim_that_is_no_time_is_ignored(claim: Any) -> None:
    assert identity.expiry(make_jwt(exp=claim), 60, NOW) == NOW + 60


def test_nbf_replaces_a_missing_iat() -> None:
    assert identity.expiry(make_jwt(nbf=NOW + 100, exp=NOW + 150), None, NOW) == NOW + 50
    assert identity.expiry(make_jwt(nbf=NOW, iat=NOW + 100, exp=NOW + 150), None, NOW) == NOW + 50


@pytest.mark.parametrize(
    "issued, ends, expires_in, end",
    [
        (None, None, None, None),
        (None, None, DAY, DAY),
        (None, DAY, None, DAY),
        (0, DAY, DAY, DAY),
        (-59, DAY - 59, DAY, DAY - 59),
        # the clock of this machine is behind
        (3_600, DAY + 3_600, DAY, DAY),
        (3_600, DAY + 3_600, None, DAY),
        (None, DAY + 3_600, DAY, DAY),
        # it is ahead, by hours and by more than a life
        (-3_600, DAY - 3_600, DAY, DAY - 3_600),
        (-2 * DAY, -DAY, DAY, DAY),
        (-2 * DAY, -DAY, None, DAY),
        (None, -DAY, DAY, DAY),
        # an older token, kept over there
        (-3_600, DAY - 3_600, None, DAY - 3_600),
        (-3_600, DAY - 3_600, DAY - 3_600, DAY - 3_600),
        # claims and expires_in contradict each other: the sooner end
        (0, 600, DAY, 600),
        (0, DAY, 600, 600),
        (3_600, 3_600 + 600, DAY, 600),
        # a life that ends before it begins says nothing
        (50, 40, None, 40),
    ],
)
def test_expiry_is_valid_by_both_clocks(
    issued: float | None, ends: float | None, expires_in: float | None, end: float | None
) -> None:
    claims = {name: NOW + value for name, value in (("iat", issued), ("exp", ends)) if value is not None}
    found = identity.expiry(make_jwt(**claims) if claims else "opaque", expires_in, NOW)
    assert found == (None if end is None else NOW + end)
