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


@pytest.mark.parametrize(
    "claims, expires_in, end",
    [
        ({}, None, None),
        ({}, DAY, DAY),
        ({"exp": DAY}, None, DAY),
        # the clock of this machine is behind
        ({"iat": 3_600, "exp": DAY + 3_600}, DAY, DAY),
        ({"exp": DAY + 3_600}, DAY, DAY),
        # it is ahead, by hours and by more than a life
        ({"iat": -3_600, "exp": DAY - 3_600}, DAY, DAY - 3_600),
        ({"iat": -2 * DAY, "exp": -DAY}, DAY, DAY),
        # an older token, kept over there
        ({"iat": -3_600, "exp": DAY - 3_600}, DAY - 3_600, DAY - 3_600),
        # claims and expires_in contradict each other: the sooner end
        ({"iat": 0, "exp": 600}, DAY, 600),
        ({"iat": 0, "exp": DAY}, 600, 600),
        # a life that ends before it begins says nothing
        ({"iat": 50, "exp": 40}, None, 40),
        # nbf replaces a missing iat
        ({"nbf": 100, "exp": 150}, None, 50),
        ({"nbf": 0, "iat": 100, "exp": 150}, None, 50),
        *(({"exp": claim}, 60, 60) for claim in (None, "soon", True, 10**400, [1], float("nan"))),
    ],
)
def test_expiry_is_valid_by_both_clocks(claims: dict[str, Any], expires_in: float | None, end: float | None) -> None:
    times = {name: NOW + time if type(time) in (int, float) and time < 1e9 else time for name, time in claims.items()}
    found = identity.expiry(make_jwt(**times) if claims else "opaque", expires_in, NOW)
    assert found == (None if end is None else NOW + end)
