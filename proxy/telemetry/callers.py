"""Callers, counted in this process until they are written to the store: who still calls, and what they lose.

Texts of clients are bounded: of an API key and day only so many callers are counted separately, so that a program that
sends a new User-Agent with each request fills neither the memory nor the store.
"""

from collections import defaultdict
from typing import NamedTuple

import cachetools

from proxy.kit.wording import printable
from proxy.model import GRAPHQL_PATHS, WRAPPER
from proxy.redaction import Redaction
from proxy.v3.endpoints import ENDPOINTS, PREFIXES

DAY_SECONDS = 86_400
OTHERS = "(others)"  # the user agent of callers beyond the limits
CALLERS_MAX = 100  # of an API key and day, in one process
UNKNOWN_MAX = 20  # the same without a valid API key: such requests need no credentials
PENDING_MAX = 10_000  # counts that wait for a store that is unavailable
TEXT_MAX = 200  # characters of a User-Agent, and of the unsupported uses of a request
# Of API keys that no application has. Anybody can send any number of them, so that none is kept for long.
KEYS_MAX = 500  # in the store, and in one process until they are written; the oldest go
ADDRESS_KEYS_MAX = 20  # of one address in the store: one program that guesses does not replace those of others

# Refusals for want of a valid API key; the last is that of an address that sent too many wrong ones.
_KEY_ERRORS = frozenset({"ForbiddenKey", "MissingKey", "TooManyRequests"})
_ENDPOINTS = {
    f"{prefix}{endpoint.path}{slash}": endpoint.path.removeprefix("/")
    for endpoint in ENDPOINTS
    for prefix in PREFIXES
    for slash in ("", "/")
} | {f"{path}{slash}": path[1:] for path in (*GRAPHQL_PATHS, WRAPPER) for slash in ("", "/")}


class Caller(NamedTuple):
    """API key, named by its application and its own name, with an endpoint such as `parts/match`, a User-Agent, and the
    parameters that were ignored and fields that had no source, between commas.

    Both names are empty where the API key is missing or unknown; the user agent is empty where none was sent.
    """

    application: str
    key: str
    endpoint: str
    user_agent: str
    unsupported: str


class CallerCount(NamedTuple):
    """Requests of a caller on one day (in days since 1970, UTC), and the time of the last one in seconds since 1970."""

    day: int
    caller: Caller
    requests: int
    last: int


class UnknownKey(NamedTuple):
    """API key that no application has: its SHA-256 in hex digits, the address and the User-Agent of its last request,
    the times of the first and the last one in seconds since 1970, and how many were refused."""

    digest: str
    address: str
    user_agent: str
    first: int
    last: int
    requests: int


class CallerCounts:
    """Counts of this process that are not in the store yet. `keys` hides API keys in texts of clients."""

    def __init__(self, keys: Redaction | None = None) -> None:
        self._redaction = keys or Redaction()
        self._counts: dict[tuple[int, Caller], tuple[int, int]] = {}  # requests, time of the last one
        self._day = 0
        self._callers: dict[tuple[str, str], set[Caller]] = defaultdict(set)  # of the day
        self._shown: cachetools.LRUCache[str, str] = cachetools.LRUCache(1_000)
        self._unknown: dict[str, UnknownKey] = {}

    def add(
        self,
        at: float,
        route: str,
        user_agent: str,
        *,
        application: str | None,
        key: str | None,
        target: str = "",
        unsupported: tuple[str, ...] = (),
        error: str | None = None,
    ) -> None:
        """Count a request. One that was refused before its API key was read has no caller. API keys in `target` are
        hidden, whether an application has them or not."""
        endpoint = _ENDPOINTS.get(route)
        if endpoint is None or (key is None and error not in _KEY_ERRORS):
            return
        hidden = self._redaction.including(target) if unsupported or key is None else None
        uses = _shown(hidden, ", ".join(unsupported)) if hidden and unsupported else ""
        agent = self._agent(user_agent) if key is not None or hidden is None else _shown(hidden, user_agent)
        caller = Caller(application or "", key or "", endpoint, agent, uses)
        place = int(at // DAY_SECONDS), caller
        counted = self._counts.get(place)
        if counted is None:
            place = self._bounded(*place)
            counted = self._counts.get(place, (0, 0))
        self._counts[place] = counted[0] + 1, max(counted[1], int(at))

    def add_unknown(self, apikey: str, digest: str, address: str, user_agent: str, at: float) -> None:
        """Count a request with an API key that no application has. Of the key itself nothing is kept."""
        known, second = self._unknown.get(digest), int(at)
        if known is not None:
            # The User-Agent stays: to hide keys in each would take longer than the refusal.
            first, last = min(known.first, second), max(known.last, second)
            known = known._replace(address=address, first=first, last=last, requests=known.requests + 1)
        elif len(self._unknown) < KEYS_MAX:
            agent = _shown(self._redaction.hiding({apikey}), user_agent)
            known = UnknownKey(digest, address, agent, second, second, 1)
        else:
            return  # a flood: the requests are among those without a valid API key
        self._unknown[digest] = known

    def take(self) -> tuple[list[CallerCount], list[UnknownKey]]:
        """Return all counts and the unknown API keys, and begin again with none."""
        counts, self._counts = self._counts, {}
        unknown, self._unknown = self._unknown, {}
        return [CallerCount(*place, *counted) for place, counted in counts.items()], list(unknown.values())

    def _agent(self, sent: str) -> str:
        """Return a User-Agent as it is shown. The same few are sent again and again."""
        shown = self._shown.get(sent)
        if shown is None:
            shown = self._shown[sent] = _shown(self._redaction, sent)
        return shown

    def _bounded(self, day: int, caller: Caller) -> tuple[int, Caller]:
        """Return what a caller that has no count yet is counted as."""
        if day != self._day:
            self._day = day
            self._callers.clear()
        callers = self._callers[caller.application, caller.key]
        limit = CALLERS_MAX if caller.key else UNKNOWN_MAX
        if caller not in callers and (len(callers) >= limit or len(self._counts) >= PENDING_MAX):
            return day, caller._replace(user_agent=OTHERS, unsupported="")
        callers.add(caller)
        return day, caller


def _shown(redaction: Redaction, sent: str) -> str:
    """Return a text without API keys and control characters, shortened."""
    return printable(redaction.text(sent))[:TEXT_MAX]
