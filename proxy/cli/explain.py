"""`v3bridge explain`: what becomes of the requests of a log, by program, and what a month costs; or of one request.

Sends nothing. Requests of a log are quoted on its clock, for a store that is empty at first: the quote is what the
upstream bills at most.
"""

import asyncio
import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import msgspec
import typer

from proxy import config, errors
from proxy.cli import commands
from proxy.explain import Explained, Explainer, Verdict
from proxy.gateway import Client
from proxy.kit import counted
from proxy.mapping import compiler
from proxy.planning.queries import Query
from proxy.redaction import Redaction
from proxy.store.protocol import FRESH_SECONDS
from proxy.traffic import logs, reading
from proxy.traffic.v3_request import NO_KEY, Clients, V3Request, parse_target
from proxy.v3 import endpoints

NO_REQUEST = "is neither a file nor a request of v3: give a log, a URL, or a path such as /v3/parts/match?queries=…"
TODO = {
    "refused": "refused: change the program, as the message says",
    "loses": "loses fields or parameters: see whether the program minds",
    "works": "works: nothing to do",
}
DAY_SECONDS = 86_400.0
MONTH_DAYS = 30
Stored = dict[tuple[str, ...], tuple[float, int]]  # by list: when it was fetched, and how much of it
_VALUE = re.compile(r"'[^']*'|=\S*")  # what requests of one kind differ in


class Program(msgspec.Struct):
    """Requests of one program, by what becomes of them, and parts that they cost at most with an empty store."""

    name: str
    works: int = 0
    loses: int = 0
    refused: int = 0
    parts: int = 0


class Kind(msgspec.Struct):
    """Requests of a program to an endpoint with the same outcome for the same reason; one of them is at `place`."""

    program: str
    endpoint: str
    verdict: Verdict
    reason: str
    requests: int
    place: str


class ExplainedLog(msgspec.Struct, frozen=True):
    """Explanation of a file. Parts are those of its average day, and of 30; `skipped` are the others, by reason."""

    requests: int
    day_without_proxy: int
    day: int
    month_without_proxy: int
    month: int
    programs: list[Program]
    kinds: list[Kind]
    skipped: dict[str, int]


def explain(
    given: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help="A file of requests: access log, HAR, JSON lines, URLs; or one URL."),
    ] = None,
    config_file: commands.ConfigFile = None,
    as_json: commands.AsJson = False,
    source: Annotated[
        str | None,
        typer.Option(metavar="OBJECT", help="Instead: print the compiled mapping of a v3 object, such as Part."),
    ] = None,
) -> None:
    """Show which requests of a log work, lose fields or are refused, and what a month costs; or explain one URL.

    The exit code is 1 if a request is refused.
    """
    if (given is None) == (source is None):
        raise typer.BadParameter("give a file, a URL, or --source OBJECT", param_hint="INPUT")
    explainer = Explainer(commands.configured(config_file))
    if given is None:
        if source not in explainer.mappings.rules:
            known = ", ".join(sorted(explainer.mappings.rules))
            raise typer.BadParameter(f"no mapping describes {source!r}; there are {known}", param_hint="--source")
        typer.echo(compiler.source_of(explainer.mappings, config.FEATURES, source), nl=False)
        return
    if os.path.exists(given):
        in_file = asyncio.run(_explain_log(explainer, Path(given)))
        commands.print_result(in_file, _lines_of_log(in_file), as_json)
        raise typer.Exit(int(any(each.refused for each in in_file.programs)))
    one = asyncio.run(_explain_url(explainer, given.strip("\"'<> ")))
    commands.print_result(one, _lines(one), as_json)
    raise typer.Exit(int(one.verdict == "refused"))


async def _explain_url(explainer: Explainer, text: str) -> Explained:
    """Explain a URL, a path, or a request line. Raises SourceError for a text that may be a file that is not there."""
    method, target = logs.request_line(text)
    try:
        path, query, apikey = parse_target(target)
    except ValueError:
        path = target.partition("?")[0]
        if "://" in path:
            path = f"/{path.partition('://')[2].partition('/')[2]}"
        if not path.startswith(endpoints.PREFIXES):
            raise errors.SourceError(f"{explainer.redaction.text(path)} {NO_REQUEST}") from None
        # The path, which may hold an API key, is not repeated.
        return Explained(request="", status=404, error=endpoints.no_such_path(path))
    request = V3Request(path, query)
    return (await explainer.explain(request, explainer.client(apikey), apikey, method))[0]


async def _explain_log(explainer: Explainer, file: Path) -> ExplainedLog:
    """Explain the requests of a file. Raises SourceError."""
    clients = Clients()
    skipped: reading.Skipped = {}
    requests = sorted(reading.read_requests(file, clients, skipped), key=lambda request: request.at or 0.0)
    known: dict[str, tuple[Explained, list[Query], Client]] = {}
    programs: dict[str, Program] = {}
    kinds: dict[tuple[str, ...], Kind] = {}
    stored: Stored = {}
    without_proxy, redaction = 0, Redaction(clients.secrets())
    for request in requests:
        apikey = clients.key(request.client, "baseline")
        if request.id not in known:
            client = explainer.client(apikey)
            known[request.id] = *(await explainer.explain(request, client, apikey)), client
        explained, asked, client = known[request.id]
        try:  # an API key as the configuration names it, or the file
            name = explainer.applications.client(apikey).name
        except errors.ClientError:
            name = request.client
        name = f"{name} {redaction.text(request.agent)}".removeprefix(f"{NO_KEY} ").strip()
        program = programs.setdefault(name, Program(name))
        verdict = explained.verdict
        setattr(program, verdict, getattr(program, verdict) + request.times)
        program.parts += _quote(stored, client, asked, request.at or 0.0)
        without_proxy += explained.parts_max * request.times
        lost = [*explained.mistakes, *explained.ignored] or [""]
        for reason in [f"{explained.status} {explained.error}"] if explained.error else lost:
            place = name, request.endpoint, verdict, _VALUE.sub("…", reason)
            kind = kinds.setdefault(place, Kind(name, request.endpoint, verdict, reason, 0, request.origin))
            kind.requests += request.times
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


def _quote(stored: Stored, client: Client, queries: Iterable[Query], at: float) -> int:
    """Return the most parts that queries cost at a time (seconds since 1970), and store their results."""
    parts, context = 0, client.application.context
    market = client.application.account, context.country, context.currency
    for asked in queries:
        # What lies between what is stored and what is asked is not paid for: then it is a list of its own.
        for query in (asked, asked.as_list_of_its_own()):
            fetched, end = stored.get((*market, query.key), (at, query.first))
            if at - fetched >= FRESH_SECONDS:
                fetched, end = at, query.first
            if query.start <= end:
                break
        if query.end > end:
            parts += query.end - end
            stored[*market, query.key] = fetched, query.end  # as old as its oldest part
    return parts


def _lines(explained: Explained) -> Iterator[commands.Line]:
    # Decoded: a JSON list of queries is unreadable otherwise.
    yield unquote(explained.request) or "(a path that v3 never had)"
    if explained.error:
        yield f"refused with {explained.status}: {explained.error}"
        yield "Nothing is sent, and nothing is paid."
        return
    yield f"{explained.endpoint}, executed as {explained.client}"
    yield from (f"a query is refused: {mistake}" for mistake in explained.mistakes)
    for operation in explained.operations:
        yield f"sends {operation.name}, up to {counted(operation.parts_max, 'part')}, with"
        yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in operation.variables.items())
    yield from (f"sends {name}, free of charge, unless it did so before" for name in explained.free)
    likely = "" if explained.parts_likely == explained.parts_max else f", likely {explained.parts_likely:,}"
    free = "; free while it is stored, for 23.5 hours" if explained.parts_max else ""
    yield f"At most {counted(explained.parts_max, 'part')}{likely}{free}."
    yield from (f"ignored: {each}" for each in explained.ignored)
    yield from (f"ignored, as v3 did: {each}" for each in explained.unknown)
    yield from (f"empty: {each}" for each in explained.sourceless)


def _lines_of_log(explained: ExplainedLog) -> Iterator[commands.Line]:
    programs = explained.programs
    works, loses, refused = (sum(getattr(each, name) for each in programs) for name in ("works", "loses", "refused"))
    yield (
        f"{counted(explained.requests, 'request')} of {counted(len(programs), 'program')}: {works:,} work, {loses:,} "
        f"lose fields or parameters, {refused:,} refused."
    )
    yield from (f"{counted(times, 'entry', 'entries')} left out: {why}" for why, times in explained.skipped.items())
    costs = [
        {"name": "without v3bridge", "day": explained.day_without_proxy, "month": explained.month_without_proxy},
        {"name": "with v3bridge", "day": explained.day, "month": explained.month},
    ]
    yield commands.table(costs, {"parts at most": "name", "a day": "day", "30 days": "month"})
    outcomes = {name: name for name in ("works", "loses", "refused", "parts")}
    yield commands.table(programs, {"program": "name"} | outcomes)
    columns = {"requests": "requests", "program": "program", "reason": "reason", "for example": "place"}
    for verdict, todo in TODO.items():
        if kinds := [each for each in explained.kinds if each.verdict == verdict]:
            yield commands.table(kinds, {todo: "endpoint", **columns})
