"""Forecast of the moment at which a quota will be exhausted, at the pace of the last days. Pure.

The pace is taken from the first of these days with any usage: a service that began on Thursday is not slower for its
idle Monday. It is taken over one day at least, so that a busy first hour does not predict too much.
"""

from collections.abc import Sequence

DAYS = 7  # that the pace is taken from, today among them
DAY_SECONDS = 86_400.0


def runs_out(used: int, limit: int | None, ends: float | None, days: Sequence[int], now: float) -> float | None:
    """Return the time (seconds since 1970) at which `used` reaches `limit`; None where the period ends before.

    `ends` is the end of the period, None for a lifetime. `days` are the parts of the last days (UTC), today's last.
    """
    if limit is None:
        return None
    if used >= limit:
        return now
    parts_a_second = pace(days, now)
    if not parts_a_second:  # an idle quota never runs out
        return None
    # Linear: the rest at the pace of the last days.
    moment = now + (limit - used) / parts_a_second
    return moment if ends is None or moment < ends else None


def pace(days: Sequence[int], now: float) -> float:
    """Return the parts a second of the last days (UTC), today's last; 0.0 without any usage."""
    total = sum(days)
    return total / _elapsed(days, now) if total else 0.0


def _elapsed(days: Sequence[int], now: float) -> float:
    """Return the seconds from midnight before the first day with usage until now, at least a day."""
    first = next(position for position, parts in enumerate(days) if parts)
    return max(DAY_SECONDS, (len(days) - 1 - first) * DAY_SECONDS + now % DAY_SECONDS)
