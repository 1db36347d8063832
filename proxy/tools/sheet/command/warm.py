"""`v3bridge warm`: fetches the parts of a list into the shared cache, where v3 requests find them for 0 parts."""

import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from proxy import errors, model
from proxy.cli import option_fields, shown, spending, used_store
from proxy.config import loader
from proxy.kit import clock, event_loop, shipped
from proxy.kit.wording import counted, rfc3339

if TYPE_CHECKING:
    from proxy.gateway.applications import Client
    from proxy.gateway.assembly import Gateway
    from proxy.gateway.queries import GatewayRequest

WARM, INCOMPLETE, DECLINED = 0, 1, 2  # exit codes
WAIT_SECONDS = 30.0  # at most, between two looks at the clock: it may be set, and a machine may sleep
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


class WarmSummary(msgspec.Struct):
    """Result of a run. `lines` are those of the list with a part number, once each; `left` are not in the
    cache after the run. `fresh_until` is when the first result expires, null without any."""

    lines: int
    cached: int
    parts_at_most: int
    parts_spent: int = 0
    left: int = 0
    fresh_until: str | None = None
    stopped: str | None = None


def warm(
    *,
    bom: Annotated[Path, typer.Argument(metavar="BOM", help="A parts list: .csv, .tsv, .xlsx or .xlsm.")],
    config_file: option_fields.ConfigFile = None,
    budget: Annotated[
        int | None, typer.Option(min=0, metavar="PARTS", help="Most parts that the run may cost.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="HH:MM", help="Wait until this time of the day; at once if omitted.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="API key of the configuration that is charged.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before parts are spent.")] = False,
    as_json: option_fields.AsJson = False,
) -> None:
    """Fetch the parts of a list into the shared cache, so that /v3/parts/match costs nothing for them later.

    Covered are requests with v3's default limit of 3 and no exact_only, and the features of the application's plan.
    The exit code is 0 if every line is in the cache, 1 if some are not, and 2 for a mistake or a declined cost.
    """
    start = None if at is None else next_time(at, time.time())
    requests = _requests(bom)
    key = option_fields.read_key(api_key, "--api-key")
    run = _Run(config_file, None if key is None else key.reveal(), requests)
    cost = event_loop.run(run.cost())
    lines = counted(cost.lines, "line")
    spending.say(f"{lines}: {cost.cached} in the cache, up to {counted(cost.parts_at_most, 'part')} for the others")
    if not spending.confirm_cost(cost.parts_at_most, budget, 0, yes=yes, free=False):
        raise typer.Exit(DECLINED)
    if start is not None:
        spending.say(f"waiting until {time.strftime('%Y-%m-%d %H:%M', time.localtime(start))}")
        while (left := start - time.time()) > 0:
            time.sleep(min(left, WAIT_SECONDS))
    summary = event_loop.run(run.fetch(budget))
    if as_json:
        shown.print_json(summary)
    else:
        _print(summary)
    raise typer.Exit(INCOMPLETE if summary.left else WARM)


def next_time(text: str, now: float) -> float:
    """Return when it is next so late by local time: in the minute of `now`, or within a day. Both are in seconds since
    1970. Raises BadParameter."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a time of the day, such as 03:00", param_hint="--at")
    today, wanted = time.localtime(now), (int(found[1]), int(found[2]))
    is_over = wanted < (today.tm_hour, today.tm_min)
    # mktime knows the days of a month, and when the clock is changed.
    return time.mktime((today.tm_year, today.tm_mon, today.tm_mday + is_over, *wanted, 0, 0, 0, -1))


def _requests(bom: Path) -> list[model.PartsMatchRequest]:
    """Read the list as `compare` does. Raises SourceError."""
    from proxy.traffic.sources import source
    from proxy.traffic.sources.clients import Clients
    from proxy.v3.parameters import Parameters
    from proxy.v3.parsing import requests

    opened = source.open_source(bom, Clients())
    if opened.kind not in source.TABLES:
        raise errors.SourceError(f"{bom}: is not a parts list: it was read as {opened.kind}")
    found = []
    for sent in opened.requests():
        request = requests.parse_match(Parameters.of(sent.query)).request
        for query in request.queries:
            if query.error is not None:  # it would be an error for every client, and costs nothing
                spending.say(f"note: left out: {opened.name}:{query.reference} {query.error}")
        valid = tuple(query for query in request.queries if query.error is None)
        found.append(msgspec.structs.replace(request, queries=valid))
    for skipped in opened.junk:
        spending.say(f"note: {counted(skipped.times, 'line')} left out: {skipped.first} {skipped.reason}")
    return found


class _Run:
    """Lookup and execution of the requests, each with a gateway that is open only meanwhile."""

    def __init__(
        self, config_file: Path | None, apikey: str | None, requests: Sequence[model.PartsMatchRequest]
    ) -> None:
        self._file = config_file
        self._apikey = apikey
        self._requests = requests

    async def cost(self) -> WarmSummary:
        """Return what the run would cost. Nothing is sent upstream."""
        async with self._opened() as opened:
            missing = [each for request in self._requests for each in await opened.missing(request)]
        lines = sum(len(each.queries) for each in self._requests)
        return WarmSummary(lines, lines - len(missing), sum(parts for _, parts in missing))

    async def fetch(self, budget: int | None) -> WarmSummary:
        """Fetch what the cache lacks, as far as the budget allows."""
        summary = await self.cost()
        async with self._opened() as opened:
            try:
                for request in self._requests:
                    rest = request
                    while rest.queries:
                        left = None if budget is None else budget - opened.spent
                        chosen, rest = _affordable(rest, await opened.missing(rest), left)
                        if not chosen.queries:
                            least = f"{counted(left or 0, 'part')} left of the budget"
                            summary.stopped = f"the next line may cost more than the {least}"
                            break
                        await opened.fetch(chosen)
            except errors.BridgeError as error:
                summary.stopped = error.message  # the next run continues here
            summary.parts_spent = opened.spent
            if opened.oldest < float("inf"):
                summary.fresh_until = rfc3339(opened.oldest + opened.gateway.settings.cache.seconds)
        after = await self.cost()
        summary.left = after.lines - after.cached
        return summary

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[_Opened]":
        """Open a gateway with the caches of the service. Raises ConfigError."""
        from proxy.gateway import assembly
        from proxy.tools.sheet import sources

        settings = loader.load(self._file or shipped.path("config.yaml"), os.environ)
        settings = used_store.service_settings(settings, self._file)
        if settings.upstream == "sandbox" or settings.store.reveal() == "memory:":
            raise errors.ConfigError(
                "store: with `upstream: sandbox` or `store: memory:` no service finds what is fetched"
            )
        if not (settings.cache.shared and settings.cache.enabled):
            raise errors.ConfigError(
                "cache: is off or not shared (cache.seconds, cache.bytes, cache.shared): nothing is kept"
            )
        names, settings = sources.client_settings(settings, self._apikey, None)
        # The cache as the service has it: what is fresh to it counts.
        settings = msgspec.structs.replace(sources.for_one_user(settings), cache=settings.cache)
        async with AsyncExitStack() as resources:
            gateway = await assembly.build(settings, clock.SystemClock(), resources)
            client = next(each for each in gateway.applications.all if (each.application.name, each.key) == names)
            yield _Opened(gateway, client)


class _Opened:
    """Gateway that is open, and its client. `spent` are parts; `oldest` is when the first of the results was fetched,
    in seconds since 1970."""

    def __init__(self, gateway: "Gateway", client: "Client") -> None:
        self.gateway = gateway
        self.spent = 0
        self.oldest = float("inf")
        self._client = client

    async def missing(self, parameters: model.PartsMatchRequest) -> list[tuple[model.PartsMatchQuery, int]]:
        """Return the queries that the cache lacks, each with the most parts that it costs. All are valid."""
        from proxy.gateway.queries import MatchQueries

        gateway, request = self.gateway, self._request()
        queries = MatchQueries(
            request, parameters, gateway.pipeline.projections, gateway.settings.translation.single_query
        )
        held = await gateway.cache.holds(request, queries)
        return [
            (parameters.queries[n], sum(each.parts_max for each in queries.plan([n], {}).operations))
            for n, is_held in enumerate(held)
            if not is_held
        ]

    async def fetch(self, parameters: model.PartsMatchRequest) -> None:
        """Execute a request as a client's, and store its results. Raises BridgeError where no query has a result."""
        gateway, request = self.gateway, self._request()
        try:
            await gateway.pipeline.match_parts(request, parameters)
        finally:
            self.spent += request.metadata.cost
        age = gateway.clock.monotonic() - request.metadata.stored
        self.oldest = min(self.oldest, gateway.clock.now() - max(0.0, age))
        if gateway.cache.shared is not None:
            await gateway.cache.shared.flush()

    def _request(self) -> "GatewayRequest":
        """Return a request without include[] and show[]: of it whole parts are fetched, which serve all others."""
        from proxy.gateway.queries import GatewayRequest
        from proxy.gateway.response_metadata import ResponseMetadata

        projection = model.Projection(features=self._client.application.features)
        return GatewayRequest.of(self._client, projection, {}, ResponseMetadata(self.gateway.clock.monotonic()))


def _affordable(
    request: model.PartsMatchRequest, missing: Sequence[tuple[model.PartsMatchQuery, int]], budget: int | None
) -> tuple[model.PartsMatchRequest, model.PartsMatchRequest]:
    """Return the request without the missing queries that might exceed the budget, and one of these."""
    left_out: list[model.PartsMatchQuery] = []
    for query, parts in missing:
        if budget is None:
            break
        if parts > budget:
            left_out.append(query)
        else:
            budget -= parts
    queries = tuple(query for query in request.queries if query not in left_out)
    replace = msgspec.structs.replace
    return replace(request, queries=queries), replace(request, queries=tuple(left_out))


def _print(summary: WarmSummary) -> None:
    parts, lines = counted(summary.parts_spent, "part"), counted(summary.lines, "line")
    typer.echo(f"{summary.lines - summary.left} of {lines} in the cache, for {parts}")
    if summary.fresh_until is not None:
        typer.echo(f"the first of them expires at {summary.fresh_until}")
    if summary.stopped is not None:
        spending.say(f"stopped: {summary.stopped}")
    if summary.left:
        spending.say(f"{counted(summary.left, 'line')} left; the next run goes on with them")
