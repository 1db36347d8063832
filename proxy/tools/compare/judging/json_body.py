"""JSON of a response. Numbers retain all digits."""

import json
from decimal import Decimal
from typing import Any, NamedTuple

from proxy.traffic.recordings import SideResponse

TOO_DEEP = "JSON that is nested too deeply"


class Body(NamedTuple):
    """Parsed body: its JSON `value`, or the `problem` that prevented parsing."""

    value: Any = None
    problem: str | None = None


def parse(response: SideResponse) -> Body:
    """Parse the body of a response."""
    try:
        return Body(read(response.body))
    except ValueError as error:
        return Body(problem=str(error))


def read(body: bytes) -> Any:
    """Parse a body per RFC 8259 and, as old services require, with byte order marks and lone surrogates; numbers as int
    or Decimal. Raises ValueError, with a description of the body, if it is not JSON."""
    try:
        return json.loads(body, parse_float=_decimal, parse_int=_integer, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(_describe_non_json(body)) from error


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError as error:
        raise ValueError("a number beyond all bounds") from error


def _integer(text: str) -> int | Decimal:
    return Decimal(text) if text == "-0" else int(text)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} instead of a number")


def _describe_non_json(body: bytes) -> str:
    start = body.lstrip()[:1]
    known = {b"": "an empty body", b"<": "HTML instead of JSON"}
    return known.get(start, "JSON that is cut or broken" if start in (b"{", b"[") else "something that is no JSON")
