"""When will the parts run out, if it goes on like this? Pure; used by usage.py.

The pace is that of the last days, from the first of them on which anything was spent: a service that began on Thursday
is not slower for its idle Monday. It is taken over one day at least, so that a busy first hour foretells nothing wild.
"""

from collections.abc import Sequence

DAYS = 7  # that the pace is taken from, today among them
DAY_SECONDS = 86_400.0


def runs_out(used: int, limit: int | None, ends: float | None, days: Sequence[int], now: float) -> float | None:
    """The moment in seconds since 1970 at which `used` reaches `limit`, None where that is not before the period ends.

    `ends` is that end, None for a lifetime. `days` are the parts of the last days (UTC), today's last.
    """
    if limit is None:
        return None
    if used >= limit:
        return now
    spent = sum(days)
    if not spent:
        return None
    moment = now + (limit - used) * _elapsed(days, now) / spent
    return moment if ends is None or moment < ends else None


def _elapsed(days: Sequence[int], now: float) -> float:
    """Seconds in which they were spent: from midnight before the first of them until now."""
    first = next(position for position, parts in enumerate(days) if parts)
    return max(DAY_SECONDS, (len(days) - 1 - first) * DAY_SECONDS + now % DAY_SECONDS)
