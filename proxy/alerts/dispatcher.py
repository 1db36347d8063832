"""Delivery of alerts in the background: retries with back-off, a bounded queue, and take-over after a restart.

Nothing waits for it: `submit` only starts tasks. A pending delivery is held by a lock in the store that expires, so
that another process, or this one after a restart, goes on with it. After a crash an attempt may be repeated; receivers
tell a repetition by the alert's id.
"""

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from proxy import errors
from proxy.alerts import alert as alerts
from proxy.alerts import receivers, records
from proxy.gateway.assembly import Gateway

DELAYS = (2.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0)
"""Seconds before each retry, half of them jitter at most; after the last the delivery has failed."""
PENDING_MAX = 100  # deliveries of one receiver that wait in a process; further ones are dropped
LEASE_SECONDS = 60.0  # that the lock on a pending alert outlives its process
CLOSE_SECONDS = 5.0  # that storing the last alerts may take at the end
RETRY_AFTER_MAX = 3600.0  # seconds of a Retry-After that are waited for

log = structlog.get_logger()


class Dispatcher:
    """Delivers alerts to the receivers of the current configuration. `sleep` is replaced in tests."""

    def __init__(
        self,
        current: Callable[[], Gateway],
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._current = current
        self._rng = rng or random.SystemRandom()
        self._sleep = sleep
        self._owner = secrets.token_hex(8)
        self._tasks: set[asyncio.Task[None]] = set()
        self._beginning: set[asyncio.Task[None]] = set()  # of them, those that have not stored their alert yet
        self._held: dict[str, records.AlertRecord] = {}  # pending, by the alert's id
        self._pending: dict[str, int] = defaultdict(int)
        self._sending: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def submit(self, alert: alerts.Alert) -> None:
        """Begin to deliver an alert to all receivers that want its event."""
        gateway = self._current()
        gateway.metrics.alerts[alert.event,] += 1
        wanted = [
            name
            for name, receiver in gateway.settings.alerts.receivers.items()
            if receivers.wants(receiver, alert.event)
        ]
        record = records.AlertRecord(gateway.clock.now(), alert, [records.Delivery(name) for name in wanted])
        self._held[alert.id] = record
        task = self._start(self._begin(record), f"alert {alert.event}")
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def hold(self) -> None:
        """Extend the locks on the alerts that are pending here. Raises StoreUnavailable."""
        for id_ in list(self._held):
            await self._current().store.lock(_lock(id_), self._owner, LEASE_SECONDS)

    async def take_over(self) -> None:
        """Go on with pending deliveries that no process holds. Raises StoreUnavailable."""
        store = self._current().store
        for record in await records.recent(store):
            id_ = record.alert.id
            if (
                not record.is_pending
                or id_ in self._held
                or not await store.lock(_lock(id_), self._owner, LEASE_SECONDS)
            ):
                continue
            # Read again: its last owner may have ended a delivery just before it released the lock.
            latest = next(
                (known for known in await records.recent(store) if known.alert.id == id_),
                record,
            )
            self._held[id_] = latest
            self._deliver(latest)

    async def close(self) -> None:
        """Stop; what is pending is left to the next process, which finds it in the store."""
        if self._beginning:
            await asyncio.wait(self._beginning, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for id_ in self._held:
            try:
                await self._current().store.unlock(_lock(id_), self._owner)
            except errors.StoreUnavailable:
                return  # the lock expires

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _begin(self, record: records.AlertRecord) -> None:
        """Store a new record and start its deliveries. Without a store it is delivered all the same."""
        store = self._current().store
        try:
            await store.lock(_lock(record.alert.id), self._owner, LEASE_SECONDS)
            await records.keep(store, record)
        except errors.StoreUnavailable:
            pass  # logged by the ledger
        self._deliver(record)

    def _deliver(self, record: records.AlertRecord) -> None:
        for delivery in record.deliveries:
            if delivery.state != "pending":
                continue
            if self._pending[delivery.receiver] >= PENDING_MAX:
                self._end(record, delivery, "dropped", f"{PENDING_MAX} alerts are waiting for this receiver")
                continue
            self._pending[delivery.receiver] += 1
            self._start(self._until_delivered(record, delivery), f"alert to {delivery.receiver}")
        if not record.is_pending:
            self._start(self._save(record), "alert record")

    async def _until_delivered(self, record: records.AlertRecord, delivery: records.Delivery) -> None:
        """Try until the alert is delivered, or given up."""
        try:
            if delivery.next_at is not None:  # taken over from another process
                await self._sleep(max(0.0, delivery.next_at - self._current().clock.now()))
            while delivery.state == "pending":
                delay = await self._attempt(record, delivery)
                await self._save(record)
                await self._sleep(delay)
        finally:
            self._pending[delivery.receiver] -= 1

    async def _attempt(self, record: records.AlertRecord, delivery: records.Delivery) -> float:
        """Try once; return the seconds until the next attempt, 0.0 where there is none."""
        gateway, name = self._current(), delivery.receiver
        receiver = gateway.settings.alerts.receivers.get(name)
        if receiver is None:
            self._end(record, delivery, "dropped", "the configuration no longer has this receiver")
            return 0.0
        # One at a time: a receiver that has come back after an outage is not flooded.
        async with self._sending[name]:
            delivery.at = gateway.clock.now()
            outcome = await receivers.deliver(receiver, record.alert, delivery.at)
        delivery.attempts += 1
        delivery.reason = outcome.reason
        if not outcome.reason:
            self._end(record, delivery, "delivered", "")
            return 0.0
        if outcome.final or delivery.attempts > len(DELAYS):
            self._end(record, delivery, "failed", outcome.reason)
            return 0.0
        delay = self._delay(delivery.attempts, outcome.retry_after)
        delivery.next_at = gateway.clock.now() + delay
        gateway.metrics.alert_deliveries[name, "retried"] += 1
        log.info(
            "alert delivery retried",
            receiver=name,
            alert=record.alert.id,
            reason=outcome.reason,
            retry_in=round(delay, 1),
        )
        return delay

    def _delay(self, attempts: int, retry_after: int | None) -> float:
        # Jitter: alerts that failed together do not come back together.
        delay = DELAYS[attempts - 1] * (0.5 + self._rng.random() / 2)
        return max(delay, min(retry_after or 0.0, RETRY_AFTER_MAX))

    def _end(
        self, record: records.AlertRecord, delivery: records.Delivery, state: records.DeliveryState, reason: str
    ) -> None:
        delivery.state, delivery.reason, delivery.next_at = state, reason, None
        self._current().metrics.alert_deliveries[delivery.receiver, state] += 1
        if state == "delivered":
            log.info("alert delivered", receiver=delivery.receiver, alert=record.alert.id, attempts=delivery.attempts)
        else:
            log.error(
                "alert delivery failed",
                receiver=delivery.receiver,
                alert=record.alert.id,
                alert_event=record.alert.event,
                attempts=delivery.attempts,
                reason=reason,
            )

    async def _save(self, record: records.AlertRecord) -> None:
        """Store the state of a record, and release it once nothing is pending."""
        store, id_ = self._current().store, record.alert.id
        try:
            await records.keep(store, record)
            if not record.is_pending and self._held.pop(id_, None) is not None:
                await store.unlock(_lock(id_), self._owner)
                await records.prune(store)
        except errors.StoreUnavailable:
            if not record.is_pending:
                self._held.pop(id_, None)


def _lock(id_: str) -> str:
    return f"alert {id_}"
