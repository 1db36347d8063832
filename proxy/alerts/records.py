"""Alerts in the store: the last ones with the state of each delivery, and the conditions that are reported as open.

They are notes, so that every worker, a restarted one, the admin interface and `v3bridge alerts list` read the same.
"""

from typing import Any, Literal, TypeVar

import msgspec

from proxy import config
from proxy.alerts.alert import Alert, Severity
from proxy.stores.protocols import NoteStore

RECORDS = "alerts"
OPEN = "open alerts"
RECORDS_MAX = 100  # last alerts that are kept

DeliveryState = Literal["pending", "delivered", "failed", "dropped"]
T = TypeVar("T", bound=msgspec.Struct)


class Delivery(msgspec.Struct):
    """Delivery of an alert to one receiver. `at` and `next_at` are of the last attempt and the next, in seconds since
    1970; `reason` is that of the last failure, or why it was dropped."""

    receiver: str
    state: DeliveryState = "pending"
    attempts: int = 0
    reason: str = ""
    at: float | None = None
    next_at: float | None = None


class AlertRecord(msgspec.Struct, frozen=True):
    """An alert with its deliveries; `made` is in seconds since 1970."""

    made: float
    alert: Alert
    deliveries: list[Delivery]

    @property
    def is_pending(self) -> bool:
        """Whether any delivery will be tried again."""
        return any(delivery.state == "pending" for delivery in self.deliveries)


class OpenAlert(msgspec.Struct, frozen=True):
    """Condition that was reported with `title` and is not over yet, which `over` will say.

    `last` is when a process last saw it, in seconds since 1970; `fingerprint` tells a changed condition, which is
    reported again.
    """

    id: str
    key: str
    event: config.AlertEvent
    severity: Severity
    title: str
    over: str
    details: dict[str, Any]
    fingerprint: str
    since: float
    last: float


async def keep(store: NoteStore, record: AlertRecord) -> None:
    """Store a record. Raises StoreUnavailable."""
    await store.put_note(RECORDS, record.alert.id, msgspec.json.encode(record).decode())


async def recent(store: NoteStore) -> list[AlertRecord]:
    """Return the last alerts, the newest first. Raises StoreUnavailable."""
    decoded = _decoded((await store.notes(RECORDS)).values(), AlertRecord)
    return sorted(decoded, key=lambda record: record.made, reverse=True)


async def prune(store: NoteStore) -> None:
    """Delete the oldest records beyond RECORDS_MAX. Raises StoreUnavailable."""
    for record in (await recent(store))[RECORDS_MAX:]:
        await store.drop_note(RECORDS, record.alert.id)


async def keep_open(store: NoteStore, condition: OpenAlert) -> None:
    """Store an open condition. Raises StoreUnavailable."""
    await store.put_note(OPEN, condition.key, msgspec.json.encode(condition).decode())


async def open_alerts(store: NoteStore) -> dict[str, OpenAlert]:
    """Return the open conditions by key. Raises StoreUnavailable."""
    return {alert.key: alert for alert in _decoded((await store.notes(OPEN)).values(), OpenAlert)}


def _decoded(texts: Any, kind: type[T]) -> list[T]:
    decoded = []
    for text in texts:
        try:
            decoded.append(msgspec.json.decode(text, type=kind))
        except msgspec.MsgspecError:
            continue  # of another version
    return decoded
