"""How long a token lives, by clocks that need not agree: the service's, in the token, and this machine's.

Used by identity.py. Pure. The token is read, not verified: that is the business of the service that takes it. A clock
that is off makes no good token unusable; it is told to the operator.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import jwt

TOLERANCE = 60.0  # seconds that clocks, or what is said of a life, may differ


class Times(NamedTuple):
    """A JWT's own words, in seconds since 1970 by the service's clock; None where it has none."""

    start: float | None
    end: float | None

    @property
    def life(self) -> float | None:
        """Seconds from its first moment to its last, where that makes sense."""
        if self.start is None or self.end is None or self.end <= self.start:
            return None
        return self.end - self.start


class Doubt(NamedTuple):
    """A contradiction between times, and by how many seconds they differ.

    `clock`: this machine's clock against the identity service's, above 0 where this machine is behind.
    `lifetime`: the token's `exp - iat` against `expires_in`. `expiry`: its `exp` against the end of `expires_in`.
    """

    subject: Literal["clock", "lifetime", "expiry"]
    seconds: int


def read(token: str) -> Times:
    """`iat` (or `nbf`) and `exp` of a token; of one that is no JWT nothing."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return Times(None, None)
    start = number(claims.get("iat"))
    return Times(number(claims.get("nbf")) if start is None else start, number(claims.get("exp")))


def end(times: Times, told: float | None, now: float) -> float | None:
    """When a token that was asked for at `now` ends, by this machine's clock. `told` is `expires_in`.

    Its own `exp` counts where the clocks agree. Where they do not, or the two contradict each other, the sooner end
    does, and a span of time goes before a date.
    """
    if times.end is None:
        return None if told is None else now + told
    if _ahead(times, told, now) is not None:
        return now + min(life for life in (times.life, told) if life is not None)
    if told is None:
        return times.end
    return min(times.end, now + told) if times.end > now else now + told


def doubts(times: Times, told: float | None, now: float) -> Iterator[Doubt]:
    """What an operator should look at."""
    ahead = _ahead(times, told, now)
    if ahead is not None:
        yield Doubt("clock", round(ahead))
    if times.life is not None and told is not None and abs(times.life - told) > TOLERANCE:
        yield Doubt("lifetime", round(abs(times.life - told)))
    if times.life is None and told is not None and times.end is not None and abs(times.end - now - told) > TOLERANCE:
        yield Doubt("expiry", round(abs(times.end - now - told)))


def number(value: Any) -> float | None:
    """A number that can be a time; a claim may be anything."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _ahead(times: Times, told: float | None, now: float) -> float | None:
    """Seconds that the service's clock is ahead (below 0: behind) of this one, where that can be known and matters.

    A token from the future tells it. One from the past may just be an older one, kept there, unless `expires_in` says
    that its whole life lies before it, or it is over although nobody would hand it out then.
    """
    if times.start is None or times.end is None or times.life is None:
        return None
    ahead = times.start - now
    fresh = times.end <= now if told is None else abs(times.life - told) <= TOLERANCE
    return ahead if ahead > TOLERANCE or (fresh and ahead < -TOLERANCE) else None
