"""Texts that say the same in other letters: numbers and moments. Knows no field; who asks knows which are names."""

import re
from collections.abc import Hashable
from datetime import datetime, timedelta
from decimal import Decimal

# As JSON writes numbers, but for exponents: 0402 is no number, and 1e10 may be a uid.
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,60})(?:\.\d{1,60})?", re.ASCII)
MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,30}))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)


def same(old: str, new: str) -> bool:
    """Whether two different texts are the same number or the same moment."""
    return key(old) == key(new)


def key(text: str) -> Hashable:
    """Equal for all ways to write a number or a moment; any other text stands for itself."""
    if len(text) > 200:
        return text
    if NUMBER.fullmatch(text):
        return Decimal(text)
    return moment(text) or text


def moment(text: str) -> tuple[datetime, str, bool] | None:
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
