"""Comparison: results of shadowing by client and field, its switch, and the whole report."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import msgspec

from proxy import config, errors
from proxy.shadow import results
from proxy.tools.compare import loader
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    EndpointResult,
    FailedRequests,
    Verdict,
)
from proxy.web.admin.context import AdminContext
from proxy.web.admin.page import (
    ActionResult,
    AdminAction,
    AdminDocument,
    AdminPage,
    PageData,
    PageParameter,
    Query,
    RenderedDocument,
)

DIFFERENCES_MAX = 50  # that the page lists; the report has all


class ShadowedApplication(msgspec.Struct, frozen=True):
    """Application whose requests are compared: their share, 0 to 1, and which response its clients get."""

    application: str
    share: float
    response: str


class ComparedClient(msgspec.Struct, frozen=True):
    """Results of a client: the worst verdict of its endpoints, and how many of its requests are `equivalent`."""

    client: str
    verdict: Verdict
    requests: int
    equivalent: int
    not_compared: int
    endpoints: tuple[EndpointResult, ...]


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Differences at one path, of one kind and cause. `counts`: whether they count for the verdict. Times are in
    seconds since 1970."""

    endpoint: str
    path: str
    kind: str
    cause: str
    why: str
    requests: int
    counts: bool
    last_seen: float
    clients: tuple[str, ...]


class ComparisonSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All results. `failed` are thresholds that are exceeded, `failures` requests that could not be compared;
    `omitted` is the number of further differences, which the report has."""

    verdict: Verdict
    first: float
    last: float
    clients: tuple[ComparedClient, ...]
    differences: tuple[FieldDifference, ...]
    omitted: int
    failures: tuple[FailedRequests, ...]
    failed: tuple[str, ...]
    notes: tuple[str, ...]
    cost: ComparisonCost


class ComparisonPage(PageData, frozen=True, kw_only=True):
    """Shadowing: `configured` where the configuration samples requests, `on` as the switch says that all workers read.

    `baseline` is the address of the old service. `dropped` are the sampled requests since the start that were not
    compared, by the reason of the metric v3bridge_shadow_dropped_total. `result` is null before the first comparison,
    and where the rules cannot be read, which `problem` says. `store_failure`: why the store cannot be used; `on` and
    `result` are then null.
    """

    configured: bool
    on: bool | None
    baseline: str | None
    applications: tuple[ShadowedApplication, ...]
    dropped: dict[str, int]
    result: ComparisonSummary | None
    problem: str | None = None
    store_failure: str | None = None


async def _data(context: AdminContext, _: Query) -> ComparisonPage:
    gateway = context.service.gateway
    settings = gateway.settings
    shadowed = tuple(
        ShadowedApplication(name, each.shadow.share, each.shadow.response)
        for name, each in settings.applications.items()
        if each.shadow.share
    )
    is_on, result, problem, store_failure = None, None, None, None
    try:
        is_on = (await results.control(gateway.store)).on
        result = await _result(context)
    except errors.ConfigError as error:
        problem = error.message
    except errors.StoreUnavailable as error:
        is_on, store_failure = None, error.message
    return ComparisonPage(
        configured=bool(shadowed) and settings.shadow.enabled,
        on=is_on,
        baseline=settings.shadow.baseline_url,
        applications=shadowed,
        dropped=await _dropped(context),
        result=None if result is None else _summary(result),
        problem=problem,
        store_failure=store_failure,
    )


async def _dropped(context: AdminContext) -> dict[str, int]:
    figures = context.service.figures
    dropped: Counter[str] = Counter()
    for (_, reason), number in figures.metrics(await figures.machines()).shadow_dropped.items():
        dropped[reason] += int(number)
    return dict(sorted(dropped.items()))


async def _result(context: AdminContext) -> ComparisonResult | None:
    """Read the result from the store. Raises ConfigError for rules that cannot be read, and StoreUnavailable."""
    from proxy.tools.compare.shadow import report  # judging is of no use to a service that compares nothing

    gateway = context.service.gateway
    rules = await asyncio.to_thread(_rules, gateway.settings)
    return await report.read(gateway.store, gateway.settings, rules, gateway.clock)


def _rules(settings: config.Config) -> ComparisonSettings:
    file = settings.shadow.rules
    return loader.load(None if file is None else Path(file), os.environ)


def _summary(result: ComparisonResult) -> ComparisonSummary:
    rows: dict[str, list[EndpointResult]] = {}
    for row in result.rows:
        rows.setdefault(row.client, []).append(row)
    return ComparisonSummary(
        verdict=result.verdict,
        first=result.started,
        last=result.ended,
        clients=tuple(_client(name, endpoints) for name, endpoints in rows.items()),
        differences=tuple(map(_difference, result.groups[:DIFFERENCES_MAX])),
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
        next(each for each in worst if each in verdicts),
        sum(row.requests for row in rows),
        sum(row.equivalent for row in rows),
        sum(row.not_compared for row in rows),
        tuple(rows),
    )


def _difference(group: DifferenceGroup) -> FieldDifference:
    return FieldDifference(
        endpoint=group.endpoint,
        path=group.path,
        kind=group.kind,
        cause=group.cause,
        why=group.why,
        requests=group.requests,
        counts=group.counts,
        last_seen=group.last_seen,
        clients=group.clients,
    )


async def _report(context: AdminContext) -> RenderedDocument:
    from proxy.tools.compare.reports import html

    result = await _result(context)
    if result is None:
        raise errors.NotFound("there are no results yet: no request has been compared")
    # In a thread: a report of thousands of differences takes long to render.
    return RenderedDocument(await asyncio.to_thread(html.render, result), html.policy())


async def _switch(context: AdminContext, fields: Query) -> ActionResult:
    state = fields.get("state", "")
    if state not in ("on", "off"):
        raise errors.BadRequest("state is on or off")
    await results.switch(context.service.gateway.store, state == "on")
    return ActionResult(f"Shadowing is {state}: all workers follow within two seconds.")


PAGE = AdminPage(
    "comparison",
    "Comparison",
    "Results of shadowing: verdict by client and endpoint, differences by field.",
    ComparisonPage,
    _data,
)
ACTIONS = (
    AdminAction(
        "/comparison/switch",
        "comparison",
        "Switch shadowing on or off in all workers.",
        _switch,
        (PageParameter("state", "on or off", required=True),),
    ),
)
REPORT = AdminDocument("/comparison/report.html", "The whole report of the comparison, as one page.", _report)
