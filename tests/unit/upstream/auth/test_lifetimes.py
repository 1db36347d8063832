"""Lifetimes of tokens with and without clock skew."""

from collections.abc import Callable
from typing import Any

import pytest

from proxy.upstream.auth import lifetimes
from proxy.upstream.auth.lifetimes import TokenTimes

NOW = 1_700_000_000.0
DAY = 86_400.0


def seen(start: float | None, end: float | None) -> TokenTimes:
    """Times as seconds from NOW by this machine's clock."""
    return TokenTimes(None if start is None else NOW + start, None if end is None else NOW + end)


@pytest.mark.parametrize("claim", [None, "soon", True, 10**400, [1], float("nan")])
def test_claim_that_is_no_time_is_ignored(make_jwt: Callable[..., str], claim: Any) -> None:
    assert lifetimes.claimed(make_jwt(exp=claim)) == (None, None)


def test_opaque_token_has_no_times() -> None:
    assert lifetimes.claimed("opaque") == (None, None)


def test_nbf_replaces_a_missing_iat(make_jwt: Callable[..., str]) -> None:
    assert lifetimes.claimed(make_jwt(nbf=1, exp=2)) == (1.0, 2.0)
    assert lifetimes.claimed(make_jwt(nbf=1, iat=0, exp=2)) == (0.0, 2.0)


@pytest.mark.parametrize(
    "times, told, end",
    [
        (seen(None, None), None, None),
        (seen(None, None), DAY, DAY),
        (seen(None, DAY), None, DAY),
        (seen(0, DAY), DAY, DAY),
        (seen(-59, DAY - 59), DAY, DAY - 59),
        (seen(59, DAY + 59), DAY, DAY),
        # the clock of this machine is behind
        (seen(3_600, DAY + 3_600), DAY, DAY),
        (seen(3_600, DAY + 3_600), None, DAY),
        (seen(None, DAY + 3_600), DAY, DAY),
        # it is ahead, by hours and by more than a life
        (seen(-3_600, DAY - 3_600), DAY, DAY),
        (seen(-2 * DAY, -DAY), DAY, DAY),
        (seen(-2 * DAY, -DAY), None, DAY),
        (seen(None, -DAY), DAY, DAY),
        # an older token, kept over there
        (seen(-3_600, DAY - 3_600), None, DAY - 3_600),
        (seen(-3_600, DAY - 3_600), DAY - 3_600, DAY - 3_600),
        # claims and expires_in contradict each other: the sooner end
        (seen(0, 600), DAY, 600),
        (seen(0, DAY), 600, 600),
        (seen(3_600, 3_600 + 600), DAY, 600),
        # a life that ends before it begins says nothing
        (seen(50, 40), None, 40),
    ],
)
def test_expiry_is_valid_by_both_clocks(times: Any, told: Any, end: Any) -> None:
    assert lifetimes.expiry(times, told, NOW) == (None if end is None else NOW + end)


@pytest.mark.parametrize(
    "times, told, mismatches",
    [
        (seen(0, DAY), DAY, []),
        (seen(60, DAY + 60), DAY, []),
        (seen(-60, DAY - 60), DAY, []),
        (seen(-3_600, DAY - 3_600), None, []),
        (seen(None, None), DAY, []),
        (seen(None, DAY), None, []),
        (seen(3_600, DAY + 3_600), DAY, [("clock", 3_600)]),
        (seen(-61, DAY - 61), DAY, [("clock", -61)]),
        (seen(0, DAY), 3_600, [("lifetime", 82_800)]),
        (seen(None, 600), DAY, [("expiry", 85_800)]),
        (seen(None, -600), DAY, [("expiry", 87_000)]),
    ],
)
def test_mismatches_have_their_seconds(times: Any, told: Any, mismatches: Any) -> None:
    assert list(lifetimes.mismatches(times, told, NOW)) == mismatches
