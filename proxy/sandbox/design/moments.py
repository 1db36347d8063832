"""Times as the design services write them."""

import datetime
import random

DAY = 86_400


def written(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 text in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Past:
    """Moments before `now`, drawn from `rng`."""

    def __init__(self, now: float, rng: random.Random) -> None:
        self._now, self._rng = now, rng

    def ago(self, days: int) -> str:
        """About so many days ago."""
        return written(self._now - days * DAY - self._rng.randrange(DAY))
