"""Alerts: receivers, conditions that are open, and the last alerts with their deliveries."""

from collections.abc import Iterable

import msgspec

from proxy import config, errors
from proxy.alerts import alert as alert_values
from proxy.alerts import records
from proxy.gateway.assembly import Gateway
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminPage, PageData, Query


class ReceiverRow(msgspec.Struct, frozen=True):
    """Receiver: a `webhook` with the host that it is at, or a `command` with its program; `events` is empty for all.
    `is_signed`: requests have a signature; null for commands."""

    name: str
    kind: str
    target: str
    events: tuple[str, ...]
    is_signed: bool | None


class AlertsPage(PageData, frozen=True):
    """Receivers, open conditions and the last alerts, the newest first; `events` are all that there are, with their
    meanings. `store_failure`: why the store cannot be used; `open` then are those that the worker that responds knows,
    and `alerts` is empty."""

    receivers: tuple[ReceiverRow, ...]
    open: tuple[records.OpenAlert, ...]
    alerts: tuple[records.AlertRecord, ...]
    events: dict[str, str]
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> AlertsPage:
    gateway, store_failure = context.service.gateway, None
    try:
        conditions, last = await open_conditions(gateway), await records.recent(gateway.store)
    except errors.StoreUnavailable as error:
        conditions, last, store_failure = _oldest_first(context.service.alerts.open), [], error.message
    return AlertsPage(
        receivers=tuple(_receiver(name, receiver) for name, receiver in gateway.settings.alerts.receivers.items()),
        open=conditions,
        alerts=tuple(last),
        events=alert_values.MEANINGS,
        store_failure=store_failure,
    )


async def open_conditions(gateway: Gateway) -> tuple[records.OpenAlert, ...]:
    """Return the open conditions of all workers and machines, the oldest first. Raises StoreUnavailable."""
    return _oldest_first((await records.open_alerts(gateway.store)).values())


def _oldest_first(conditions: Iterable[records.OpenAlert]) -> tuple[records.OpenAlert, ...]:
    return tuple(sorted(conditions, key=lambda condition: condition.since))


def _receiver(name: str, receiver: config.WebhookSettings | config.CommandSettings) -> ReceiverRow:
    events = () if receiver.events == "all" else receiver.events
    if isinstance(receiver, config.CommandSettings):
        return ReceiverRow(name, "command", receiver.command[0], events, None)
    return ReceiverRow(name, "webhook", receiver.url.shown, events, receiver.secret is not None)


async def _test(context: AdminContext, _: Query) -> ActionResult:
    if not context.service.gateway.settings.alerts.receivers:
        return ActionResult("The configuration has no receivers.")
    context.service.alerts.send_test()
    return ActionResult("A test alert is on its way to every receiver; its deliveries are shown below.")


PAGE = AdminPage("alerts", "Alerts", "Receivers of alerts, open conditions and the last alerts.", AlertsPage, _data)
TEST = AdminAction("/alerts/test", "alerts", "Send a test alert to every receiver.", _test)
