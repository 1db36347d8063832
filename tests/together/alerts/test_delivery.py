"""Tests of alerts on their way: several processes, restarts, blocked receivers, pages and secrets."""

import asyncio
import io
import sys
from pathlib import Path

import pytest
from support import alert_receiver, running_proxy
from support.redis_server import RedisServer
from together.alerts.conftest import ONE, StartAlerts
from together.environment import StartEnvironment, target

from proxy import config
from proxy.alerts import records
from proxy.stores.protocols import LedgerEntry
from proxy.web.service import SERVICE


@pytest.mark.parametrize("upstream_exhausted", [True, False])
async def test_processes_on_one_store_report_once(
    start_alerts: StartAlerts, redis_server: RedisServer, upstream_exhausted: bool
) -> None:
    async with (
        start_alerts(
            store=redis_server.url, application={"parts": 100_000}, alerts={"thresholds": (1,)}
        ) as environment,
        running_proxy.serving(environment.gateway.settings, environment.time) as (service, other),
    ):
        second = service[SERVICE]
        if upstream_exhausted:
            account = environment.sandbox.default_application.application_id
            environment.sandbox.part_usage.record(account, 1000)
            assert [await environment.request(), (await other.get(target(ONE))).status] == [429, 429]
        else:
            entry = LedgerEntry("demo", "2023-11")
            await second.gateway.store.adjust(entry, 2000, 0)
        for gateway in (environment.gateway, second.gateway):
            await gateway.quota.refresh()
        for _ in range(5):
            await asyncio.gather(environment.monitor.evaluate(), second.alerts.evaluate())
            environment.time.advance(30)
        await environment.receiver.wait(1)
        assert len(environment.receiver.received) == 1
        assert len(await records.recent(second.gateway.store)) == 1


async def test_blocked_receivers_delay_no_request(start_alerts: StartAlerts, tmp_path: Path) -> None:
    """The receivers never answer while two hundred requests are served, and alerts go on being raised."""
    script = tmp_path / "blocked.py"
    script.write_text("import time\ntime.sleep(600)\n")
    command = config.CommandSettings((sys.executable, "-I", str(script)), timeout_seconds=60)
    async with start_alerts(
        application={"parts": 100_000}, alerts={"thresholds": tuple(range(1, 101)), "commands": (command,)}
    ) as environment:
        environment.receiver.statuses = [None]
        entry = LedgerEntry("demo", "2023-11")
        for number in range(20):
            await environment.gateway.store.adjust(entry, 1000 * (number + 1), 0)
            await environment.gateway.quota.refresh()
            await environment.monitor.evaluate()
            assert [await environment.request(f"&n={number}.{again}") for again in range(10)] == [200] * 10
        await environment.receiver.wait(1)
        assert len(environment.receiver.received) == 1
        pending = [each for each in await records.recent(environment.gateway.store) if each.is_pending]
        assert len(pending) == 20


async def test_pending_alert_is_delivered_by_the_next_process(start: StartEnvironment, tmp_path: Path) -> None:
    async with alert_receiver.running() as receiver:
        receiver.statuses = [503, 204]
        hook = config.WebhookSettings(config.WebhookUrl(receiver.url), timeout_seconds=60)
        state = {"store": f"sqlite:{tmp_path / 'state.sqlite'}", "alerts": {"webhooks": (hook,)}}
        async with start(admin=True, **state) as first:
            first.admin.service.alerts.send_test()
            await receiver.wait(1)
            while not (await records.recent(first.admin.service.gateway.store))[0].deliveries[0].attempts:
                await asyncio.sleep(0.01)
        async with start(admin=True, **state) as second:
            second.time.advance(60)
            await second.admin.service.alerts.evaluate()
            await receiver.wait(2)
            assert len({each.headers["webhook-id"] for each in receiver.received}) == 1


async def test_secrets_of_receivers_are_nowhere(
    start_alerts: StartAlerts, log_output: io.StringIO, tmp_path: Path
) -> None:
    dead = config.WebhookSettings(config.WebhookUrl("http://127.0.0.1:1/T0K3N"), name="dead")
    async with start_alerts(alerts={"webhooks": (dead,), "thresholds": (1,)}, application={"parts": 50}) as environment:
        await environment.request()
        await environment.monitor.evaluate()
        store = environment.gateway.store
        while not await store.notes(records.RECORDS) or "retried" not in log_output.getvalue():
            await asyncio.sleep(0.01)
        metrics = (await (await environment.proxy.get("/healthz")).text()) + repr(
            environment.gateway.metrics.measures()
        )
        everything = log_output.getvalue() + metrics + repr(await store.notes(records.RECORDS))
        everything += repr(environment.gateway.settings)
        assert "dead" in everything
        assert "T0K3N" not in everything
        assert alert_receiver.SECRET not in everything
