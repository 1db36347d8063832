"""Forms that a rule may ask of what it hides: a link that is to be ignored has to be a link. Pure; used by rules.py."""

import re
from collections.abc import Callable
from typing import Any, Literal, get_args
from urllib.parse import SplitResult, parse_qs, urlsplit

from proxy.compare.normalising import number

Form = Literal[
    "text",  # text with something in it
    "blank",  # null, or text with nothing in it
    "no-value",  # null
    "number",  # a number from 0 up
    "country",  # two capital letters
    "currency",  # three capital letters
    "uid",  # 16 hex digits
    "other-uid",  # a uid, but not the one that was asked for
    "link",  # an address that begins with http:// or https:// and leads further than to a home page
    "click-link",  # the catalog site's address for clicks on an offer: https://octopart.com/…/a1?t=…
]
FORMS: tuple[Form, ...] = get_args(Form)

SITE = "octopart.com"  # host of click links in every recorded answer (contract graphql.md §2.6)
_CLICK = re.compile(r"/[^/]+/a1")
_UID = re.compile(r"[0-9a-f]{16}")
_OWN = re.compile(r"\[([0-9a-f]{16})[\]#]")  # the key that an answer of get_multi has a part under


def has(value: Any, forms: tuple[Form, ...], place: str = "", asked: frozenset[str] = frozenset()) -> bool:
    """Whether a JSON value has one of the forms. `asked` are the uids that the call asks for, `place` is where in the
    reply the value stands.
    """
    if "other-uid" in forms and _matches(_UID, value):
        own = _OWN.match(place)
        if value not in ({own[1]} if own else asked):
            return True
    return any(_CHECKS[form](value) for form in forms if form != "other-uid")


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _address(value: Any) -> SplitResult | None:
    """The parts of an address that leads further than to a home page."""
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
