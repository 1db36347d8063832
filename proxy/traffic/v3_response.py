"""Responses of one side, and their JSON. Numbers retain all digits; duplicate keys are recorded."""

import json
import re
import textwrap
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import msgspec

from proxy.traffic.v3_request import V3Request

TOO_DEEP = "JSON that is nested too deeply"
DEPTH_MAX = 254  # v3's own responses have 12 levels
DIGITS = 4000  # below Python's default limit for conversions between int and str
FAST = msgspec.json.Decoder(float_hook=Decimal)
WRITER = msgspec.json.Encoder(decimal_format="number")
SPACED = re.compile(rb"[\[{,:]\s")

KEY_STATUSES = (401, 403)
KEY_REFUSED = "refuses the key of"  # beginning of the reason of a refused API key, before the client's name
MESSAGE_MAX = 200  # characters of a side's own message


class SideResponse(msgspec.Struct, frozen=True):
    """Response as received. `seconds` is the time to its last byte; `parts` the cost that the side states, if any.

    `failure` is the reason why there is no response: then `status` is 0 and the body empty. `unsupported` are the names
    that X-V3-Unsupported lists.
    """

    status: int
    body: bytes
    seconds: float
    content_type: str = ""
    parts: int | None = None
    failure: str | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def price(self) -> int | None:
        """Cost in parts, 0 for a 4xx response; None where unknown."""
        return 0 if self.parts is None and 400 <= self.status < 500 else self.parts


class _Refusal(msgspec.Struct):
    """Fields of an error response with a message."""

    message: str


def refusal(response: SideResponse, client: str) -> str | None:
    """Return why a response proves nothing about a translation, worded to complete "the baseline …"; None otherwise."""
    if response.status in KEY_STATUSES:
        reason = f"{KEY_REFUSED} {client}"
    elif response.status == 429:
        reason = "limits the request rate"
    elif response.status >= 500:
        reason = "failed"
    else:
        return None
    return f"{reason} (HTTP {response.status}){message_suffix(response)}"


def message_suffix(response: SideResponse) -> str:
    """Format the side's own message, such as an exhausted quota or a rate limit. Cut between words, so that a key in it
    is whole and will be redacted."""
    try:
        message = msgspec.json.decode(response.body, type=_Refusal).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    text = "".join(each if each.isprintable() else " " for each in message)
    words = textwrap.shorten(text, MESSAGE_MAX, placeholder=" …", break_on_hyphens=False, break_long_words=False)
    return f": {words}" if words else ""


class ComparedSide(Protocol):
    """Interface of a side: a service or a file of responses. `live`: a repeated request may get a different
    response."""

    @property
    def place(self) -> str:
        """Location of the side, for display."""

    @property
    def live(self) -> bool:
        """True if repeating a request can give information."""

    async def fetch(self, request: V3Request, request_id: str) -> SideResponse:
        """Send a request and return its response; failures are responses, too."""


class JsonDocument(NamedTuple):
    """Parsed JSON body. `duplicate_keys` are the keys that are duplicated in an object; of these, the last value is
    used."""

    value: Any
    duplicate_keys: tuple[str, ...] = ()


def read_json(body: bytes) -> JsonDocument:
    """Parse a body, numbers as int or Decimal. Raises ValueError, with a description of the body, if it is not JSON."""
    try:
        return _read_fast(body) or _read_carefully(body)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(_describe_non_json(body)) from error


def _read_fast(body: bytes) -> JsonDocument | None:
    """Parse with msgspec, if that loses nothing: the value must serialize to the same bytes, without duplicate keys or
    lost digits."""
    if SPACED.search(body, 0, 500):
        return None  # whitespace: the comparison of bytes would fail anyway
    try:
        value = FAST.decode(body)
        return JsonDocument(value) if WRITER.encode(value) == body and not _is_too_deep(value) else None
    except (msgspec.DecodeError, UnicodeDecodeError, ArithmeticError, RecursionError):
        return None


def _read_carefully(body: bytes) -> JsonDocument:
    """Parse per RFC 8259 and, as old services require, with byte order marks and lone surrogates."""
    duplicate_keys: list[str] = []
    value = json.loads(
        body,
        parse_float=_decimal,
        parse_int=_integer,
        parse_constant=_no_number,
        object_pairs_hook=_pairs_hook(duplicate_keys),
    )
    if _is_too_deep(value):
        raise ValueError(TOO_DEEP)
    return JsonDocument(value, tuple(dict.fromkeys(duplicate_keys)))


def _is_too_deep(value: Any) -> bool:
    """Return true if there are more than DEPTH_MAX levels, which other functions could not walk or serialize."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        containers = [each for each in level if type(each) in (dict, list)]
        level = [each for whole in containers for each in (whole.values() if type(whole) is dict else whole)]
    return bool(level)


def _pairs_hook(duplicate_keys: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(members)
        if len(value) != len(members):
            earlier: set[str] = set()
            duplicate_keys.extend(key for key, _ in members if key in earlier or earlier.add(key))  # type: ignore[func-returns-value]
        return value

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


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} instead of a number")


def _describe_non_json(body: bytes) -> str:
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
    """Parsed body: a `document`, or the `problem` that prevented parsing. `function` is the JSONP callback; `refused`
    marks an error response, by its status or by its content."""

    document: JsonDocument = JsonDocument(None)
    problem: str | None = None
    function: str | None = None
    refused: bool = False


def read_body(request: V3Request, response: SideResponse) -> ResponseBody:
    """Parse the body of a response to a request."""
    text, function = response.body, None
    if any(request.values("callback")) and (padded := _PADDED.fullmatch(response.body)):
        function, text = padded[1].decode("utf-8", "replace"), padded[2]
    try:
        document = read_json(text)
    except ValueError as error:
        return ResponseBody(problem=str(error), function=function, refused=response.status >= 400)
    return ResponseBody(document, None, function, response.status >= 400 or _is_error_document(document.value))


def _is_error_document(value: Any) -> bool:
    """Return true for an error body whose HTTP status was suppressed."""
    return isinstance(value, dict) and value.get("__class__") in _ERRORS
