"""Timestamps in the formats of logs, converted to seconds since 1970."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

COMMON = re.compile(r"(\d{1,2})/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?: ([+-])(\d\d)(\d\d))?")
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")

_NAMES = "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_EARLIEST, _LATEST = 1e8, 1e20  # smaller numbers are no timestamps, but for example dates without dashes
_UNITS = (1e17, 1e9), (1e14, 1e6), (1e11, 1e3)  # numbers above the first are in milliseconds or smaller units


def find(text: str) -> float | None:
    """Find the first timestamp in a line, in common log format or ISO 8601; without a zone it is UTC."""
    try:
        if match := COMMON.search(text):
            return _common(match)
        if match := ISO.search(text):
            return _iso(match[0])
    except (ValueError, OverflowError):  # invalid, such as the 31st of June
        return None
    return None


def from_value(value: Any) -> float | None:
    """Convert a JSON value: a formatted timestamp, or a number of seconds, milliseconds or smaller units since 1970."""
    if isinstance(value, str):
        try:
            return _number(float(value))
        except ValueError:
            return find(value)
    return _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _common(match: re.Match[str]) -> float | None:
    day, month, year, hour, minute, second, sign, hours, minutes = match.groups()
    if month not in _MONTHS:
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    zone = timezone(-offset if sign == "-" else offset)
    return datetime(int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=zone).timestamp()


def _iso(text: str) -> float:
    moment = datetime.fromisoformat(text.replace(",", "."))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: int | float) -> float | None:
    if not _EARLIEST < value < _LATEST:
        return None
    unit = next((divisor for above, divisor in _UNITS if value > above), 1.0)
    return value / unit
