"""Entries that readers yield, before they are parsed as v3 requests."""

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import NamedTuple

_LINE = re.compile(r"([A-Z]{2,10}) (\S.*?)(?: HTTP/\d(?:\.\d)?)?")


class RequestEntry(NamedTuple):
    """Request in a source. `place` is a line's number or a description; `at` is in seconds since 1970.

    `key` is an apikey outside the target, `client` a name from a source without keys, `agent` the User-Agent, where the
    file has one.
    """

    place: int | str
    target: str
    method: str = "GET"
    at: float | None = None
    key: str | None = None
    client: str | None = None
    times: int = 1
    agent: str | None = None


class Unreadable(NamedTuple):
    """Entry that cannot be read. The reason quotes nothing of it."""

    place: int | str
    reason: str


class Skipped(NamedTuple):
    """Entry that is left out on purpose."""

    place: int | str
    reason: str


Item = RequestEntry | Unreadable | Skipped
Reader = Callable[[BufferedReader], Iterator[Item]]


def request_line(text: str) -> tuple[str, str]:
    """Split `GET /v3/… HTTP/1.1`, `GET /v3/…` or `/v3/…` into method and target; spaces in the target are retained."""
    found = _LINE.fullmatch(text)
    return (found[1], found[2]) if found else ("GET", text)
