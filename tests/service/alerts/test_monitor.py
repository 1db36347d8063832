"""Tests of the monitor: each condition is reported once over all processes, and when it is over."""

import asyncio
from typing import Any

import pytest
from service.alerts.conftest import MakeGateway
from support import alert_gateway, alert_receiver

from proxy import config, errors
from proxy.alerts import alert as alerts
from proxy.alerts import dispatcher, monitor, records
from proxy.gateway import callers
from proxy.gateway.assembly import Gateway
from proxy.gateway.quota.accounts import QuotaAccount
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.telemetry.callers import Caller, CallerSeen

PLAN = QuotaAccount("demo", 1000, "month")
ERROR = errors.CredentialsRefused("the identity service refuses application demo: invalid_client")


class Submissions(dispatcher.Dispatcher):
    """Keeps what it is given instead of sending it."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(lambda: gateway)
        self.alerts: list[alerts.Alert] = []

    def submit(self, alert: alerts.Alert) -> None:
        self.alerts.append(alert)

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(each.event, each.status) for each in self.alerts]


class Process:
    """A process with a monitor."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.sent = Submissions(gateway)
        self.monitor = monitor.AlertMonitor(lambda: gateway, sender=self.sent)

    def refuse(self, error: errors.CredentialsRefused | None = ERROR) -> None:
        tokens = alert_gateway.tokens(self.gateway)
        tokens.refusals = {} if error is None else {"demo": error}


@pytest.fixture
def processes(make_gateway: MakeGateway) -> list[Process]:
    return [Process(make_gateway(applications=("demo",), repeat_seconds=600)) for _ in range(3)]


async def evaluate(processes: list[Process], time: clock.ManualClock, seconds: float) -> None:
    for _ in range(int(seconds // 5)):
        for each in processes:
            await each.monitor.evaluate()
        time.advance(5)


def sent(processes: list[Process]) -> list[tuple[str, str]]:
    return [event for each in processes for event in each.sent.events]


async def test_condition_is_over_when_no_process_sees_it(processes: list[Process], time: clock.ManualClock) -> None:
    for each in processes:
        each.refuse()
    await evaluate(processes, time, 60)
    reporting = next(each for each in processes if each.sent.alerts)
    reporting.refuse(None)
    await evaluate(processes, time, 300)  # others still see it
    assert sent(processes) == [("token.refused", "firing")]
    for each in processes:
        each.refuse(None)
    await evaluate(processes, time, monitor.HOLD_SECONDS - 20)
    assert len(sent(processes)) == 1
    await evaluate(processes, time, 60)
    assert sorted(sent(processes)) == [("token.refused", "firing"), ("token.refused", "resolved")]
    first = reporting.sent.alerts[0]
    resolved = next(each for one in processes for each in one.sent.alerts if each.status == "resolved")
    assert resolved.details["alert"] == first.id
    assert resolved.details["seconds"] >= 300


async def test_end_is_reported_after_the_reporting_process_has_died(
    processes: list[Process], time: clock.ManualClock
) -> None:
    first, *others = processes
    first.refuse()
    await first.monitor.evaluate()
    await evaluate(others, time, 200)
    assert sent(others) == [("token.refused", "resolved")]


async def test_restart_does_not_repeat(
    processes: list[Process], time: clock.ManualClock, make_gateway: MakeGateway
) -> None:
    first = processes[0]
    first.refuse()
    alert_gateway.quota(first.gateway).use(PLAN, 600)
    await evaluate([first], time, 30)
    assert len(first.sent.alerts) == 2
    restarted = Process(first.gateway)
    await evaluate([restarted], time, 3600)
    assert restarted.sent.alerts == []


async def test_flapping_condition_is_reported_once_in_the_repeat_time(
    processes: list[Process], time: clock.ManualClock
) -> None:
    first = processes[0]
    for _ in range(3):
        first.refuse()
        await evaluate([first], time, 20)
        first.refuse(None)
        await evaluate([first], time, 130)
    assert first.sent.events == [("token.refused", "firing"), ("token.refused", "resolved")]
    time.advance(600)
    first.refuse()
    await evaluate([first], time, 20)
    assert first.sent.events[2:] == [("token.refused", "firing")]


async def test_end_is_silent_where_the_setting_says_so(make_gateway: MakeGateway, time: clock.ManualClock) -> None:
    process = Process(make_gateway(applications=("demo",), resolved=False))
    process.refuse()
    await evaluate([process], time, 20)
    process.refuse(None)
    await evaluate([process], time, 200)
    assert process.sent.events == [("token.refused", "firing")]
    assert await records.open_alerts(process.gateway.store) == {}


async def test_higher_threshold_is_reported_later_and_lower_ones_never(
    processes: list[Process], time: clock.ManualClock
) -> None:
    for used in (810, 820, 600, 960, 300, 970):
        for each in processes:
            alert_gateway.quota(each.gateway).use(PLAN, used)
        await evaluate(processes, time, 20)
    thresholds = [each.details["threshold"] for one in processes for each in one.sent.alerts]
    assert thresholds == [80, 95]


class FailingStore(MemoryStore):
    """A store that can be made unavailable."""

    failing = False

    async def claim_once(self, key: str, seconds: float) -> bool:
        self._check()
        return await super().claim_once(key, seconds)

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        self._check()
        await super().put_note(kind, owner, text)

    async def notes(self, kind: str) -> dict[str, str]:
        self._check()
        return await super().notes(kind)

    def _check(self) -> None:
        if self.failing:
            raise errors.StoreUnavailable("the store is away")


async def test_without_a_store_a_process_reports_for_itself_and_once(time: clock.ManualClock) -> None:
    store = FailingStore(time)
    process = Process(alert_gateway.make(time, store, ("demo",)))
    quota = alert_gateway.quota(process.gateway)
    await process.monitor.evaluate()
    store.failing, quota.store_available = True, False
    quota.use(PLAN, 600)
    await evaluate([process], time, 120)
    # A threshold has time until the store is back.
    assert process.sent.events == [("store.unavailable", "firing")]
    store.failing, quota.store_available = False, True
    await evaluate([process], time, 30)
    assert process.sent.events[1:] == [("quota.threshold", "firing")]
    await evaluate([process], time, 120)
    assert process.sent.events[2:] == [("store.unavailable", "resolved")]


async def test_failing_evaluation_is_not_the_last_one(
    make_gateway: MakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = make_gateway(applications=("demo",))
    process = Process(gateway)
    running = monitor.AlertMonitor(lambda: gateway, sender=process.sent, interval=0.001)
    attempts: list[Any] = []
    usual = running.evaluate

    async def evaluate_once_wrong() -> None:
        attempts.append(None)
        if len(attempts) == 1:
            raise RuntimeError("a mistake")
        await usual()

    monkeypatch.setattr(running, "evaluate", evaluate_once_wrong)
    monkeypatch.setattr(running.schema, "start", lambda: None)
    process.refuse()
    running.start()
    while not process.sent.alerts:
        await asyncio.sleep(0.001)
    await running.close()


async def test_reload_changes_receivers_and_repeats_nothing(
    make_gateway: MakeGateway, time: clock.ManualClock, store: MemoryStore
) -> None:
    async with alert_receiver.running() as before, alert_receiver.running() as after:
        hooks = [config.WebhookSettings(config.WebhookUrl(each.url), timeout_seconds=60) for each in (before, after)]
        gateways = [make_gateway(applications=("demo",), webhooks=(hook,)) for hook in hooks]
        current = gateways[0]
        running = monitor.AlertMonitor(lambda: current)
        for gateway in gateways:
            alert_gateway.tokens(gateway).refusals = {"demo": ERROR}
        await running.evaluate()
        await before.wait(1)
        current = gateways[1]
        time.advance(20)
        await running.evaluate()
        alert_gateway.quota(current).use(PLAN, 600)
        await running.evaluate()
        assert (await after.wait(1))[0].json["event"] == "quota.threshold"
        await running.close()
        assert (len(before.received), len(after.received)) == (1, 1)


class UnreadableCallers(MemoryStore):
    """A store that cannot be read while `failing`, where callers are concerned."""

    failing = False

    async def callers(self) -> list[CallerSeen]:
        if self.failing:
            raise errors.StoreUnavailable("the store is away")
        return await super().callers()


async def test_new_client_is_reported_after_the_store_failed(time: clock.ManualClock) -> None:
    store = UnreadableCallers(time)
    process = Process(alert_gateway.make(time, store))
    begin = int(time.now())
    await store.add_callers("1", [CallerSeen(Caller("demo", "erp", "parts/match", "old/1"), begin, begin)], [])
    time.advance(callers.LEARNING_SECONDS)
    await evaluate([process], time, monitor.CLIENTS_SECONDS)
    first = int(time.now())
    await store.add_callers("2", [CallerSeen(Caller("demo", "erp", "parts/match", "new/1"), first, first)], [])
    store.failing = True
    await evaluate([process], time, 2 * monitor.CLIENTS_SECONDS)
    assert process.sent.events == []
    store.failing = False
    await evaluate([process], time, 2 * monitor.CLIENTS_SECONDS)
    assert process.sent.events == [("client.new", "firing")]
