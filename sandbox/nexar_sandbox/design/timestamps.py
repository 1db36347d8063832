"""Timestamps in the format of the design services."""

import datetime


def rfc3339(seconds: float) -> str:
    """Return seconds since 1970 as RFC 3339 text in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
