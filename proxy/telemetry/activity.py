"""Recent activity of this process: the last v3 requests, for the admin interface. Held in memory, without API keys.

To record is to append a tuple: it is on the way of every request. Who called is counted from the same records
(callers.py).
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

REQUESTS_MAX = 200  # last requests that are held
TARGET_MAX = 4_096  # characters of a request target that are held
USER_AGENT_MAX = 200  # characters


class RequestRecord(NamedTuple):
    """A v3 request that was responded to. `at` is in seconds since 1970, `ms` the duration.

    `target` is the path with the query, without the value of `apikey`; cut at TARGET_MAX. `application` and `key` are
    names, None without a valid API key. `parts` were billed, `cache` is where the results came from; `error` is the
    type of the error that the response reports.
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
    application: str | None = None
    key: str | None = None
    parts: int | None = None
    cache: str | None = None
    error: str | None = None


def shown_user_agent(value: str) -> str:
    """Return a User-Agent as text that can be stored and shown: cut, without control characters and surrogates."""
    cut = value[:USER_AGENT_MAX]
    return cut if cut.isascii() and cut.isprintable() else "".join(each if each.isprintable() else "�" for each in cut)


class Activity:
    """What this process did recently. `count` is called with each request, too."""

    def __init__(self, count: Callable[[RequestRecord], None] = lambda _: None) -> None:
        self.requests: deque[RequestRecord] = deque(maxlen=REQUESTS_MAX)
        self._count = count

    def add_request(self, record: RequestRecord) -> None:
        """Add a request that was responded to."""
        self.requests.append(record)
        self._count(record)
