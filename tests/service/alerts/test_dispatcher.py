"""Tests of the delivery: retries, back-off, bounds, and take-over by another process."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from service.alerts.conftest import MakeGateway
from support import alert_receiver

from proxy import config
from proxy.alerts import alert as alerts
from proxy.alerts import dispatcher, records
from proxy.gateway.assembly import Gateway
from proxy.kit import clock
from proxy.stores.open import MemoryStore


class Waits:
    """The `sleep` of a dispatcher: notes the seconds, and turns the clock instead; `blocked` waits for ever."""

    def __init__(self, time: clock.ManualClock) -> None:
        self.seconds: list[float] = []
        self.blocked = False
        self.waiting = asyncio.Event()
        self._time = time

    async def __call__(self, seconds: float) -> None:
        if not seconds:
            return
        self.seconds.append(seconds)
        self.waiting.set()
        if self.blocked:
            await asyncio.Event().wait()
        self._time.advance(seconds)


@pytest.fixture
async def receiver() -> AsyncIterator[alert_receiver.AlertReceiver]:
    async with alert_receiver.running() as running:
        yield running


@pytest.fixture
def waits(time: clock.ManualClock) -> Waits:
    return Waits(time)


def webhook(receiver: alert_receiver.AlertReceiver, **changes: Any) -> config.WebhookSettings:
    return config.WebhookSettings(config.WebhookUrl(receiver.url), **{"name": "hook", "timeout_seconds": 60, **changes})


def alert(number: int = 1, event: Any = "breaker.open") -> alerts.Alert:
    return alerts.make(f"msg_{number}", event, "critical", "It is open.", {}, now=0)


def sender(gateway: Gateway, waits: Waits) -> dispatcher.Dispatcher:
    return dispatcher.Dispatcher(lambda: gateway, rng=random.Random(1), sleep=waits)


async def ended(store: MemoryStore, count: int = 1) -> list[records.AlertRecord]:
    """The records, once so many have no pending delivery."""
    while True:
        found = [each for each in await records.recent(store) if not each.is_pending]
        if len(found) >= count:
            return found
        await asyncio.sleep(0.005)


async def test_delivered_alert_is_recorded(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    gateway = make_gateway(webhooks=(webhook(receiver),))
    sender(gateway, waits).submit(alert())
    (record,) = await ended(store)
    assert record.deliveries == [records.Delivery("hook", "delivered", 1, at=record.made)]
    assert gateway.metrics.alert_deliveries == {("hook", "delivered"): 1}
    assert gateway.metrics.alerts == {("breaker.open",): 1}


async def test_failures_are_retried_with_growing_waits(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    receiver.statuses = [500, 503, 429, 204]
    gateway = make_gateway(webhooks=(webhook(receiver),))
    sender(gateway, waits).submit(alert())
    (record,) = await ended(store)
    assert (record.deliveries[0].state, record.deliveries[0].attempts) == ("delivered", 4)
    assert {each.headers["webhook-id"] for each in receiver.received} == {"msg_1"}
    stamps = [int(each.headers["webhook-timestamp"]) for each in receiver.received]
    assert stamps == sorted(set(stamps))
    for waited, most in zip(waits.seconds, dispatcher.DELAYS, strict=False):
        assert most / 2 <= waited <= most
    assert gateway.metrics.alert_deliveries["hook", "retried"] == 3


async def test_retry_waits_as_long_as_the_receiver_asks(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    receiver.statuses, receiver.headers = [429, 204], {"Retry-After": "30"}
    sender(make_gateway(webhooks=(webhook(receiver),)), waits).submit(alert())
    await ended(store)
    assert waits.seconds == [30]


async def test_delivery_is_given_up_after_the_last_retry(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    receiver.statuses = [500]
    gateway = make_gateway(webhooks=(webhook(receiver),))
    sender(gateway, waits).submit(alert())
    (record,) = await ended(store)
    delivery = record.deliveries[0]
    assert (delivery.state, delivery.attempts, delivery.reason) == ("failed", len(dispatcher.DELAYS) + 1, "HTTP 500")
    assert len(receiver.received) == len(dispatcher.DELAYS) + 1
    assert gateway.metrics.alert_deliveries["hook", "failed"] == 1


async def test_mistake_is_not_retried(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    receiver.statuses = [404]
    sender(make_gateway(webhooks=(webhook(receiver),)), waits).submit(alert())
    (record,) = await ended(store)
    assert (record.deliveries[0].state, len(receiver.received), waits.seconds) == ("failed", 1, [])


async def test_receivers_get_only_their_events(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    hooks = (webhook(receiver, events=("client.new",)), webhook(receiver, name="other"))
    sender(make_gateway(webhooks=hooks), waits).submit(alert())
    (record,) = await ended(store)
    assert [each.receiver for each in record.deliveries] == ["other"]


async def test_blocked_receiver_delays_no_other_and_its_queue_is_bounded(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    async with alert_receiver.running() as blocked:
        blocked.statuses = [None]
        gateway = make_gateway(webhooks=(webhook(blocked, name="blocked"), webhook(receiver)))
        sending = sender(gateway, waits)
        count = dispatcher.PENDING_MAX + 3
        for number in range(count):
            sending.submit(alert(number))
        await receiver.wait(dispatcher.PENDING_MAX)
        await blocked.wait(1)
        # One at a time, although a hundred wait.
        assert len(blocked.received) == 1
        while gateway.metrics.alert_deliveries["hook", "delivered"] < dispatcher.PENDING_MAX:
            await asyncio.sleep(0.005)
        assert gateway.metrics.alert_deliveries["blocked", "dropped"] == 3
        assert len(await records.recent(store)) == records.RECORDS_MAX
        await sending.close()


async def test_alert_that_was_just_submitted_survives_a_stop(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    gateway = make_gateway(webhooks=(webhook(receiver),))
    first = sender(gateway, waits)
    first.submit(alert())
    await first.close()
    (record,) = await records.recent(store)
    if record.is_pending:
        await sender(gateway, waits).take_over()
    assert (await ended(store))[0].deliveries[0].state == "delivered"


async def test_pending_alert_of_a_killed_process_is_taken_over_after_its_lease(
    make_gateway: MakeGateway,
    receiver: alert_receiver.AlertReceiver,
    waits: Waits,
    store: MemoryStore,
    time: clock.ManualClock,
) -> None:
    receiver.statuses, waits.blocked = [500, 204], True
    gateway = make_gateway(webhooks=(webhook(receiver),))
    killed, heir = sender(gateway, waits), sender(gateway, waits)
    killed.submit(alert())
    await waits.waiting.wait()
    time.advance(dispatcher.LEASE_SECONDS - 1)
    await killed.hold()
    time.advance(dispatcher.LEASE_SECONDS - 1)
    await heir.take_over()
    assert len(receiver.received) == 1
    time.advance(2)
    waits.blocked = False
    await heir.take_over()
    (record,) = await ended(store)
    assert record.deliveries[0].state == "delivered"


async def test_alert_of_a_removed_receiver_is_dropped(
    make_gateway: MakeGateway, receiver: alert_receiver.AlertReceiver, waits: Waits, store: MemoryStore
) -> None:
    receiver.statuses, waits.blocked = [500], True
    before = sender(make_gateway(webhooks=(webhook(receiver),)), waits)
    before.submit(alert())
    await waits.waiting.wait()
    await before.close()
    waits.blocked = False
    await sender(make_gateway(), waits).take_over()
    (record,) = await ended(store)
    assert (record.deliveries[0].state, len(receiver.received)) == ("dropped", 1)
