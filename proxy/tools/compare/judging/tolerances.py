"""Conditions of a rule on values: tolerances, normal forms, and required forms. Pure; used by rules.py.

A normal form replaces a value before comparison; a value that cannot be parsed is unchanged. A required form must be
met by the candidate's value: an ignored link still has to be a link.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, get_args
from urllib.parse import SplitResult, parse_qs, urlsplit

from msgspec import Meta

from proxy.config.base import Settings
from proxy.tools import json_texts
from proxy.tools.compare.judging.findings import ABSENT

NormalForm = Literal[
    "lower-case",  # text, case-insensitive
    "trim",  # text with surrounding or repeated whitespace
    "number",  # "1.50", "1.5" and 1.5
    "timestamp",  # 2026-01-31T12:00:00Z and 2026-01-31T13:00:00.000+01:00; without a zone it is UTC
    "day",  # timestamps of the same day, in UTC
    "url",  # URL without scheme, query, fragment and trailing slash
    "sorted",  # a list in any order
    "empty",  # null, "", [], {} and absence
]
NORMAL_FORMS: tuple[NormalForm, ...] = get_args(NormalForm)

_NUMBER = re.compile(r"[-+]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][-+]?[0-9]{1,3})?")
_BLANKS = re.compile(r"\s+")


def normalized(value: Any, spellings: tuple[NormalForm, ...]) -> Any:
    """Normalize a value to each of the forms, in order."""
    for spelling in spellings:
        value = _FUNCTIONS[spelling](value)
    return value


def number(value: Any) -> Decimal | None:
    """Return the number that a JSON value is or spells; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float | str):
        return None
    text = str(value)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def timestamp(value: Any) -> datetime | None:
    """Parse a timestamp, in UTC; None for other values."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        read = datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _each_text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Apply `change` to every text in a value, at any depth."""
    return lambda value: json_texts.changed(value, change)


def _number(value: Any) -> Any:
    read = number(value)
    return value if read is None else read


def _timestamp(value: Any) -> Any:
    read = timestamp(value)
    return value if read is None else read


def _day(value: Any) -> Any:
    read = timestamp(value)
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


_FUNCTIONS: dict[NormalForm, Callable[[Any], Any]] = {
    "lower-case": _each_text(str.casefold),
    "trim": _each_text(lambda text: _BLANKS.sub(" ", text).strip()),
    "number": _number,
    "timestamp": _timestamp,
    "day": _day,
    "url": _each_text(_url),
    "sorted": _sorted,
    "empty": lambda value: None if value is ABSENT or value is None or value in ("", [], {}) else value,
}


Form = Literal[
    "text",  # non-blank text
    "blank",  # null or blank text
    "no-value",  # null
    "number",  # a non-negative number
    "country",  # two capital letters
    "currency",  # three capital letters
    "uid",  # 16 hex digits
    "other-uid",  # a uid other than the requested one
    "link",  # an http or https URL with more than a home page's path
    "click-link",  # the catalog site's URL for clicks on an offer: https://octopart.com/…/a1?t=…
]
FORMS: tuple[Form, ...] = get_args(Form)

SITE = "octopart.com"  # host of click links in every recorded response (contract graphql.md §2.6)
_CLICK = re.compile(r"/[^/]+/a1")
_UID = re.compile(r"[0-9a-f]{16}")
_OWN = re.compile(r"\[([0-9a-f]{16})[\]#]")  # path of a part in a get_multi response


def has_form(
    value: Any, forms: tuple[Form, ...], place: str = "", requested_uids: frozenset[str] = frozenset()
) -> bool:
    """Return true if a value has one of the forms. `requested_uids` are the uids that the request names, `place`
    locates the value.
    """
    if "other-uid" in forms and _matches(_UID, value):
        own = _OWN.match(place)
        if value not in ({own[1]} if own else requested_uids):
            return True
    return any(_CHECKS[form](value) for form in forms if form != "other-uid")


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _address(value: Any) -> SplitResult | None:
    """Parse a URL that has more than a home page's path; None otherwise."""
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return None
    try:
        read = urlsplit(value)
    except ValueError:
        return None
    further = read.path.strip("/") or read.query
    return read if read.scheme in ("http", "https") and read.hostname and further else None


def _is_click(value: Any) -> bool:
    read = _address(value)
    if read is None or read.scheme != "https" or read.hostname != SITE:
        return False
    return _CLICK.fullmatch(read.path) is not None and bool(parse_qs(read.query).get("t"))


def _is_number(value: Any) -> bool:
    read = None if isinstance(value, str) else number(value)
    return read is not None and read >= 0


_CHECKS: dict[Form, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str) and bool(value.strip()),
    "blank": lambda value: value is None or value == "",
    "no-value": lambda value: value is None,
    "number": _is_number,
    "country": lambda value: _matches(re.compile("[A-Z]{2}"), value),
    "currency": lambda value: _matches(re.compile("[A-Z]{3}"), value),
    "uid": lambda value: _matches(_UID, value),
    "link": lambda value: _address(value) is not None,
    "click-link": _is_click,
}


Number = Annotated[float, Meta(ge=0)]


class Tolerance(Settings, frozen=True):
    """Permitted distance of two values: of numbers `absolute`, or `relative` to the larger; of timestamps `seconds`."""

    absolute: Annotated[Number | None, Meta(description="a number from 0 up")] = None
    relative: Annotated[Number | None, Meta(description="a share of the larger number, such as 0.01")] = None
    seconds: Annotated[Number | None, Meta(description="seconds from 0 up")] = None

    def allows(self, baseline: Any, candidate: Any) -> bool:
        """Return true if two values are within the tolerance, element by element."""
        if isinstance(baseline, list) and isinstance(candidate, list):
            return len(baseline) == len(candidate) and all(
                self.allows(*pair) for pair in zip(baseline, candidate, strict=True)
            )
        if isinstance(baseline, dict) and isinstance(candidate, dict):
            return baseline.keys() == candidate.keys() and all(
                self.allows(baseline[name], candidate[name]) for name in baseline
            )
        return (
            (type(baseline) is type(candidate) and baseline == candidate)
            or self._number(baseline, candidate)
            or self._timestamp(baseline, candidate)
        )

    def _number(self, baseline: Any, candidate: Any) -> bool:
        one, other = number(baseline), number(candidate)
        if one is None or other is None:
            return False
        apart, larger = abs(one - other), max(abs(one), abs(other))
        if self.absolute is not None and apart <= Decimal(str(self.absolute)):
            return True
        return self.relative is not None and apart <= Decimal(str(self.relative)) * larger

    def _timestamp(self, baseline: Any, candidate: Any) -> bool:
        if self.seconds is None:
            return False
        one, other = timestamp(baseline), timestamp(candidate)
        return one is not None and other is not None and abs((one - other).total_seconds()) <= self.seconds
