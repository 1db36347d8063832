"""Timestamps in the format of the design services."""

import datetime
import random

DAY = 86_400


def rfc3339(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 text in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class PastTimes:
    """Random times before `now`, for sample data."""

    def __init__(self, now: float, rng: random.Random) -> None:
        self._now, self._rng = now, rng

    def ago(self, days: int) -> str:
        """A time about `days` days ago."""
        return rfc3339(self._now - days * DAY - self._rng.randrange(DAY))
