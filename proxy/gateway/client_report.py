"""Report on clients: who still calls, how much and from which program, and which API keys are unused."""

import asyncio
import csv
import functools
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Literal, NamedTuple

import msgspec

from proxy import config
from proxy.gateway.applications import Sunset
from proxy.kit import slices
from proxy.kit.wording import rfc3339
from proxy.stores.protocols import CallerStore
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen, KeyDurations, UnsupportedUse
from proxy.telemetry.history import Counts

Verdict = Literal["breaks", "runs unchanged", "not seen"]
"""Verdict on an API key by its requests in the days of a report: with unsupported uses, without, or none at all."""


class DayUsage(msgspec.Struct, frozen=True, gc=False):
    """Requests of a day: all, those with an error response, the parts that they used, those for which nothing was sent
    upstream, and the milliseconds that one of them took on average."""

    day: str
    requests: int
    errors: int
    parts: int
    hits: int
    mean_ms: float


class UnsupportedUsage(msgspec.Struct, frozen=True):
    """Parameter that is ignored, or field without source, with the reason: how many requests named it, and when."""

    name: str
    requests: int
    first_seen: str
    last_seen: str


class CallerUsage(msgspec.Struct, frozen=True):
    """Requests of an API key to one endpoint from one program, in the days of the report; `days` are those with
    requests. Times are of all recorded days."""

    endpoint: str
    user_agent: str
    requests: int
    errors: int
    parts: int
    hits: int
    mean_ms: float
    first_seen: str
    last_seen: str
    days: list[DayUsage]


class ClientSummary(msgspec.Struct, frozen=True):
    """Usage of one API key, without its lists: see ClientUsage."""

    application: str | None
    key: str | None
    configured: bool
    sunset: str | None
    sunset_passed: bool
    expires: str | None
    expired: bool
    requests: int
    errors: int
    parts: int
    hits: int
    mean_ms: float
    p50_ms: float | None
    p95_ms: float | None
    first_seen: str | None
    last_seen: str | None
    verdict: Verdict | None

    @property
    def verdict_text(self) -> str:
        """The verdict for people; empty where there is none."""
        if self.verdict != "not seen":
            return self.verdict or ""
        return f"not seen since {self.last_seen[:10]}" if self.last_seen else "never seen"


class ClientUsage(ClientSummary, frozen=True):
    """Usage of one API key. `application` and `key` are names, null for all requests without a valid API key.

    `requests`, `errors`, `parts`, `hits` (for which nothing was sent upstream), `mean_ms`, `days` and `callers` are of
    the days of the report, as are `p50_ms` and `p95_ms`, percentiles that are interpolated within the buckets of the
    metric of durations; they are null without requests, and without a valid API key. `unsupported`, the most frequent
    first, `first_seen` and `last_seen` are of all recorded days, null for a key that was never seen. `days` has a row
    for each day, `callers` for each caller that was seen on one of them, most requests first. `configured`: the
    configuration has such a key. `sunset` is the last day of service of v3 to it, `expires` that of the key itself.
    `verdict` is null without a valid API key; fields of the default
    response do not count, as nobody knows whether a program reads them.
    """

    days: list[DayUsage]
    callers: list[CallerUsage]
    unsupported: list[UnsupportedUsage]

    @property
    def name(self) -> str:
        """Name of the client for people, as in the names of quota accounts."""
        return "(no valid API key)" if self.key is None else f"{self.application}/{self.key}"

    @property
    def user_agents(self) -> list[str]:
        """Its user agents, those with most requests first; "(none)" stands for requests without one."""
        requests: Counter[str] = Counter()
        for caller in self.callers:
            requests[caller.user_agent or "(none)"] += caller.requests
        return [name for name, _ in requests.most_common()]


class ClientReport(msgspec.Struct, frozen=True):
    """Usage of every API key from `first_day` to `last_day` (today, UTC): most requests first, then last seen first.

    `recorded_since` is the time of the first request that is recorded; null where there is none.
    """

    first_day: str
    last_day: str
    recorded_since: str | None
    clients: list[ClientUsage]


async def read(
    store: CallerStore, applications: Mapping[str, config.ApplicationSettings], days: int, now: float
) -> ClientReport:
    """Read the usage of the last `days` days: of all configured API keys, and of others that were seen."""
    today = int(now // DAY_SECONDS)
    usage = [await store.caller_usage(today - days + 1, today)]
    others = await store.unsupported_uses(), await store.durations(today - days + 1, today)
    # The thread has the only references: to free hundreds of thousands of counts takes long, too.
    return await asyncio.to_thread(lambda: _report(applications, _by_client(*usage.pop(), *others), days, now))


def _report(
    applications: Mapping[str, config.ApplicationSettings],
    calls: "Mapping[tuple[str, str], _Calls]",
    days: int,
    now: float,
) -> ClientReport:
    keys = {
        (name, key_name): (entry.sunset_of(key), key)
        for name, entry in applications.items()
        for key_name, key in entry.clients.items()
    }
    today = int(now // DAY_SECONDS)
    named_days = range(today - days + 1, today + 1)
    silent = {client: _Calls({}, [], [], []) for client in keys}
    clients = [_client(client, keys.get(client), its, named_days, now) for client, its in {**silent, **calls}.items()]
    clients.sort(key=lambda each: (each.requests, each.last_seen or ""), reverse=True)
    recorded = min((each.first for its in calls.values() for each in its.seen.values()), default=None)
    return ClientReport(*day_names(days, now), _time(recorded), clients)


class _Calls(NamedTuple):
    """What the store has of one API key."""

    seen: dict[Caller, CallerSeen]
    counts: list[CallerCount]
    unsupported: list[UnsupportedUse]
    durations: list[KeyDurations]


def _by_client(
    seen: Iterable[CallerSeen],
    counts: Iterable[CallerCount],
    unsupported: Iterable[UnsupportedUse],
    durations: Iterable[KeyDurations],
) -> defaultdict[tuple[str, str], _Calls]:
    calls: defaultdict[tuple[str, str], _Calls] = defaultdict(lambda: _Calls({}, [], [], []))
    for each in seen:
        calls[each.caller[:2]].seen[each.caller] = each
    for count in counts:
        calls[count.caller[:2]].counts.append(count)
    for use in unsupported:
        calls[use.application, use.key].unsupported.append(use)
    for duration in durations:
        calls[duration.application, duration.key].durations.append(duration)
    return calls


def _client(
    client: tuple[str, str],
    settings: tuple[config.SunsetSettings | None, config.ApiKeySettings] | None,
    calls: _Calls,
    days: range,
    now: float,
) -> ClientUsage:
    application, key = client
    configured_sunset, api_key = settings or (None, None)
    expires = api_key.expires if api_key else None
    sunset = Sunset.of(configured_sunset)
    by_day: dict[int, list[CallerCount]] = defaultdict(list)
    for count in calls.counts:
        by_day[count.day].append(count)
    requests, failed, parts, hits, mean_ms = _total(calls.counts)
    return ClientUsage(
        application=application or None,
        key=key or None,
        configured=settings is not None,
        sunset=configured_sunset.date.isoformat() if configured_sunset and configured_sunset.date else None,
        sunset_passed=sunset is not None and now >= sunset.end,
        expires=expires.isoformat() if expires else None,
        expired=expires is not None and _day(int(now // DAY_SECONDS)) > expires.isoformat(),
        requests=requests,
        errors=failed,
        parts=parts,
        hits=hits,
        mean_ms=mean_ms,
        p50_ms=_percentile(calls.durations, 0.5),
        p95_ms=_percentile(calls.durations, 0.95),
        first_seen=_time(min((each.first for each in calls.seen.values()), default=None)),
        last_seen=_time(max((each.last for each in calls.seen.values()), default=None)),
        verdict=_verdict(calls, requests, days) if key else None,
        days=[DayUsage(_day(day), *_total(by_day.get(day, ()))) for day in days],
        callers=_callers(calls),
        unsupported=[
            UnsupportedUsage(use.name, use.requests, rfc3339(use.first), rfc3339(use.last)) for use in calls.unsupported
        ],
    )


def _verdict(calls: _Calls, requests: int, days: range) -> Verdict:
    if not requests:
        return "not seen"
    # What a program has named before the days of the report, it may have been rid of since.
    is_used = any(use.last >= days[0] * DAY_SECONDS for use in calls.unsupported)
    return "breaks" if is_used else "runs unchanged"


def _callers(calls: _Calls) -> list[CallerUsage]:
    """Return the callers that were seen on the days of the report, most requests first."""
    days: dict[Caller, list[CallerCount]] = defaultdict(list)
    for count in calls.counts:
        days[count.caller].append(count)
    callers = [
        CallerUsage(
            caller.endpoint,
            caller.user_agent,
            *_total(counts),
            rfc3339(calls.seen[caller].first),
            rfc3339(calls.seen[caller].last),
            [DayUsage(_day(each.day), *_total((each,))) for each in sorted(counts)],
        )
        for caller, counts in days.items()
    ]
    return sorted(callers, key=lambda each: (-each.requests, each.endpoint, each.user_agent))


def _total(counts: Iterable[CallerCount]) -> tuple[int, int, int, int, float]:
    """Return requests, errors, parts, hits and the mean duration."""
    requests = failed = parts = hits = ms = 0
    for count in counts:
        requests += count.requests
        failed += count.errors
        parts += count.parts
        hits += count.hits
        ms += count.ms
    return requests, failed, parts, hits, round(ms / requests, 1) if requests else 0.0


def _percentile(durations: Iterable[KeyDurations], share: float) -> float | None:
    buckets = tuple(map(sum, zip(*(each.buckets for each in durations), strict=True)))
    seconds = Counts(buckets=buckets).percentile(share) if buckets else None
    return None if seconds is None else round(seconds * 1000, 1)


def day_names(days: int, now: float) -> tuple[str, str]:
    """Return the first and the last of so many days, today's last."""
    today = int(now // DAY_SECONDS)
    return _day(today - days + 1), _day(today)


@functools.lru_cache(1_000)
def _day(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


CSV_COLUMNS = (
    "application",
    "key",
    "endpoint",
    "user_agent",
    "day",
    "requests",
    "errors",
    "parts",
    "hits",
    "mean_ms",
    "key_p50_ms",
    "key_p95_ms",
    "first_seen",
    "last_seen",
)


def csv_chunks(report: ClientReport) -> Iterator[str]:
    """Yield a report as CSV (RFC 4180), some rows at a time: a row for each caller and day; for a client without
    requests one row without a day, so that it is not missed."""
    for rows in slices.sliced(_csv_rows(report)):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        yield text.getvalue()


def _csv_rows(report: ClientReport) -> Iterator[tuple[object, ...]]:
    yield CSV_COLUMNS
    for client in report.clients:
        names = (client.application or "", client.key or "")
        if not client.callers:
            yield (*names, "", "", "", 0, 0, 0, 0, 0, "", "", client.first_seen or "", client.last_seen or "")
        percentiles = client.p50_ms, client.p95_ms
        for caller in client.callers:
            for day in caller.days:
                numbers = day.requests, day.errors, day.parts, day.hits, day.mean_ms
                times = *percentiles, caller.first_seen, caller.last_seen
                yield (*names, caller.endpoint, inert(caller.user_agent), day.day, *numbers, *times)


def inert(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula: user agents are what clients send."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
