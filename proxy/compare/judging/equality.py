"""Equality of JSON values, to the last digit, and of texts that spell the same number or time.

Python's own == takes True for 1 and 1 for 1.0, which no program in another language does. `same` runs at C speed; it
knows no field: callers know which texts are names.
"""

import re
from collections.abc import Hashable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson

PLAIN = frozenset((str, int, bool, type(None)))  # where type and == say all


def same(baseline: Any, candidate: Any) -> bool:
    """Whether both say the same in the same way. The order of an object's keys says nothing."""
    kind = type(baseline)
    if kind is not type(candidate) or baseline != candidate:
        return False
    return kind in PLAIN or canonical(baseline) == canonical(candidate)


def canonical(value: Any) -> bytes | str:
    """A text that only values which are the same share."""
    try:
        return orjson.dumps(value, _digits, orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # beyond 64 bits, or half a character: legal JSON that orjson does not write
        return repr(_sorted(value))


def _digits(number: Decimal) -> orjson.Fragment:
    return orjson.Fragment(f"d{number}")  # no JSON begins with d, so 1e0 is neither 1 nor "1"


def _sorted(value: Any) -> Any:
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if type(value) is list else value


# As JSON writes numbers, but for exponents: 0402 is no number, and 1e10 may be a uid.
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,60})(?:\.\d{1,60})?", re.ASCII)
MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,30}))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)


def same_spelling(baseline: str, candidate: str) -> bool:
    """Whether two different texts are the same number or the same moment."""
    return spelling_key(baseline) == spelling_key(candidate)


def spelling_key(text: str) -> Hashable:
    """Equal for all ways to write a number or a moment; any other text stands for itself."""
    if len(text) > 200:
        return text
    if NUMBER.fullmatch(text):
        return Decimal(text)
    return timestamp_key(text) or text


def timestamp_key(text: str) -> tuple[datetime, str, bool] | None:
    """Second, fraction and whether a zone is given, for an ISO 8601 moment. One without a zone equals none with one."""
    found = MOMENT.fullmatch(text)
    if not found:
        return None
    date, time, fraction, zone = found.groups()
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
