"""Spellings that a rule may take for the same. Pure; used by rules.py.

A function makes of a value what is compared in its place. What it cannot read it leaves as it is.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from proxy.compare.differences import ABSENT

Spelling = Literal[
    "lower-case",  # text in any case of letters
    "trim",  # text with blanks around it, or several in a row
    "number",  # "1.50", "1.5" and 1.5
    "moment",  # 2026-01-31T12:00:00Z and 2026-01-31T13:00:00.000+01:00; without a zone it is UTC
    "day",  # moments of one day, in UTC
    "url",  # an address without its scheme, its query, what follows #, and the slash at its end
    "sorted",  # a list in any order
    "empty",  # null, "", [], {} and nothing at all
]
SPELLINGS: tuple[Spelling, ...] = get_args(Spelling)

_NUMBER = re.compile(r"[-+]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][-+]?[0-9]{1,3})?")
_BLANKS = re.compile(r"\s+")


def normalised(value: Any, spellings: tuple[Spelling, ...]) -> Any:
    """A value in all of these spellings, one after the other."""
    for spelling in spellings:
        value = _FUNCTIONS[spelling](value)
    return value


def number(value: Any) -> Decimal | None:
    """The number that a JSON value is, or that its text is."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float | str):
        return None
    text = str(value)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def moment(value: Any) -> datetime | None:
    """The moment that a text is, in UTC."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        read = datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _each_text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    """The change for every text in a value, however deep."""

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [changed(each) for each in value]
        if isinstance(value, dict):
            return {name: changed(each) for name, each in value.items()}
        return value

    return changed


def _number(value: Any) -> Any:
    read = number(value)
    return value if read is None else read


def _moment(value: Any) -> Any:
    read = moment(value)
    return value if read is None else read


def _day(value: Any) -> Any:
    read = moment(value)
    return value if read is None else read.date()


def _url(text: str) -> str:
    try:
        read = urlsplit(text.strip())
    except ValueError:
        return text
    return text if not read.netloc else read.netloc.lower() + read.path.rstrip("/")


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return sorted((_sorted(each) for each in value), key=_encoded)
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in value.items()}
    return value


def _encoded(value: Any) -> str:
    return repr(sorted(value.items())) if isinstance(value, dict) else repr(value)


def _empty(value: Any) -> Any:
    return None if value is ABSENT or value is None or value in ("", [], {}) else value


_FUNCTIONS: dict[Spelling, Callable[[Any], Any]] = {
    "lower-case": _each_text(str.casefold),
    "trim": _each_text(lambda text: _BLANKS.sub(" ", text).strip()),
    "number": _number,
    "moment": _moment,
    "day": _day,
    "url": _each_text(_url),
    "sorted": _sorted,
    "empty": _empty,
}
