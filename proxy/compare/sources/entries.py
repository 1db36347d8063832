"""Entries that readers yield, before they are known to be v3 requests."""

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import NamedTuple

_LINE = re.compile(r"([A-Z]{2,10}) (\S.*?)(?: HTTP/\d(?:\.\d)?)?")


class RequestEntry(NamedTuple):
    """One request. `place` is where it stands: a line's number, or words; `at` is seconds since 1970.

    `key` is an apikey that stands beside the target, `client` a name that is known without one, `agent` the
    program that sent it, where the file says so.
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
    """What should have been a request. The reason holds nothing of it."""

    place: int | str
    reason: str


class Skipped(NamedTuple):
    """What is left out on purpose."""

    place: int | str
    reason: str


Item = RequestEntry | Unreadable | Skipped
Reader = Callable[[BufferedReader], Iterator[Item]]


def request_line(text: str) -> tuple[str, str]:
    """Method and target of `GET /v3/… HTTP/1.1`, `GET /v3/…` or `/v3/…`; blanks in the target stay."""
    found = _LINE.fullmatch(text)
    return (found[1], found[2]) if found else ("GET", text)
