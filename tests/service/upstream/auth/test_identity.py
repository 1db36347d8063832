"""Parsing of token responses."""

from collections.abc import Callable
from typing import Any

import pytest

from proxy import errors
from proxy.upstream import http_post
from proxy.upstream.auth import identity

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


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "an empty answer instead of a token"),
        (b" \n", "an empty answer instead of a token"),
        (b"\n<html>", "HTTP 200 with HTML instead of a token; check the address in upstream.token_url"),
        (b'{"access_token":"a"', "not a token"),
        (b'{"access_token":null}', "not a token"),
        (b'{"token":"a"}', "not a token"),
        (b'"\xff"', "not a token"),
        (b'{"access_token":"a b","expires_in":9}', "cannot be put into a header"),
        (b'{"access_token":"a\\nb","expires_in":9}', "cannot be put into a header"),
        (b'{"access_token":"a"}', "without saying how long it lives"),
        (b'{"access_token":"a","expires_in":0}', "already expired; is the clock"),
    ],
)
def test_200_without_usable_token_is_unreadable(body: bytes, message: str) -> None:
    with pytest.raises(errors.UpstreamUnreadable, match=message):
        identity.parse(http_post.HttpResponse(200, body), "demo", NOW)


@pytest.mark.parametrize(
    "status, body, error, message",
    [
        (400, b'{"error":"invalid_client"}', errors.CredentialsRefused, "application demo: invalid_client"),
        (401, b"", errors.CredentialsRefused, "application demo: HTTP 401"),
        (400, b'{"error":"invalid_scope"}', errors.CredentialsRefused, "demo: invalid_scope; .* scope supply.domain"),
        (400, b'{"error":"<b>secret words</b>"}', errors.CredentialsRefused, "application demo: an unknown error"),
        (400, b'{"error":"slow_down"}', errors.TokenLimit, "asks application demo to wait"),
        (429, b"", errors.TokenLimit, "asks application demo to wait"),
        (400, b'{"error":"temporarily_unavailable"}', errors.UpstreamFault, "temporarily_unavailable"),
        (502, b'{"error":"invalid_client"}', errors.UpstreamFault, "HTTP 502"),
        (403, b"<html>", errors.UpstreamUnreadable, "HTTP 403"),
        (301, b"", errors.UpstreamUnreadable, "HTTP 301 with a redirect instead of a token"),
        (
            404,
            b"no",
            errors.UpstreamUnreadable,
            "HTTP 404 with 2 bytes instead of a token; check .* upstream.token_url",
        ),
    ],
)
def test_refusals_have_their_own_errors(status: int, body: bytes, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        identity.parse(http_post.HttpResponse(status, body), "demo", NOW)


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
