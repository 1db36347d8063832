"""Result of all comparisons of shadowing that are in the store, with a verdict as that of a run.

The one module of this package that the service imports. What judges is imported within its functions: it is of no use
to a service that compares nothing.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from proxy import config
from proxy.kit.clock import Clock
from proxy.shadow import results
from proxy.stores.protocols import NoteStore
from proxy.tools.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    EndpointResult,
    FailedRequests,
    Verdict,
)
from proxy.traffic import http_side

if TYPE_CHECKING:
    from proxy.tools.compare.judging.rules import IgnoredCounts
    from proxy.tools.compare.judging.settings import ComparisonSettings
    from proxy.tools.compare.judging.tally import Tally

SOURCE = "live requests"
DIFFERENCES_MAX = 50  # of a summary; the report has all


class ComparedClient(msgspec.Struct, frozen=True):
    """Results of a client: the worst verdict of its endpoints, and how many of its requests are `equivalent`."""

    client: str
    verdict: Verdict
    requests: int
    equivalent: int
    not_compared: int
    endpoints: tuple[EndpointResult, ...]


class ComparisonSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All results. `failed` are thresholds that are exceeded, `failures` requests that could not be compared;
    `omitted` is the number of further differences, which the report has."""

    verdict: Verdict
    first: float
    last: float
    clients: tuple[ComparedClient, ...]
    differences: tuple[DifferenceGroup, ...]
    omitted: int
    failures: tuple[FailedRequests, ...]
    failed: tuple[str, ...]
    notes: tuple[str, ...]
    cost: ComparisonCost


async def read_configured(store: NoteStore, service: config.Config, clock: Clock) -> ComparisonResult | None:
    """Return the result by the rules that the service has. Raises ConfigError for rules that cannot be read, and
    StoreUnavailable."""
    return await read(store, service, await asyncio.to_thread(load_rules, service.shadow, os.environ), clock)


def load_rules(shadow: config.ShadowSettings, environ: Mapping[str, str]) -> "ComparisonSettings":
    """Load the file of `shadow.rules`, or the shipped one. Raises ConfigError with every mistake in it."""
    from proxy.tools.compare import loader

    return loader.load(None if shadow.rules is None else Path(shadow.rules), environ)


async def read_tally(store: NoteStore) -> "Tally | None":
    """Read the sum of all workers' tallies; None where there is none. Raises StoreUnavailable."""
    from proxy.tools.compare.judging.tally import Tally

    tallies = [msgspec.json.decode(tally, type=Tally) for tally in await results.tallies(store)]
    for tally in tallies[1:]:
        tallies[0].merge(tally)
    return tallies[0] if tallies else None


async def read(
    store: NoteStore,
    service: config.Config,
    settings: "ComparisonSettings",
    clock: Clock,
    *,
    budget: int | None = None,
    ignored_counts: "IgnoredCounts | None" = None,
) -> ComparisonResult | None:
    """Return the result; None where no request has been compared. `service` is the configuration of the service whose
    requests they were. Raises StoreUnavailable."""
    from proxy.tools.compare.judging import summary
    from proxy.tools.compare.running import judgement

    tally = await read_tally(store)
    if tally is None:
        return None
    tally.drop_ended(clock.now())  # of a worker that judges no more
    site = service.upstream.site if isinstance(service.upstream, config.UpstreamSettings) else None
    judged = judgement.build(settings, site, clock, str, baseline=ignored_counts)
    listen, old = service.listen, service.shadow.baseline_url
    about = summary.RunInfo(
        started=tally.first or 0.0,
        ended=tally.last or 0.0,
        source=SOURCE,
        baseline=http_side.base_url(old) if old else "the old service",
        candidate=http_side.base_url(f"http://{listen.host}:{listen.port}"),
        budget=budget,
    )
    return judged.summary.result(tally, about)


def summarize(result: ComparisonResult) -> ComparisonSummary:
    """Return the result by client, with its most frequent differences."""
    rows: dict[str, list[EndpointResult]] = {}
    for row in result.rows:
        rows.setdefault(row.client, []).append(row)
    return ComparisonSummary(
        verdict=result.verdict,
        first=result.started,
        last=result.ended,
        clients=tuple(_client(name, endpoints) for name, endpoints in rows.items()),
        differences=result.groups[:DIFFERENCES_MAX],
        omitted=max(0, len(result.groups) - DIFFERENCES_MAX),
        failures=result.failures,
        failed=result.failed,
        notes=result.notes,
        cost=result.cost,
    )


def _client(name: str, rows: list[EndpointResult]) -> ComparedClient:
    verdicts = [row.verdict for row in rows]
    worst: tuple[Verdict, ...] = ("not ready", "inconclusive", "ready")
    return ComparedClient(
        name,
        next(verdict for verdict in worst if verdict in verdicts),
        sum(row.requests for row in rows),
        sum(row.equivalent for row in rows),
        sum(row.not_compared for row in rows),
        tuple(rows),
    )


async def render(result: ComparisonResult) -> tuple[str, str]:
    """Return the report as an HTML page, and the page's Content-Security-Policy."""
    from proxy.tools.compare.reports import html

    # In a thread: a report of thousands of differences takes long to render.
    return await asyncio.to_thread(html.render, result), html.policy()
