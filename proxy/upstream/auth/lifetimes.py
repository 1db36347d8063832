"""Lifetime of an access token, from its claims and `expires_in`, although the clocks of both sides may differ.

Used by identity.py. Pure. The token is decoded, not verified: the GraphQL service verifies it. Clock skew never makes a
good token unusable; it is reported for the log.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import jwt

TOLERANCE = 60.0  # seconds that clocks or lifetimes may differ


class TokenTimes(NamedTuple):
    """Times claimed by a JWT, in seconds since 1970 by the service's clock; None for a missing claim."""

    start: float | None
    end: float | None

    @property
    def lifetime(self) -> float | None:
        """Seconds from start to end; None if a claim is missing or the end is before the start."""
        if self.start is None or self.end is None or self.end <= self.start:
            return None
        return self.end - self.start


class TimeMismatch(NamedTuple):
    """A contradiction between times, and by how many seconds they differ.

    `clock`: this machine's clock against the identity service's, above 0 where this machine is behind.
    `lifetime`: the token's `exp - iat` against `expires_in`. `expiry`: its `exp` against the end of `expires_in`.
    """

    subject: Literal["clock", "lifetime", "expiry"]
    seconds: int


def claimed(token: str) -> TokenTimes:
    """Return `iat` (or `nbf`) and `exp` of a token; nothing for one that is not a JWT."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return TokenTimes(None, None)
    start = number(claims.get("iat"))
    return TokenTimes(number(claims.get("nbf")) if start is None else start, number(claims.get("exp")))


def expiry(times: TokenTimes, expires_in: float | None, now: float) -> float | None:
    """Return when a token requested at `now` expires, by this machine's clock; None if nothing says.

    With clocks that agree, `exp` counts. With clock skew, or if `exp` and `expires_in` contradict each other, the
    sooner end counts, and a duration is preferred to a date.
    """
    if times.end is None:
        return None if expires_in is None else now + expires_in
    if _ahead(times, expires_in, now) is not None:
        return now + min(lifetime for lifetime in (times.lifetime, expires_in) if lifetime is not None)
    if expires_in is None:
        return times.end
    return min(times.end, now + expires_in) if times.end > now else now + expires_in


def mismatches(times: TokenTimes, expires_in: float | None, now: float) -> Iterator[TimeMismatch]:
    """Yield the contradictions that an operator should know of."""
    ahead = _ahead(times, expires_in, now)
    if ahead is not None:
        yield TimeMismatch("clock", round(ahead))
    if times.lifetime is not None and expires_in is not None and abs(times.lifetime - expires_in) > TOLERANCE:
        yield TimeMismatch("lifetime", round(abs(times.lifetime - expires_in)))
    if (
        times.lifetime is None
        and expires_in is not None
        and times.end is not None
        and abs(times.end - now - expires_in) > TOLERANCE
    ):
        yield TimeMismatch("expiry", round(abs(times.end - now - expires_in)))


def number(value: Any) -> float | None:
    """Return a finite number, None for anything else: a claim may have any type."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _ahead(times: TokenTimes, expires_in: float | None, now: float) -> float | None:
    """Return the seconds that the service's clock is ahead of this one (below 0: behind); None if not known or small.

    A token issued in the future shows it. One issued in the past may be an older token from the service's cache, unless
    `expires_in` is its whole lifetime, or it has expired already: no service hands out an expired token.
    """
    if times.start is None or times.end is None or times.lifetime is None:
        return None
    ahead = times.start - now
    fresh = times.end <= now if expires_in is None else abs(times.lifetime - expires_in) <= TOLERANCE
    return ahead if ahead > TOLERANCE or (fresh and ahead < -TOLERANCE) else None
