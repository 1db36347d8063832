"""What one side said to one call, read or not to be read. Numbers keep every digit; keys that stand twice are seen."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec

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


class Document(NamedTuple):
    """A body read as JSON. `twice` are the keys that stand twice in one object; the last one counts."""

    value: Any
    twice: tuple[str, ...] = ()


def read(body: bytes) -> Document:
    """The JSON of a body, its numbers as int or Decimal. Raises ValueError for what is none, in plain words."""
    twice: list[str] = []
    try:
        value = json.loads(body, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_noting(twice))
    except RecursionError as error:
        raise ValueError("JSON that is nested too deeply") from error
    except ValueError as error:
        raise ValueError(_what(body)) from error
    return Document(value, tuple(dict.fromkeys(twice)))


def _noting(twice: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) != len(found):
            seen: set[str] = set()
            twice.extend(key for key, _ in found if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    return pairs


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


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
