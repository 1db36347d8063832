"""Callers, counted in this process until they are written to the store: who still calls, and how much.

Requests are counted in batches: to keep one for later is all that is on its way. Texts of clients are bounded:
of an API key and day only so many callers are counted separately, so that a program that sends a new User-Agent with
each request fills neither the memory nor the store. Beside them the requests of each API key are counted by month,
and their unsupported uses.
"""

import time
from bisect import bisect_left
from collections import defaultdict
from typing import NamedTuple

import msgspec

from proxy.model import GRAPHQL_PATHS, WRAPPER
from proxy.redaction import Redaction
from proxy.telemetry.activity import RequestValues, shown, shown_names
from proxy.telemetry.metrics import SECONDS
from proxy.v3.endpoints import ENDPOINTS, PREFIXES

DAY_SECONDS = 86_400
OTHERS = "(others)"  # the user agent of callers beyond the limits
CALLERS_MAX = 100  # of an API key and day, in one process
UNKNOWN_MAX = 20  # the same without a valid API key: such requests need no credentials
BOUNDS_MS = tuple(seconds * 1000 for seconds in SECONDS)  # of durations
BATCH = 256  # requests that are counted together
TEXT_MAX = 8_192  # characters of targets with unsupported uses in a batch: hiding API keys in them takes milliseconds
UNSUPPORTED_MAX = 200  # names of an API key that are counted separately, in one process
PENDING_MAX = 10_000  # counts that wait for a store that is unavailable
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
    """API key, named by its application and its own name, with an endpoint such as `parts/match` and a User-Agent.

    Both names are empty where the API key is missing or unknown; the user agent is empty where none was sent.
    """

    application: str
    key: str
    endpoint: str
    user_agent: str


class CallerCount(msgspec.Struct, frozen=True, order=True, gc=False):
    """Requests of a caller on one day (in days since 1970, UTC): all, those with an error response; their parts; those
    for which nothing was sent upstream, and the milliseconds that all of them took.

    The garbage collector does not look at them: a report has hundreds of thousands, which would stop the event loop.
    """

    day: int
    caller: Caller
    requests: int
    errors: int
    parts: int
    hits: int = 0
    ms: int = 0

    def plus(self, *counts: int) -> "CallerCount":
        """Add to the counts, in their order."""
        own = self.requests, self.errors, self.parts, self.hits, self.ms
        return CallerCount(self.day, self.caller, *map(sum, zip(own, counts, strict=True)))


class MonthlyRequests(NamedTuple):
    """Requests of an API key in one month (such as 2026-11, UTC): all, and `hits`, for which nothing was sent upstream.

    `cached` and `coalesced` are parts that were in its responses and not billed: those of a cache, and those that an
    equal query in flight has brought.
    """

    month: str
    application: str
    key: str
    requests: int
    hits: int
    cached: int
    coalesced: int


class KeyDurations(NamedTuple):
    """Requests of an API key on one day (in days since 1970, UTC) by their duration: the buckets of the metric
    (SECONDS), the last one above all bounds."""

    day: int
    application: str
    key: str
    buckets: tuple[int, ...]


class UnsupportedUse(NamedTuple):
    """Parameter that is ignored, or field without source, with the reason: how many requests of an API key named it,
    and the times of the first and the last one in seconds since 1970."""

    application: str
    key: str
    name: str
    requests: int
    first: int
    last: int


class CallerSeen(NamedTuple):
    """Times of the first and the last request of a caller, in whole seconds since 1970."""

    caller: Caller
    first: int
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


class _Tally:
    """Counts of one caller on one day."""

    __slots__ = ("errors", "first", "hits", "last", "ms", "parts", "requests")

    def __init__(self, at: float) -> None:
        self.requests = self.errors = self.parts = self.hits = 0
        self.ms = 0.0
        self.first = self.last = at


class _Avoided:
    """Requests of an API key on one day."""

    __slots__ = ("cached", "coalesced", "hits", "requests")

    def __init__(self) -> None:
        self.requests = self.hits = self.cached = self.coalesced = 0


_Key = tuple[float, str | None, str | None, str, str]  # day, application, API key, route or endpoint, user agent


def _no_durations() -> defaultdict[tuple[float, str | None, str], list[int]]:
    return defaultdict(lambda: [0] * (len(BOUNDS_MS) + 1))


class CallerCounts:
    """Counts of this process that are not in the store yet. `keys` hides API keys in User-Agents."""

    def __init__(self, keys: Redaction | None = None) -> None:
        self._redaction = keys or Redaction()
        self._uncounted: list[RequestValues] = []
        self._text = 0  # characters of targets with unsupported uses among them
        self._tallies: dict[_Key, _Tally] = {}
        self._avoided: dict[tuple[float, str | None, str], _Avoided] = {}
        self._durations = _no_durations()
        self._day = 0.0
        self._callers: dict[tuple[str | None, str | None], set[tuple[str, str]]] = defaultdict(set)
        self._unknown: dict[str, UnknownKey] = {}
        self._unsupported: dict[tuple[str, str, str], UnsupportedUse] = {}
        self._names: dict[tuple[str, str], set[str]] = defaultdict(set)  # of one day
        self._shown: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}  # of one batch

    def add(self, record: RequestValues) -> None:
        # Counted in batches: a loop over many takes a fifth of the time that each would take on the way of its request.
        self._uncounted.append(record)
        if record[-1]:
            self._text += len(record[3])
        if len(self._uncounted) >= BATCH or self._text > TEXT_MAX:
            self._count_all()

    def _count_all(self) -> None:
        records, self._uncounted, self._text = self._uncounted, [], 0
        agents: dict[str, str] = {}  # as sent, and as shown: few of many requests differ
        self._shown = {}
        for record in records:
            self._count(record, agents)

    def _count(self, record: RequestValues, agents: dict[str, str]) -> None:
        at, _, _, target, route, status, ms, _, sent_agent, application, name, parts, cache, error, _, _, _ = record
        day = at // DAY_SECONDS
        if name is not None:
            self._count_key(day, name, record)
        user_agent = agents.get(sent_agent)
        if user_agent is None:
            user_agent = agents[sent_agent] = shown(self._redaction, target, sent_agent)[1]
        key = (day, application, name, route, user_agent)
        tally = self._tallies.get(key) or self._open(key, at, error)
        if tally is None:
            return
        tally.requests += 1
        # Both: the clock may be set back.
        if at > tally.last:
            tally.last = at
        elif at < tally.first:
            tally.first = at
        if error is not None or status >= 400:
            tally.errors += 1
        if parts:
            tally.parts += parts
        if cache == "hit":
            tally.hits += 1
        tally.ms += ms
        if name is not None:
            self._durations[day, application, name][bisect_left(BOUNDS_MS, ms)] += 1

    def _count_key(self, day: float, key: str, record: RequestValues) -> None:
        """Count a request of an API key, what it avoided, and its unsupported uses."""
        at, _, _, target, _, _, _, _, _, application, _, _, cache, _, cached, coalesced, unsupported = record
        avoided = self._avoided.get((day, application, key))
        if avoided is None:
            avoided = self._avoided[day, application, key] = _Avoided()
        avoided.requests += 1
        if cache == "hit":
            avoided.hits += 1
        avoided.cached += cached
        avoided.coalesced += coalesced
        if unsupported:
            names = self._shown.get((target, unsupported))
            if names is None:
                names = self._shown[target, unsupported] = shown_names(self._redaction, target, unsupported)
            self._add_unsupported(application or "", key, names, int(at))

    def _add_unsupported(self, application: str, key: str, names: tuple[str, ...], at: int) -> None:
        known = self._names[application, key]
        for name in names:
            # Filters that v3 never had can be any text.
            if name not in known and len(known) < UNSUPPORTED_MAX:
                known.add(name)
            place = application, key, name if name in known else OTHERS
            use = self._unsupported.get(place) or UnsupportedUse(*place, 0, at, at)
            first, last = min(use.first, at), max(use.last, at)
            self._unsupported[place] = use._replace(requests=use.requests + 1, first=first, last=last)

    def take_unsupported(self) -> list[UnsupportedUse]:
        """Return the unsupported uses, and begin again with none."""
        self._count_all()
        unsupported, self._unsupported = self._unsupported, {}
        return list(unsupported.values())

    def add_unknown(self, apikey: str, digest: str, address: str, user_agent: str, at: float) -> None:
        """Count a request with an API key that no application has. Of the key itself nothing is kept."""
        known, second = self._unknown.get(digest), int(at)
        if known is not None:
            # The User-Agent stays: to hide keys in each would take longer than the refusal.
            first, last = min(known.first, second), max(known.last, second)
            known = known._replace(address=address, first=first, last=last, requests=known.requests + 1)
        elif len(self._unknown) < KEYS_MAX:
            agent = shown(self._redaction.hiding({apikey}), "", user_agent)[1]
            known = UnknownKey(digest, address, agent, second, second, 1)
        else:
            return  # a flood: the requests are among those without a valid API key
        self._unknown[digest] = known

    def take_unknown(self) -> list[UnknownKey]:
        """Return the unknown API keys, and begin again with none."""
        unknown, self._unknown = self._unknown, {}
        return list(unknown.values())

    def take(self) -> tuple[list[CallerSeen], list[CallerCount]]:
        """Return all counts, and begin again from zero."""
        self._count_all()
        tallies, self._tallies = self._tallies, {}
        seen: dict[Caller, CallerSeen] = {}
        counts: dict[tuple[int, Caller], CallerCount] = {}
        for (day, application, key, route, user_agent), tally in tallies.items():
            # Several routes are one endpoint: with either prefix, with and without a trailing slash.
            caller = Caller(application or "", key or "", _ENDPOINTS[route], user_agent)
            first, last = int(tally.first), int(tally.last)
            _, earlier, later = seen.get(caller, (caller, first, last))
            seen[caller] = CallerSeen(caller, min(earlier, first), max(later, last))
            place = int(day), caller
            count = counts.get(place) or CallerCount(*place, 0, 0, 0)
            counts[place] = count.plus(tally.requests, tally.errors, tally.parts, tally.hits, round(tally.ms))
        return list(seen.values()), list(counts.values())

    def take_durations(self) -> list[KeyDurations]:
        """Return the durations by API key and day, and begin again with none."""
        self._count_all()
        durations, self._durations = self._durations, _no_durations()
        return [
            KeyDurations(int(day), application or "", key, tuple(buckets))
            for (day, application, key), buckets in durations.items()
        ]

    def take_months(self) -> list[MonthlyRequests]:
        """Return the requests by month, and begin again from zero."""
        self._count_all()
        avoided, self._avoided = self._avoided, {}
        months: dict[tuple[str, str, str], MonthlyRequests] = {}
        for (day, application, key), each in avoided.items():
            place = time.strftime("%Y-%m", time.gmtime(day * DAY_SECONDS)), application or "", key
            _, _, _, *before = months.get(place, (*place, 0, 0, 0, 0))
            added = each.requests, each.hits, each.cached, each.coalesced
            months[place] = MonthlyRequests(*place, *map(sum, zip(before, added, strict=True)))
        return list(months.values())

    def _open(self, key: _Key, at: float, error: str | None) -> _Tally | None:
        """Return the tally of a caller that has none yet; None for a request that is not counted, such as one that
        was refused before its API key was read."""
        day, application, name, route, user_agent = key
        if route not in _ENDPOINTS or (name is None and error not in _KEY_ERRORS):
            return None
        if day != self._day:
            self._day = day
            self._callers.clear()
            self._names.clear()
        callers = self._callers[application, name]
        limit = UNKNOWN_MAX if name is None else CALLERS_MAX
        if (route, user_agent) not in callers:
            if len(callers) >= limit or len(self._tallies) >= PENDING_MAX:
                key = (day, application, name, route, OTHERS)
            else:
                callers.add((route, user_agent))
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally(at)
        return tally
