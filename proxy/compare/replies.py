"""What one side said to one call, read or not to be read. Numbers keep every digit; keys that stand twice are seen."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec
import orjson

DEEP = "JSON that is nested too deeply"
DEEPEST = 254  # where orjson gives up; v3's own answers have 12 levels
DIGITS = 4000  # what Python reads and writes without being asked twice
FAST = msgspec.json.Decoder(float_hook=Decimal)
SPACED = re.compile(rb"[\[{,:]\s")

SideName = Literal["old", "new"]


class Reply(msgspec.Struct, frozen=True):
    """An answer as it came. `seconds` to its last byte; `parts` what it cost, where the side says so.

    `trouble` is why there is none: then `status` is 0 and the body empty.
    """

    status: int
    body: bytes
    seconds: float
    content_type: str = ""
    parts: int | None = None
    trouble: str | None = None

    @property
    def price(self) -> int | None:
        """Parts that it cost, nothing for a refusal; None where that cannot be known."""
        return 0 if self.parts is None and 400 <= self.status < 500 else self.parts


class Document(NamedTuple):
    """A body read as JSON. `twice` are the keys that stand twice in one object; the last one counts."""

    value: Any
    twice: tuple[str, ...] = ()


def read(body: bytes) -> Document:
    """The JSON of a body, its numbers as int or Decimal. Raises ValueError for what is none, in plain words."""
    try:
        return _quickly(body) or _slowly(body)
    except RecursionError as error:
        raise ValueError(DEEP) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(_what(body)) from error


def _quickly(body: bytes) -> Document | None:
    """Nothing is lost where the value, written again, is the same bytes: no key stood twice, no digit went."""
    if SPACED.search(body, 0, 500):
        return None  # it would be written without spaces
    try:
        value = FAST.decode(body)
        return Document(value) if orjson.dumps(value, _digits) == body else None
    except (msgspec.DecodeError, orjson.JSONEncodeError, UnicodeDecodeError, ArithmeticError, RecursionError):
        return None


def _slowly(body: bytes) -> Document:
    """As RFC 8259 has it, and as old services write it: with byte order marks and halves of characters."""
    twice: list[str] = []
    value = json.loads(
        body, parse_float=_decimal, parse_int=_integer, parse_constant=_no_number, object_pairs_hook=_noting(twice)
    )
    if _deep(value):
        raise ValueError(DEEP)
    return Document(value, tuple(dict.fromkeys(twice)))


def _deep(value: Any) -> bool:
    """Whether there are more than DEEPEST levels, which nothing that compares or writes a value could walk."""
    try:
        return not orjson.dumps(value, _digits)  # it refuses such
    except orjson.JSONEncodeError:  # and other things
        level = [value]
    for _ in range(DEEPEST + 1):
        containers = [each for each in level if type(each) in (dict, list)]
        level = [each for whole in containers for each in (whole.values() if type(whole) is dict else whole)]
    return bool(level)


def _noting(twice: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) != len(found):
            seen: set[str] = set()
            twice.extend(key for key, _ in found if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    return pairs


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError as error:
        raise ValueError("a number beyond all bounds") from error


def _integer(text: str) -> int | Decimal:
    if len(text) > DIGITS:
        raise ValueError(f"a whole number of more than {DIGITS} digits")
    return Decimal(text) if text == "-0" else int(text)


def _digits(number: Decimal) -> orjson.Fragment:
    return orjson.Fragment(str(number))


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} instead of a number")


def _what(body: bytes) -> str:
    """What came instead of JSON."""
    start = body.lstrip()[:200].lower()
    if not start:
        return "an empty body"
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "HTML instead of JSON"
    if start.startswith((b"{", b"[")):
        return "JSON that is cut or broken"
    return "something that is no JSON"
