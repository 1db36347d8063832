"""Parsing of token responses."""

from collections.abc import Callable
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.upstream import http_post, identity

NOW = 1_700_000_000.0


def ok(token: str, rest: str = "") -> http_post.HttpResponse:
    return http_post.HttpResponse(200, f'{{"access_token":"{token}"{rest}}}'.encode())


def test_expiry_is_the_claim_of_the_token(make_jwt: Callable[..., str]) -> None:
    reply = ok(make_jwt(exp=NOW + 50), ',"expires_in":86400')
    assert identity.parse(reply, "demo", NOW).expires == NOW + 50


@pytest.mark.parametrize("rest", ["100", '"100"', "100.0"])
def test_opaque_token_expires_by_expires_in(rest: str) -> None:
    assert identity.parse(ok("opaque", f',"expires_in":{rest}'), "demo", NOW).expires == NOW + 100


def test_repr_does_not_show_the_token() -> None:
    assert "hidden" not in repr(identity.AccessToken("hidden", NOW))


@cases.parametrize("body, message")
def test_200_without_usable_token_is_unreadable(body: str, message: str) -> None:
    with pytest.raises(errors.UpstreamUnreadable, match=message):
        identity.parse(http_post.HttpResponse(200, body.encode("latin-1")), "demo", NOW)


@cases.parametrize("status, body, error, message")
def test_refusals_have_their_own_errors(status: int, body: str, error: str, message: str) -> None:
    with pytest.raises(getattr(errors, error), match=message):
        identity.parse(http_post.HttpResponse(status, body.encode()), "demo", NOW)


@pytest.mark.parametrize("header, seconds", [("7", 7), ("0", 1), (None, 60), ("soon", 60)])
def test_retry_after_of_a_429(header: str | None, seconds: int) -> None:
    with pytest.raises(errors.TokenLimit) as found:
        identity.parse(http_post.HttpResponse(429, b"", header), "demo", NOW)
    assert found.value.retry_after == seconds


DAY = 86_400.0


@pytest.mark.parametrize("claim", [None, "soon", True, 10**400, [1], float("nan")])
def test_claim_that_is_no_time_is_ignored(make_jwt: Callable[..., str], claim: Any) -> None:
    assert identity.expiry(make_jwt(exp=claim), 60, NOW) == NOW + 60


def test_nbf_replaces_a_missing_iat(make_jwt: Callable[..., str]) -> None:
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
    make_jwt: Callable[..., str], issued: float | None, ends: float | None, expires_in: float | None, end: float | None
) -> None:
    claims = {name: NOW + value for name, value in (("iat", issued), ("exp", ends)) if value is not None}
    found = identity.expiry(make_jwt(**claims) if claims else "opaque", expires_in, NOW)
    assert found == (None if end is None else NOW + end)
