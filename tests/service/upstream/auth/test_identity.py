"""Parsing of token responses."""

from collections.abc import Callable
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.upstream import http_post
from proxy.upstream.auth import identity
from proxy.upstream.auth.identity import TokenTimes

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


def test_clock_skew_invalidates_no_token_and_is_reported(make_jwt: Callable[..., str]) -> None:
    reply = ok(make_jwt(iat=NOW - 90_000, exp=NOW - 3_600), ',"expires_in":86400')
    grant = identity.parse(reply, "demo", NOW)
    assert grant.expires == NOW + 86_400
    assert grant.mismatches == (("clock", -90_000),)


DAY = 86_400.0


def claims(start: float | None, end: float | None) -> TokenTimes:
    """Times as seconds from NOW by this machine's clock."""
    return TokenTimes(None if start is None else NOW + start, None if end is None else NOW + end)


@pytest.mark.parametrize("claim", [None, "soon", True, 10**400, [1], float("nan")])
def test_claim_that_is_no_time_is_ignored(make_jwt: Callable[..., str], claim: Any) -> None:
    assert identity.claimed(make_jwt(exp=claim)) == (None, None)


def test_opaque_token_has_no_times() -> None:
    assert identity.claimed("opaque") == (None, None)


def test_nbf_replaces_a_missing_iat(make_jwt: Callable[..., str]) -> None:
    assert identity.claimed(make_jwt(nbf=1, exp=2)) == (1.0, 2.0)
    assert identity.claimed(make_jwt(nbf=1, iat=0, exp=2)) == (0.0, 2.0)


@pytest.mark.parametrize(
    "times, expires_in, end",
    [
        (claims(None, None), None, None),
        (claims(None, None), DAY, DAY),
        (claims(None, DAY), None, DAY),
        (claims(0, DAY), DAY, DAY),
        (claims(-59, DAY - 59), DAY, DAY - 59),
        (claims(59, DAY + 59), DAY, DAY),
        # the clock of this machine is behind
        (claims(3_600, DAY + 3_600), DAY, DAY),
        (claims(3_600, DAY + 3_600), None, DAY),
        (claims(None, DAY + 3_600), DAY, DAY),
        # it is ahead, by hours and by more than a life
        (claims(-3_600, DAY - 3_600), DAY, DAY),
        (claims(-2 * DAY, -DAY), DAY, DAY),
        (claims(-2 * DAY, -DAY), None, DAY),
        (claims(None, -DAY), DAY, DAY),
        # an older token, kept over there
        (claims(-3_600, DAY - 3_600), None, DAY - 3_600),
        (claims(-3_600, DAY - 3_600), DAY - 3_600, DAY - 3_600),
        # claims and expires_in contradict each other: the sooner end
        (claims(0, 600), DAY, 600),
        (claims(0, DAY), 600, 600),
        (claims(3_600, 3_600 + 600), DAY, 600),
        # a life that ends before it begins says nothing
        (claims(50, 40), None, 40),
    ],
)
def test_expiry_is_valid_by_both_clocks(times: Any, expires_in: Any, end: Any) -> None:
    assert identity.expiry(times, expires_in, NOW) == (None if end is None else NOW + end)


@pytest.mark.parametrize(
    "times, expires_in, mismatches",
    [
        (claims(0, DAY), DAY, []),
        (claims(60, DAY + 60), DAY, []),
        (claims(-60, DAY - 60), DAY, []),
        (claims(-3_600, DAY - 3_600), None, []),
        (claims(None, None), DAY, []),
        (claims(None, DAY), None, []),
        (claims(3_600, DAY + 3_600), DAY, [("clock", 3_600)]),
        (claims(-61, DAY - 61), DAY, [("clock", -61)]),
        (claims(0, DAY), 3_600, [("lifetime", 82_800)]),
        (claims(None, 600), DAY, [("expiry", 85_800)]),
        (claims(None, -600), DAY, [("expiry", 87_000)]),
    ],
)
def test_mismatches_have_their_seconds(times: Any, expires_in: Any, mismatches: Any) -> None:
    assert list(identity.mismatches(times, expires_in, NOW)) == mismatches
