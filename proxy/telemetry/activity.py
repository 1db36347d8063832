"""Requests as they are counted: the values of each, and its texts without API keys."""

from collections.abc import Callable, Iterable

import msgspec

from proxy import redaction

TARGET_MAX = 4_096  # characters of a request target that are shown
HELD_MAX = 2 * TARGET_MAX  # that are held: an API key that the end cuts in half is not shown
USER_AGENT_MAX = 200  # characters
NAME_MAX = 120  # characters of an unsupported use

RequestValues = tuple[
    float,
    str,
    str,
    str,
    str,
    int,
    float,
    str,
    str,
    str | None,
    str | None,
    int | None,
    str | None,
    str | None,
    int,
    int,
    tuple[str, ...],
]
"""Time (seconds since 1970), id, method, target, route, status, milliseconds, address, User-Agent, application, API
key, parts, cache, error, parts that were cached and coalesced, unsupported uses."""


class RequestRecord(msgspec.Struct, frozen=True, array_like=True):
    """A v3 request that was responded to. `at` is in seconds since 1970, `ms` the duration.

    `target` is the path with the query, without API keys; cut at TARGET_MAX. `application` and `key` are
    names, None without a valid API key. `parts` were billed, `cache` is where the results came from; `error` is the
    type of the error that the response reports. `cached_parts` and `coalesced_parts` were not billed: they were cached,
    or an equal query in flight has brought them. `unsupported` are parameters that the response ignores, and fields
    without source that the request names, with the reason.
    """

    at: float
    id: str
    method: str
    target: str
    route: str
    status: int
    ms: float
    address: str
    user_agent: str
    application: str | None
    key: str | None
    parts: int | None
    cache: str | None
    error: str | None
    cached_parts: int = 0
    coalesced_parts: int = 0
    unsupported: tuple[str, ...] = ()


def held_target(target: str) -> str:
    """Return a request target as it is held until it is read: a long one cut, with the API key behind the cut, so
    that the key is also found in what is left."""
    if len(target) <= HELD_MAX:
        return target
    cut = target[:HELD_MAX]
    _, name, key = target[HELD_MAX:].rpartition("apikey=")
    return f"{cut}&{name}{key.partition('&')[0]}" if name else cut


def shown(keys: redaction.Redaction, target: str, user_agent: str) -> tuple[str, str]:
    """Return the target and the User-Agent of a request as text that can be stored and shown: without API keys, cut;
    the User-Agent without control characters and surrogates."""
    target, agent = keys.request(target, user_agent, TARGET_MAX)
    return target, _printable(agent[:USER_AGENT_MAX])


def shown_names(keys: redaction.Redaction, target: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return unsupported uses as texts that can be stored and shown: they may hold any text of a client."""
    hidden = keys.including(target)
    return tuple(_printable(hidden.text(name)[:NAME_MAX]) for name in names)


def _printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each.isprintable() else "�" for each in text)


class Activity:
    """`on_request` gets the values of each request, such as to count it."""

    def __init__(self) -> None:
        self.on_request: Callable[[RequestValues], None] | None = None

    def add_request(self, record: RequestValues) -> None:
        if self.on_request is not None:
            self.on_request(record)
