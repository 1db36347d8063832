"""Equality of JSON values to the last digit, and of texts that spell the same number or time.

Python's == treats True and 1, and 1 and 1.0, as equal; clients in other languages do not. `same` does not depend on
field names: callers decide which texts are names.
"""

import re
from collections.abc import Hashable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any


def same(baseline: Any, candidate: Any) -> bool:
    """Compare two JSON values exactly, including number types. The order of an object's keys is ignored."""
    return bool(baseline == candidate) and _are_exact(baseline, candidate)


def _are_exact(baseline: Any, candidate: Any) -> bool:
    """Return whether values that Python considers equal have the same types and digits."""
    kind = type(baseline)
    if kind is not type(candidate):
        return False
    if kind is dict:
        return all(_are_exact(value, candidate[key]) for key, value in baseline.items())
    if kind is list:
        return all(map(_are_exact, baseline, candidate))
    return kind is not Decimal or str(baseline) == str(candidate)


def canonical(value: Any) -> str:
    """Return a canonical form: equal exactly for values that are `same`."""
    return repr(_sorted(value))


def _sorted(value: Any) -> Any:
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if type(value) is list else value


# JSON's number syntax without exponents: 0402 is a package size, and 1e10 may be a uid.
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,60})(?:\.\d{1,60})?", re.ASCII)
MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,30}))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)


def same_spelling(baseline: str, candidate: str) -> bool:
    """Return true if two different texts spell the same number or the same point in time."""
    return spelling_key(baseline) == spelling_key(candidate)


def spelling_key(text: str) -> Hashable:
    """Return a key that is equal for all spellings of a number or a timestamp; other texts are their own key."""
    if len(text) > 200:
        return text
    if NUMBER.fullmatch(text):
        return Decimal(text)
    return timestamp_key(text) or text


def timestamp_key(text: str) -> tuple[datetime, str, bool] | None:
    """Parse an ISO 8601 timestamp to (second, fraction, has a zone); None for other texts.

    The third element keeps a timestamp without a zone unequal to one with a zone.
    """
    match = MOMENT.fullmatch(text)
    if not match:
        return None
    date, time, fraction, zone = match.groups()
    try:
        second = datetime.fromisoformat(f"{date}T{time}+00:00") - _offset(zone)
    except (ValueError, OverflowError):
        return None
    return second, (fraction or "").rstrip("0"), zone is not None


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[0] == "-" else size
