"""Schema check: compares the upstream's schema once a day with what the mappings read, before clients notice a drift.

One of all workers sends the introspection, which costs no parts, and stores the result for the others. A check that
fails, because the upstream is unreachable or forbids introspection, is no drift: the last comparison stands, and the
check is repeated within the hour. A new version of the mappings is compared at once, and has a result of its own: two
versions may run beside each other on one store.
"""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable
from typing import Literal

import msgspec
import structlog

from proxy import errors
from proxy.config import changes
from proxy.gateway.assembly import Gateway
from proxy.kit.periodic import PeriodicTask
from proxy.mapping import drift
from proxy.upstream import introspection

NOTE = "schema check"
RETRY_SECONDS = 3600.0  # after a check that failed
POLL_SECONDS = 60.0  # between two looks whether a check is due
DELAY_MAX = 600.0  # seconds at most that a check that is due waits, so that not all installations ask at once
CLAIM_SECONDS = 120.0  # that one worker has for a check
KEPT_SECONDS = 45 * 86_400.0  # of the result of another version since its last check; above the longest interval

State = Literal["never", "complete", "drift", "unknown"]

log = structlog.get_logger()


class SchemaReport(msgspec.Struct, frozen=True):
    """Result of the last check. Times are seconds since 1970.

    `attempted`: the last check; `compared`: the last that compared, None if none has. `failure` says why the last one
    did not, empty if it did. `drifts` are those of the last comparison, with the schema `expected` (a digest), of
    `fields` fields; `machine` is the one that compared.
    """

    attempted: float
    expected: str
    machine: str
    compared: float | None = None
    failure: str = ""
    fields: int = 0
    drifts: tuple[drift.Drift, ...] = ()

    @property
    def state(self) -> State:
        """`unknown`: no check has been able to compare."""
        if self.compared is None:
            return "unknown"
        return "drift" if self.drifts else "complete"


class SchemaCheck:
    """Background task of the check. `report` is the last result of any worker, None before the first."""

    def __init__(
        self,
        current: Callable[[], Gateway],
        *,
        rng: random.Random | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._current = current
        self._rng = rng or random.SystemRandom()
        self._due: float | None = None
        self._checking = PeriodicTask("schema check", self.check_if_due, poll_seconds, logged=errors.StoreUnavailable)
        self.report: SchemaReport | None = None

    @property
    def expected(self) -> str:
        """Digest of the schema and the mappings that this process runs with, by which results of others are known."""
        return self._current().contents[changes.MAPPINGS]

    def start(self) -> None:
        self._checking.start()

    async def close(self) -> None:
        await self._checking.close()

    async def check(self) -> SchemaReport:
        """Compare now, and store the result. Raises StoreUnavailable."""
        before = await self.refresh()
        gateway = self._current()
        try:
            gateway, types = await self._introspect()
        except errors.BridgeError as error:
            log.warning("schema check failed", exc_info=error)
            report = self._failed(before, error.message)
        else:
            names = gateway.mappings.schema.named_types()
            fields = sum(len(getattr(kind, "fields", ())) for kind in names.values())
            now = gateway.clock.now()
            drifts = tuple(drift.compare(gateway.mappings, types.types))
            # Of these mappings: a reload may have brought others meanwhile.
            expected = gateway.contents[changes.MAPPINGS]
            report = SchemaReport(now, expected, socket.gethostname(), now, "", fields, drifts)
            _log(report)
        await gateway.store.put_note(NOTE, report.expected, msgspec.json.encode(report).decode())
        self._adopt(report)
        await _drop_replaced(gateway, report)
        return report

    async def _introspect(self) -> tuple[Gateway, introspection.IntrospectedTypes]:
        """Return the upstream's types, and the gateway that got them. Raises BridgeError."""
        while True:
            gateway = self._current()
            operation = introspection.operation(gateway.mappings.schema.named_types())
            try:
                return gateway, await _introspected(gateway, operation)
            # A reload with another upstream closes the connections to the one before, which cancels token requests and
            # leaves a closed session (RuntimeError). What fails so says nothing of the schema that is served now.
            except (errors.BridgeError, RuntimeError, asyncio.CancelledError):
                task = asyncio.current_task()
                is_cancelled = task is not None and task.cancelling() > 0
                if is_cancelled or self._current().services is gateway.services:
                    raise
                log.info("schema check repeated", reason="a reload has changed the upstream")

    async def refresh(self) -> SchemaReport | None:
        """Read the last result of any worker, see `stored_report`. Raises StoreUnavailable."""
        report = await stored_report(self._current())
        if report is not None:
            self._adopt(report)
        return report

    async def check_if_due(self) -> None:
        """Check if the time has come and no other worker does. Raises StoreUnavailable."""
        gateway = self._current()
        hours = gateway.settings.schema_check.hours
        report = await self.refresh()
        if not hours:
            return
        now = gateway.clock.now()
        if not self._is_due(report, hours, now):
            self._due = None
        elif self._due is None:
            self._due = now + self._rng.random() * min(DELAY_MAX, hours * 360)
        elif now >= self._due and await gateway.store.claim_once(f"schema check {self.expected}", CLAIM_SECONDS):
            self._due = None
            await self.check()

    def _is_due(self, report: SchemaReport | None, hours: float, now: float) -> bool:
        if report is None or report.expected != self.expected:
            return True
        seconds = min(RETRY_SECONDS, hours * 3600) if report.failure else hours * 3600
        # Also after a clock that was ahead: its result would else stand for as long.
        return not 0 <= now - report.attempted < seconds

    def _failed(self, before: SchemaReport | None, reason: str) -> SchemaReport:
        now, machine = self._current().clock.now(), socket.gethostname()
        if before is None or before.expected != self.expected:
            return SchemaReport(now, self.expected, machine, failure=reason)
        return msgspec.structs.replace(before, attempted=now, failure=reason)

    def _adopt(self, report: SchemaReport) -> None:
        self.report = report
        if report.compared is not None:
            metrics = self._current().metrics
            metrics.schema_check_age[()] = report.compared
            metrics.schema_drifts[()] = len(report.drifts)


async def stored_report(gateway: Gateway) -> SchemaReport | None:
    """Return the last result of the mappings that this process runs with; before the first, the last of another
    version. Raises StoreUnavailable."""
    reports = await _stored(gateway)
    latest = max(reports.values(), key=lambda report: report.attempted, default=None)
    return reports.get(gateway.contents[changes.MAPPINGS], latest)


async def _stored(gateway: Gateway) -> dict[str, SchemaReport]:
    """Return all results by the note's owner, the digest of the mappings; without those that cannot be read here."""
    reports = {}
    for owner, text in (await gateway.store.notes(NOTE)).items():
        with contextlib.suppress(msgspec.MsgspecError):
            reports[owner] = msgspec.json.decode(text, type=SchemaReport)
    return reports


async def _drop_replaced(gateway: Gateway, current: SchemaReport) -> None:
    """Delete the results of versions that have not checked for long, because they no longer run."""
    for owner, report in (await _stored(gateway)).items():
        if owner != current.expected and current.attempted - report.attempted > KEPT_SECONDS:
            await gateway.store.drop_note(NOTE, owner)


async def _introspected(
    gateway: Gateway, operation: introspection.IntrospectionOperation
) -> introspection.IntrospectedTypes:
    """Send the operation for the first application whose token is accepted: the schema is the same for all."""
    refusal: errors.BridgeError | None = None
    for application in gateway.applications.applications.values():
        try:
            return await gateway.services.client.execute(operation, application.credentials)
        except (errors.CredentialsRefused, errors.TokenLimit) as error:
            refusal = refusal or error
    assert refusal is not None  # noqa: S101 - a configuration has an application
    raise refusal


def _log(report: SchemaReport) -> None:
    if not report.drifts:
        log.info("schema compared", fields=report.fields)
        return
    for difference in report.drifts:
        log.error(
            "schema drift found",
            place=difference.place,
            problem=difference.problem,
            breaks=difference.breaks,
            affected=list(difference.affected),
        )
