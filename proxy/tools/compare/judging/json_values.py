"""JSON of responses: numbers retain all digits, values are equal to the last of them, and texts that spell the same
number have the same key.

Python's == treats True and 1, and 1 and 1.0, as equal; clients in other languages do not. Nothing here depends on field
names: callers decide which texts are names.
"""

import json
import re
from collections.abc import Hashable
from decimal import Decimal
from typing import Any, NamedTuple

from proxy.traffic.recordings import SideResponse

CUT = "JSON that is cut or broken"


class Body(NamedTuple):
    """Parsed body of a response: its JSON `value`, or the `problem` that prevented parsing."""

    status: int
    value: Any = None
    problem: str | None = None


def parse(response: SideResponse) -> Body:
    """Parse the body of a response."""
    try:
        return Body(response.status, read(response.body))
    except ValueError as error:
        return Body(response.status, problem=str(error))


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} instead of a number")


def read(body: bytes) -> Any:
    """Parse a body per RFC 8259 and, as old services require, with byte order marks and lone surrogates; numbers as int
    or Decimal. Raises ValueError, with a description of the body, if it is not JSON."""
    try:
        return json.loads(
            body,
            parse_float=Decimal,
            parse_int=lambda text: Decimal(text) if text == "-0" else int(text),
            parse_constant=_refuse,
        )
    except RecursionError as error:
        raise ValueError("JSON that is nested too deeply") from error
    except ArithmeticError as error:
        raise ValueError("a number beyond all bounds") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        start = body.lstrip()[:1]
        known = {b"": "an empty body", b"<": "HTML instead of JSON", b"{": CUT, b"[": CUT}
        raise ValueError(known.get(start, "something that is no JSON")) from error


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
    if type(value) is dict:
        return f"{{{','.join(f'{key!r}:{canonical(value[key])}' for key in sorted(value))}}}"
    return f"[{','.join(map(canonical, value))}]" if type(value) is list else repr(value)


# JSON's number syntax without exponents: 0402 is a package size, and 1e10 may be a uid.
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,60})(?:\.\d{1,60})?", re.ASCII)


def spelling_key(text: str) -> Hashable:
    """Return a key that is equal for all spellings of a number; other texts are their own key."""
    return Decimal(text) if NUMBER.fullmatch(text) else text
