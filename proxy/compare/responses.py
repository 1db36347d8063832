"""Responses of one side, and their JSON. Numbers keep every digit; duplicate keys are noted."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import orjson

from proxy.compare.requests import V3Request

TOO_DEEP = "JSON that is nested too deeply"
DEPTH_MAX = 254  # where orjson gives up; v3's own answers have 12 levels
DIGITS = 4000  # what Python reads and writes without being asked twice
FAST = msgspec.json.Decoder(float_hook=Decimal)
SPACED = re.compile(rb"[\[{,:]\s")

SideName = Literal["baseline", "candidate"]


class SideResponse(msgspec.Struct, frozen=True):
    """A response as it came. `seconds` to its last byte; `parts` what it cost, where the side says so.

    `trouble` is why there is none: then `status` is 0 and the body empty.
    """

    status: int
    body: bytes
    seconds: float
    content_type: str = ""
    parts: int | None = None
    failure: str | None = None

    @property
    def price(self) -> int | None:
        """Parts that it cost, nothing for a refusal; None where that cannot be known."""
        return 0 if self.parts is None and 400 <= self.status < 500 else self.parts


class ComparedSide(Protocol):
    """Whoever answers requests: a service, or a file of responses. `live`: asked again, it may say something else."""

    @property
    def place(self) -> str:
        """Where it is, for people."""

    @property
    def live(self) -> bool:
        """Whether to ask again can be of use."""

    async def ask(self, request: V3Request, request_id: str) -> SideResponse:
        """Its response. Raises nothing."""


class JsonDocument(NamedTuple):
    """A body read as JSON. `twice` are the keys that stand twice in one object; the last one counts."""

    value: Any
    twice: tuple[str, ...] = ()


def read_json(body: bytes) -> JsonDocument:
    """The JSON of a body, its numbers as int or Decimal. Raises ValueError for what is none, in plain words."""
    try:
        return _read_fast(body) or _read_carefully(body)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(_describe_non_json(body)) from error


def _read_fast(body: bytes) -> JsonDocument | None:
    """Nothing is lost where the value, written again, is the same bytes: no key stood twice, no digit went."""
    if SPACED.search(body, 0, 500):
        return None  # it would be written without spaces
    try:
        value = FAST.decode(body)
        return JsonDocument(value) if orjson.dumps(value, _digits) == body else None
    except (msgspec.DecodeError, orjson.JSONEncodeError, UnicodeDecodeError, ArithmeticError, RecursionError):
        return None


def _read_carefully(body: bytes) -> JsonDocument:
    """As RFC 8259 has it, and as old services write it: with byte order marks and halves of characters."""
    twice: list[str] = []
    value = json.loads(
        body, parse_float=_decimal, parse_int=_integer, parse_constant=_no_number, object_pairs_hook=_pairs_hook(twice)
    )
    if _is_too_deep(value):
        raise ValueError(TOO_DEEP)
    return JsonDocument(value, tuple(dict.fromkeys(twice)))


def _is_too_deep(value: Any) -> bool:
    """Whether there are more than DEEPEST levels, which nothing that compares or writes a value could walk."""
    try:
        return not orjson.dumps(value, _digits)  # it refuses such
    except orjson.JSONEncodeError:  # and other things
        level = [value]
    for _ in range(DEPTH_MAX + 1):
        containers = [each for each in level if type(each) in (dict, list)]
        level = [each for whole in containers for each in (whole.values() if type(whole) is dict else whole)]
    return bool(level)


def _pairs_hook(twice: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
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


def _describe_non_json(body: bytes) -> str:
    """What came instead of JSON."""
    start = body.lstrip()[:200].lower()
    if not start:
        return "an empty body"
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "HTML instead of JSON"
    if start.startswith((b"{", b"[")):
        return "JSON that is cut or broken"
    return "something that is no JSON"


_PADDED = re.compile(rb"\s*(?:/\*\*/)?\s*([\w$.\[\]]{1,128})\s*\((.*)\)\s*;?\s*", re.DOTALL)
_ERRORS = ("ClientErrorResponse", "ServerErrorResponse")


class ResponseBody(msgspec.Struct, frozen=True):
    """A `document`, or the `problem` that there is instead. `function` is what it is handed to, `refused` whether it is
    an error, by its status or by its own word.
    """

    document: JsonDocument = JsonDocument(None)
    problem: str | None = None
    function: str | None = None
    refused: bool = False


def read_body(request: V3Request, response: SideResponse) -> ResponseBody:
    """The body of a response to a request."""
    text, function = response.body, None
    if any(request.values("callback")) and (padded := _PADDED.fullmatch(response.body)):
        function, text = padded[1].decode("utf-8", "replace"), padded[2]
    try:
        document = read_json(text)
    except ValueError as error:
        return ResponseBody(problem=str(error), function=function, refused=response.status >= 400)
    return ResponseBody(document, None, function, response.status >= 400 or _is_error_document(document.value))


def _is_error_document(value: Any) -> bool:
    """An error whose status is suppressed."""
    return isinstance(value, dict) and value.get("__class__") in _ERRORS
