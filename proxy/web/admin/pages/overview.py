"""Overview at a glance: requests, errors, latency, cache, parts with forecast, upstream health, machines, workers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

import proxy
from proxy import errors
from proxy.alerts.records import OpenAlert
from proxy.gateway.assembly import Gateway
from proxy.gateway.quota import accounts, burn_down, usage
from proxy.stores.protocols import LedgerEntry
from proxy.telemetry import history as histories
from proxy.web import cluster_metrics, operator_endpoints
from proxy.web.admin.page import AdminContext, AdminPage, PageData, Query
from proxy.web.admin.pages.alerts import open_conditions
from proxy.web.admin.pages.upstream import TokenAge, breaker_states, token_ages

T = TypeVar("T")

POINTS = 60  # of the history, a minute each
MINUTE, HOUR = 60.0, 3_600.0
SILENT_SECONDS = 10.0  # after which a worker that shared no figures is reported: it does so every second


class Traffic(msgspec.Struct, frozen=True):
    """Requests of all machines in a time. `seconds` are those that were observed, fewer after a start.

    `failed` are responses with status 5xx, `refused` with 4xx. Percentiles are in seconds, interpolated between the
    bounds of the metric `v3bridge_request_duration_seconds`: below 0.005 that is all that is known. `hit_ratio` is the
    share of results that came from a cache, of the four kinds of `results`; null without any.
    """

    seconds: float
    requests: int
    requests_per_second: float
    failed: int
    refused: int
    p50: float | None
    p95: float | None
    p99: float | None
    results: dict[str, int]
    hit_ratio: float | None
    upstream_operations: int
    failed_upstream_operations: int


class Series(msgspec.Struct, frozen=True):
    """The last hour, a value a minute, oldest first; null where nothing was observed. `at` are the ends of the minutes
    in seconds since 1970, percentiles are in seconds."""

    at: tuple[float, ...]
    requests_per_second: tuple[float | None, ...]
    failed: tuple[int | None, ...]
    parts: tuple[int | None, ...]
    p50: tuple[float | None, ...]
    p95: tuple[float | None, ...]
    p99: tuple[float | None, ...]


class ApplicationParts(msgspec.Struct, frozen=True):
    """Parts of an application by the ledger, used or uncertain, of all machines.

    `month_expected` is the usage at the end of the month at the pace of the last days. `usage` is the quota with its
    limit and period; `usage.runs_out_at` is when the limit is reached at this pace, null where it is not.
    """

    today: int
    month: int
    month_expected: int
    usage: usage.UsageRow


class Check(msgspec.Struct, frozen=True):
    """A condition of readiness; `failure` is null where it is met."""

    name: str
    failure: str | None


class WorkerRow(msgspec.Struct, frozen=True):
    """A worker process. `event_loop_lag` is in seconds; `silent` says that it has shared nothing for some time."""

    number: int
    pid: int
    uptime_seconds: float
    memory: int
    event_loop_lag: float | None
    silent: bool


class MachineRow(msgspec.Struct, frozen=True):
    """A machine, or one installation of several on it. `responding` is the one that made this page."""

    name: str
    version: str
    responding: bool
    requests: int
    workers: tuple[WorkerRow, ...]


class OverviewPage(PageData, frozen=True, kw_only=True):
    """State of the service. Times are in seconds since 1970.

    `conditions` are those that any worker or machine has reported as an alert and that are not over; `checks` are
    those of readiness, of the worker that responds. `store_failure`: why the store, and with it other machines and the
    ledger, cannot be read; `parts` and `conditions` are then empty.
    """

    version: str
    at: float
    started: float
    uptime_seconds: float
    minute: Traffic
    hour: Traffic
    series: Series
    parts: tuple[ApplicationParts, ...]
    conditions: tuple[OpenAlert, ...]
    checks: tuple[Check, ...]
    breakers: dict[str, str]
    tokens: tuple[TokenAge, ...]
    machines: tuple[MachineRow, ...]
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> OverviewPage:
    gateway = context.service.gateway
    cluster = context.service.cluster
    now = context.clock.now()
    machines = await cluster.instances()
    metrics, history = cluster.metrics(machines), cluster.history()
    store_failure = cluster.store_failure
    try:
        parts, conditions = await _parts(gateway, now), await open_conditions(gateway)
    except errors.StoreUnavailable as error:
        parts, conditions, store_failure = (), (), error.message
    started = machines[0].started
    return OverviewPage(
        version=proxy.__version__,
        at=now,
        started=started,
        uptime_seconds=round(now - started, 1),
        minute=_traffic(history.window(now, MINUTE)),
        hour=_traffic(history.window(now, HOUR)),
        series=_series(history.series(now, POINTS)),
        parts=parts,
        conditions=conditions,
        checks=await _checks(context.service.checks),
        breakers=breaker_states(metrics),
        tokens=token_ages(gateway, metrics, now),
        machines=tuple(_machine(machine, cluster, now) for machine in machines),
        store_failure=store_failure,
    )


def _traffic(window: histories.Sample) -> Traffic:
    counts = window.counts
    total = sum(counts.results)
    return Traffic(
        seconds=round(window.seconds, 1),
        requests=counts.requests,
        requests_per_second=_rate(counts.requests, window.seconds),
        failed=counts.failed,
        refused=counts.refused,
        p50=counts.percentile(0.5),
        p95=counts.percentile(0.95),
        p99=counts.percentile(0.99),
        results=dict(zip(histories.SOURCES, counts.results, strict=True)),
        # A stale entry comes from the cache, too, but stands for a miss that failed.
        hit_ratio=sum(counts.results[:2]) / total if total else None,
        upstream_operations=counts.operations,
        failed_upstream_operations=counts.failed_operations,
    )


def _series(samples: list[histories.Sample]) -> Series:
    def values(read: Callable[[histories.Counts], T]) -> tuple[T | None, ...]:
        return tuple(read(sample.counts) if sample.seconds else None for sample in samples)

    return Series(
        at=tuple(round(sample.at, 1) for sample in samples),
        requests_per_second=tuple(
            _rate(sample.counts.requests, sample.seconds) if sample.seconds else None for sample in samples
        ),
        failed=values(lambda counts: counts.failed),
        parts=values(lambda counts: counts.parts),
        p50=values(lambda counts: counts.percentile(0.5)),
        p95=values(lambda counts: counts.percentile(0.95)),
        p99=values(lambda counts: counts.percentile(0.99)),
    )


def _rate(number: int, seconds: float) -> float:
    return round(number / seconds, 2) if seconds else 0.0


async def _parts(gateway: Gateway, now: float) -> tuple[ApplicationParts, ...]:
    """Read the usage of the applications from the ledger. Raises StoreUnavailable."""
    applications, periods = gateway.settings.applications, accounts.billing_periods(now)
    days = accounts.last_days(now, burn_down.DAYS)
    entries = [
        LedgerEntry(name, period) for name in applications for period in (*days, periods.month, accounts.LIFETIME)
    ]
    usages = {entry_usage.entry: entry_usage for entry_usage in await gateway.store.usage(entries)}
    exhausted = await gateway.store.exhausted_quotas()
    rows = [row for row in usage.rows(applications, usages.values(), exhausted, now) if row.key is None]

    def used(name: str, period: str) -> int:
        entry = usages[LedgerEntry(name, period)]
        return entry.used + entry.uncertain

    parts = []
    for row in rows:
        by_day = [used(row.application, day) for day in days]
        month = used(row.application, periods.month)
        expected = month + burn_down.parts_pace(by_day, now) * (periods.month_ends - now)
        parts.append(ApplicationParts(by_day[-1], month, round(expected), row))
    return tuple(parts)


async def _checks(checks: Sequence[operator_endpoints.ReadinessCheck]) -> tuple[Check, ...]:
    failures = await asyncio.gather(*map(operator_endpoints.run, checks))
    return tuple(Check(check.name, failure) for check, failure in zip(checks, failures, strict=True))


def _machine(machine: cluster_metrics.Instance, cluster: cluster_metrics.ClusterMetrics, now: float) -> MachineRow:
    counts = histories.Counts.of(cluster.metrics([machine]), operator_endpoints.PATHS)
    workers = tuple(
        WorkerRow(
            worker.number,
            worker.pid,
            round(now - worker.started, 1),
            worker.memory,
            worker.event_loop_lag,
            silent=machine.at - worker.at > SILENT_SECONDS,
        )
        for worker in machine.workers
    )
    return MachineRow(machine.name, machine.version, machine.name == cluster.name, counts.requests, workers)


PAGE = AdminPage(
    "overview",
    "Overview",
    "Requests, errors, latency, cache, parts with forecast, upstream health, machines and workers.",
    OverviewPage,
    _data,
    path="/",
)
