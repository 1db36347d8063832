"""Explanation of a log: what works, what loses fields, what is refused, by program; and what a month costs.

Requests are quoted on the clock of the log, for a store that is empty at first: a query that is repeated within 23.5
hours is free, and a longer one costs what is missing. The quote is what the upstream bills at most.
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from proxy import errors
from proxy.explain.request import Explained, Explainer, Verdict
from proxy.gateway.core import Client
from proxy.planning.queries import Query
from proxy.redaction import Redaction
from proxy.store.protocol import FRESH_SECONDS
from proxy.traffic import reading
from proxy.traffic.clients import NO_KEY, Clients
from proxy.traffic.v3_request import V3Request

DAY_SECONDS = 86_400.0
MONTH_DAYS = 30
_VALUE = re.compile(r"'[^']*'|=\S*")  # what requests of one kind differ in


class Program(msgspec.Struct):
    """Requests of one program, by what becomes of them, and parts that they cost at most with an empty store."""

    name: str
    works: int = 0
    loses: int = 0
    refused: int = 0
    parts: int = 0


class Kind(msgspec.Struct, frozen=True):
    """Requests of a program to an endpoint that work, or lose the same, or are refused for the same reason; one of them
    is at `place`."""

    program: str
    endpoint: str
    verdict: Verdict
    reason: str
    requests: int
    place: str


class ExplainedLog(msgspec.Struct, frozen=True):
    """Explanation of a file. Parts are those of an average day of it, and of 30; `skipped` are the entries that are no
    requests, by reason."""

    requests: int
    day_without_proxy: int
    day: int
    month_without_proxy: int
    month: int
    programs: list[Program]
    kinds: list[Kind]
    skipped: dict[str, int]


class EmptyStore:
    """Quotes queries on the clock of a log, as a store would that was empty at its beginning."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, ...], tuple[float, int]] = {}  # when a list was fetched, and how much of it

    def quote(self, client: Client, queries: Iterable[Query], at: float) -> int:
        """Return the most parts that queries cost at a time (seconds since 1970), and store their results."""
        parts, context = 0, client.application.context
        market = client.application.account, context.country, context.currency
        for asked in queries:
            query = asked
            fetched, end = self._fresh((*market, query.key), query.first, at)
            if query.start > end:  # what lies between is not paid for: a list of its own
                query = asked.as_list_of_its_own()
                fetched, end = self._fresh((*market, query.key), query.first, at)
            if query.end > end:
                parts += query.end - end
                self._stored[*market, query.key] = fetched, query.end  # as old as its oldest part
        return parts

    def _fresh(self, key: tuple[str, ...], first: int, at: float) -> tuple[float, int]:
        """Return when what is stored of a list was fetched, and its end; now and its beginning, if none is fresh."""
        fetched, end = self._stored.get(key, (at, first))
        return (fetched, end) if at - fetched < FRESH_SECONDS else (at, first)


async def explain(explainer: Explainer, file: Path) -> ExplainedLog:
    """Explain the requests of a file. Raises SourceError."""
    clients = Clients()
    skipped: reading.Skipped = {}
    requests = sorted(reading.read_requests(file, clients, skipped), key=lambda request: request.at or 0.0)
    known: dict[str, tuple[Explained, list[Query], Client]] = {}
    programs: dict[str, Program] = {}
    kinds: dict[tuple[str, ...], Kind] = {}
    store, without_proxy, redaction = EmptyStore(), 0, Redaction(clients.secrets())
    for request in requests:
        apikey = clients.key(request.client, "baseline")
        if request.id not in known:
            client = explainer.client(apikey)
            known[request.id] = *(await explainer.explain(request, client, apikey)), client
        explained, asked, client = known[request.id]
        name = _program(explainer, request, apikey, redaction)
        program = programs.setdefault(name, Program(name))
        verdict = explained.verdict
        setattr(program, verdict, getattr(program, verdict) + request.times)
        program.parts += store.quote(client, asked, request.at or 0.0)
        without_proxy += explained.parts_max * request.times
        lost = [*explained.mistakes, *explained.ignored] or [""]
        for reason in [f"{explained.status} {explained.error}"] if explained.error else lost:
            place = name, request.endpoint, verdict, _VALUE.sub("…", reason)
            kind = kinds.get(place) or Kind(name, request.endpoint, verdict, reason, 0, request.origin)
            kinds[place] = msgspec.structs.replace(kind, requests=kind.requests + request.times)
    times = [request.at for request in requests if request.at is not None] or [0.0]
    days = max(1.0, (times[-1] - times[0]) / DAY_SECONDS)
    parts = sum(program.parts for program in programs.values())
    return ExplainedLog(
        requests=sum(request.times for request in requests),
        day_without_proxy=math.ceil(without_proxy / days),
        day=math.ceil(parts / days),
        month_without_proxy=math.ceil(MONTH_DAYS * without_proxy / days),
        month=math.ceil(MONTH_DAYS * parts / days),
        programs=sorted(programs.values(), key=lambda each: -(each.works + each.loses + each.refused)),
        kinds=sorted(kinds.values(), key=lambda each: -each.requests),
        skipped={reason: count.times for reason, count in skipped.items()},
    )


def _program(explainer: Explainer, request: V3Request, apikey: str | None, redaction: Redaction) -> str:
    """Return what a program is told from others by: its API key, as the configuration or the file names it, and its
    User-Agent."""
    try:
        name = explainer.applications.client(apikey).name
    except errors.ClientError:
        name = request.client
    return f"{name} {redaction.text(request.agent)}".removeprefix(f"{NO_KEY} ").strip()
