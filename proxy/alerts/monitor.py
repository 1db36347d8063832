"""Monitor: evaluates the conditions once a second and submits alerts, once over all workers and machines.

The store decides who reports a condition, and holds those that are open, so that neither another worker nor a restarted
one reports it again. A process that sees an open condition confirms it; once none has for HOLD_SECONDS, one of them
reports that it is resolved. While the store is unavailable, each process reports for itself.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from proxy import errors
from proxy.alerts import alert as alerts
from proxy.alerts import conditions, dispatcher, forecasts, records, schema_check
from proxy.alerts.conditions import AlertCondition
from proxy.gateway import callers
from proxy.gateway.assembly import Gateway
from proxy.kit.periodic import PeriodicTask

EVALUATE_SECONDS = 1.0
SYNC_SECONDS = 15.0  # between two looks at the open alerts in the store
TAKE_OVER_SECONDS = 60.0  # between two looks for pending alerts that no process holds
HOLD_SECONDS = 60.0  # that a condition must be over before it is resolved
CLIENTS_SECONDS = 300.0  # between two looks for new clients, all of which are one alert
FORECAST_SECONDS = 300.0  # between two forecasts
CLIENTS_DELAY = 30.0  # seconds in which processes write what they have counted
CLIENTS_NOTE = "alerts of new clients"
CLOSE_SECONDS = 5.0  # that an evaluation may take at the end
CLAIM_SECONDS = 60.0  # in which a condition that does not flap is reported by one process

log = structlog.get_logger()


class AlertMonitor:
    """Background task of the alerts of a process. `current` returns the gateway, which a reload replaces."""

    def __init__(
        self,
        current: Callable[[], Gateway],
        *,
        schema: schema_check.SchemaCheck | None = None,
        sender: dispatcher.Dispatcher | None = None,
        interval: float = EVALUATE_SECONDS,
    ) -> None:
        self._current = current
        self.schema = schema or schema_check.SchemaCheck(current)
        self._sender = sender or dispatcher.Dispatcher(current)
        self._observer = conditions.Observer()
        self._open: dict[str, records.OpenAlert] = {}
        self._unsaved: set[str] = set()  # keys of open alerts that are only in memory
        self._done: set[str] = set()  # keys that are reported once
        self._claims: dict[str, float] = {}  # when a claim was last refused, by the monotonic clock
        self._forecasts: list[AlertCondition] = []
        self._owner = alerts.new_id()
        self._synced = self._taken_over = self._clients_reported = self._forecast = float("-inf")
        self._evaluating = PeriodicTask("alerts", self.evaluate, interval)

    def start(self) -> None:
        """Begin in the background, with the schema check."""
        self.schema.start()
        self._evaluating.start()

    async def close(self) -> None:
        """Stop checking, evaluating and delivering."""
        await self.schema.close()
        # Not cancelled at once: a condition that is claimed and not submitted would never be reported.
        await self._evaluating.close(CLOSE_SECONDS)
        await self._sender.close()

    @property
    def open(self) -> tuple[records.OpenAlert, ...]:
        """Open alerts that this process knows: those of all processes as of a few seconds ago, and its own since."""
        return tuple(self._open.values())

    def send_test(self) -> None:
        self._sender.submit(alerts.test(self._current().clock.now()))

    async def evaluate(self) -> None:
        gateway = self._current()
        clock = gateway.clock
        if clock.monotonic() - self._synced >= SYNC_SECONDS:
            self._synced = clock.monotonic()
            await self._sync()
        for condition in (*self._observer.read(gateway, self.schema.report), *self._forecasts):
            if condition.once:
                await self._report_once(condition)
            else:
                await self._report(condition)

    async def _report_once(self, condition: AlertCondition) -> None:
        """Report a condition that has no end, if no process has."""
        if condition.key in self._done:
            return
        store = self._current().store
        try:
            is_first = await store.claim_once(f"alert:{condition.key}", condition.once)
            if is_first:
                for key in condition.implied:
                    await store.claim_once(f"alert:{key}", condition.once)
        except errors.StoreUnavailable:
            return  # it has time until the store is back
        self._done.add(condition.key)
        if is_first:
            self._submit(condition)

    async def _report(self, condition: AlertCondition) -> None:
        """Report a condition that is not open, or confirm it."""
        gateway = self._current()
        now, monotonic = gateway.clock.now(), gateway.clock.monotonic()
        known = self._open.get(condition.key)
        if known is not None and known.fingerprint == condition.fingerprint:
            if now - known.last >= SYNC_SECONDS:
                await self._keep(msgspec.structs.replace(known, last=now))
            return
        claim = f"alert:{condition.key}:{condition.fingerprint}"
        if monotonic - self._claims.get(claim, float("-inf")) < SYNC_SECONDS:
            return
        seconds = gateway.settings.alerts.repeat_seconds if condition.flaps else CLAIM_SECONDS
        try:
            is_first = await gateway.store.claim_once(claim, seconds)
        except errors.StoreUnavailable:
            is_first = True
        if not is_first:
            self._claims[claim] = monotonic
            return
        id_ = self._submit(condition)
        await self._keep(
            records.OpenAlert(
                id_,
                condition.key,
                condition.event,
                condition.severity,
                condition.title,
                condition.over,
                condition.details,
                condition.fingerprint,
                since=now,
                last=now,
            )
        )

    def _submit(self, condition: AlertCondition) -> str:
        id_ = alerts.new_id()
        alert = alerts.make(
            id_,
            condition.event,
            condition.severity,
            condition.title,
            condition.details,
            now=self._current().clock.now(),
        )
        log.warning("alert raised", alert=id_, alert_event=alert.event, severity=alert.severity, title=alert.title)
        self._sender.submit(alert)
        return id_

    async def _keep(self, condition: records.OpenAlert) -> None:
        self._open[condition.key] = condition
        try:
            await records.keep_open(self._current().store, condition)
            self._unsaved.discard(condition.key)
        except errors.StoreUnavailable:
            self._unsaved.add(condition.key)

    async def _sync(self) -> None:
        """Learn what other processes opened and resolved, resolve what is over, and take over pending deliveries."""
        gateway = self._current()
        try:
            stored = await records.open_alerts(gateway.store)
            # What is only in memory is stored now, so that another process can resolve it should this one end.
            self._unsaved.difference_update(stored)
            for key in self._unsaved.copy():
                await self._keep(self._open[key])
                stored[key] = self._open[key]
            self._open = stored
            for condition in stored.copy().values():
                if gateway.clock.now() - condition.last >= HOLD_SECONDS:
                    await self._resolve(condition)
            await self._sender.hold()
            if gateway.clock.monotonic() - self._taken_over >= TAKE_OVER_SECONDS:
                self._taken_over = gateway.clock.monotonic()
                await self._sender.take_over()
            if gateway.clock.monotonic() - self._clients_reported >= CLIENTS_SECONDS:
                self._clients_reported = gateway.clock.monotonic()
                if clients := await _new_clients(gateway):
                    self._submit(conditions.new_clients(clients))
            if gateway.clock.monotonic() - self._forecast >= FORECAST_SECONDS:
                self._forecast = gateway.clock.monotonic()
                self._forecasts = await forecasts.read(gateway, self._open)
        except errors.StoreUnavailable:
            return  # logged by the ledger

    async def _resolve(self, condition: records.OpenAlert) -> None:
        """Close an open alert, and report that, if no other process does."""
        gateway = self._current()
        if not await gateway.store.claim_once(f"alert resolved:{condition.id}", 3600.0):
            return
        await gateway.store.drop_note(records.OPEN, condition.key)
        self._open.pop(condition.key, None)
        self._claims.clear()  # the condition may come back at once
        log.info("alert resolved", alert=condition.id, alert_event=condition.event)
        if gateway.settings.alerts.resolved:
            self._sender.submit(
                alerts.make(
                    alerts.new_id(),
                    condition.event,
                    condition.severity,
                    condition.over,
                    {
                        **condition.details,
                        "alert": condition.id,
                        "seconds": round(condition.last - condition.since),
                    },
                    now=gateway.clock.now(),
                    status="resolved",
                )
            )


async def _new_clients(gateway: Gateway) -> list[callers.NewClient]:
    """Return the clients that called for the first time since this was asked last, by any process; to one of those
    that ask at the same time. Raises StoreUnavailable."""
    store = gateway.store
    if not await store.claim_once("alert:new clients", CLIENTS_SECONDS / 2):
        return []
    # Processes write what they counted with a delay: what is younger is left to the next time.
    until = int(gateway.clock.now() - CLIENTS_DELAY)
    last = (await store.notes(CLIENTS_NOTE)).get("until", "")
    clients = []
    if last.isdecimal():
        seen = await store.callers()
        # In a thread: thirteen months of callers may be many.
        clients = await asyncio.to_thread(callers.new_clients, seen, int(last))
    # Last: where the store fails before, the next look finds the same clients.
    await store.put_note(CLIENTS_NOTE, "until", str(until))
    return [client for client in clients if client.first < until]
