"""Upstream: the last operations and the slowest of the last hour, circuit breakers, tokens, requests in flight."""

import msgspec

from proxy.gateway.assembly import Gateway
from proxy.telemetry.activity import OK, OperationRecord
from proxy.telemetry.metrics import Metrics
from proxy.upstream import policies
from proxy.web.admin.page import AdminContext, AdminPage, PageData, Query

BREAKER_STATES = {policies.CLOSED: "closed", policies.HALF_OPEN: "half-open", policies.OPEN: "open"}


class TokenAge(msgspec.Struct, frozen=True):
    """Age of an application's newest access token of all machines, null before the first. `refusal`: why the upstream
    takes none, as far as the worker that responds knows; the open conditions of the overview have those of all."""

    application: str
    seconds: float | None
    refusal: str | None


class OperationSummary(msgspec.Struct, frozen=True):
    """Attempts of an operation since the start of the service, and those that failed, by the type of the error."""

    name: str
    requests: int
    failed: dict[str, int]
    retries: int


class UpstreamPage(PageData, frozen=True, kw_only=True):
    """Requests to the GraphQL and the identity service, of all workers and machines.

    `in_flight` are GraphQL requests that were sent and have no response yet, `waiting` are batches that wait for one of
    the `connections` (of all workers together). `store_failure` is why the figures of other machines are missing.
    """

    at: float
    in_flight: int
    waiting: int
    connections: int
    breakers: dict[str, str]
    tokens: tuple[TokenAge, ...]
    operations: tuple[OperationSummary, ...]
    recent: tuple[OperationRecord, ...]
    slowest: tuple[OperationRecord, ...]
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> UpstreamPage:
    gateway, cluster, now = context.service.gateway, context.service.cluster, context.clock.now()
    machines = await cluster.instances()
    metrics, recent = cluster.metrics(machines), await cluster.recent()
    upstream = gateway.settings.upstream
    # Each worker has a connection pool of its own.
    workers = sum(len(machine.workers) for machine in machines)
    return UpstreamPage(
        at=now,
        in_flight=round(metrics.upstream_in_flight.get((), 0)),
        waiting=round(metrics.upstream_waiting.get((), 0)),
        connections=workers * (0 if upstream == "sandbox" else upstream.connections),
        breakers=breaker_states(metrics),
        tokens=token_ages(gateway, metrics, now),
        operations=_summaries(metrics),
        recent=tuple(map(_rounded, recent.operations)),
        slowest=tuple(map(_rounded, recent.slowest)),
        store_failure=cluster.store_failure,
    )


def breaker_states(metrics: Metrics) -> dict[str, str]:
    """Return the state of the circuit breaker of each service: the worst of all workers."""
    return {name: BREAKER_STATES[round(state)] for (name,), state in metrics.circuit_breaker_state.items()}


def token_ages(gateway: Gateway, metrics: Metrics, now: float) -> tuple[TokenAge, ...]:
    ages = {name: round(max(0.0, now - at), 1) for (name,), at in metrics.token_age.items()}
    tokens = []
    for name, application in gateway.applications.applications.items():
        refusal = gateway.services.tokens.refusal(application.credentials)
        tokens.append(TokenAge(name, ages.get(name), refusal.message if refusal else None))
    return tuple(tokens)


def _summaries(metrics: Metrics) -> tuple[OperationSummary, ...]:
    counts: dict[str, dict[str, int]] = {name: {} for name, _ in sorted(metrics.upstream_requests)}
    for (name, outcome), number in metrics.upstream_requests.items():
        counts[name][outcome] = int(number)
    return tuple(
        OperationSummary(
            name,
            sum(by_outcome.values()),
            {outcome: number for outcome, number in sorted(by_outcome.items()) if outcome != OK},
            int(sum(number for (retried, _), number in metrics.retries.items() if retried == name)),
        )
        for name, by_outcome in counts.items()
    )


def _rounded(record: OperationRecord) -> OperationRecord:
    return msgspec.structs.replace(record, ms=round(record.ms, 1))


PAGE = AdminPage(
    "upstream",
    "Upstream",
    "Recent and slow operations of all workers and machines, circuit breakers, tokens, requests in flight.",
    UpstreamPage,
    _data,
)
