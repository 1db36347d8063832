"""Tests of alerts from their causes to a receiver: each event is provoked on the sandbox."""

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration.environment import target
from support import alert_receiver, running_proxy
from support.redis_server import RedisServer

from proxy import config
from proxy.alerts import monitor, records
from proxy.alerts.monitor import AlertMonitor
from proxy.gateway import callers
from proxy.gateway.assembly import Gateway
from proxy.kit import clock
from proxy.sandbox import app, faults, settings
from proxy.sandbox.catalog import store
from proxy.sandbox.identity import keys
from proxy.stores.protocols import LedgerEntry
from proxy.web.service import SERVICE, RunningService

ONE = {"mpn": "SN74S74N"}


@dataclass
class AlertEnvironment:
    """A proxy on a sandbox, whose monitor evaluates when it is told, and a receiver of its alerts."""

    proxy: running_proxy.ProxyClient
    service: RunningService
    sandbox: app.Sandbox
    receiver: alert_receiver.AlertReceiver
    time: clock.ManualClock
    recorders: list[callers.CallerRecorder]

    @property
    def monitor(self) -> AlertMonitor:
        return self.service.alerts

    @property
    def gateway(self) -> Gateway:
        return self.service.gateway

    async def request(self, more: str = "", key: str = running_proxy.KEY) -> int:
        return (await self.proxy.get(target(ONE, more=more, key=key))).status

    async def write_callers(self) -> None:
        """Write who called, as the recorder does every few seconds."""
        for recorder in self.recorders:
            await recorder.write()

    async def pass_time(self, seconds: float) -> None:
        """Evaluate as often as the monitor does while the time passes."""
        for _ in range(int(seconds // monitor.SYNC_SECONDS) + 1):
            await self.monitor.evaluate()
            self.time.advance(monitor.SYNC_SECONDS)
        await self.monitor.evaluate()

    async def next_alert(self) -> Any:
        """Evaluate, and return the next alert that comes."""
        count = len(self.receiver.received)
        await self.monitor.evaluate()
        return (await self.receiver.wait(count + 1))[count].json


StartAlerts = Callable[..., AbstractAsyncContextManager[AlertEnvironment]]


@pytest.fixture
def start_alerts(
    catalog: store.Catalog, signing_key: keys.SigningKey, time: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> StartAlerts:
    """`alerts` are settings of the alerts beside the webhook, `sandbox` those of the sandbox; the rest as usual."""
    recorders: list[callers.CallerRecorder] = []
    monkeypatch.setattr(AlertMonitor, "start", lambda self: None)
    monkeypatch.setattr(callers.CallerRecorder, "start", lambda self: recorders.append(self))

    @asynccontextmanager
    async def started(
        sandbox: dict[str, Any] | None = None, alerts: dict[str, Any] | None = None, **changes: Any
    ) -> AsyncIterator[AlertEnvironment]:
        chosen = settings.SandboxSettings(**(sandbox or {}))
        async with (
            alert_receiver.running() as receiver,
            app.serve(chosen, clock=time, catalog=catalog, key=signing_key) as upstream,
        ):
            hook = config.WebhookSettings(
                config.WebhookUrl(receiver.url),
                secret=config.WebhookSecret(alert_receiver.SECRET),
                timeout_seconds=60,
            )
            own = {
                "client_id": config.ClientId(upstream.default_application.client_id),
                "client_secret": config.Secret(upstream.default_application.client_secret),
            }
            changes["application"] = own | changes.get("application", {})
            changes["alerts"] = {"webhooks": (hook,), **(alerts or {})}
            made = running_proxy.settings(upstream.graphql_url, upstream.token_url, **changes)
            async with running_proxy.serving(made, time) as (service, proxy):
                yield AlertEnvironment(proxy, service[SERVICE], upstream, receiver, time, recorders)

    return started


def fault(environment: AlertEnvironment, *texts: str) -> None:
    """Replace the faults of the sandbox."""
    environment.sandbox.faults.replace([each for text in texts for each in faults.parse_faults(text)])


def events(environment: AlertEnvironment) -> list[tuple[str, str]]:
    return environment.receiver.events


async def test_highest_threshold_is_reported_once_in_a_period(start_alerts: StartAlerts) -> None:
    plan = {"parts": 100, "apikeys": (config.ApiKeySettings(config.digest(running_proxy.KEY), "erp", parts=8),)}
    async with start_alerts(application=plan, alerts={"thresholds": (5, 25, 95)}) as environment:
        assert await environment.request() == 200
        alert = await environment.next_alert()
        assert (alert["event"], alert["severity"]) == ("quota.threshold", "warning")
        assert alert["details"] == {
            "quota_account": "demo/erp",
            "period": "2023-11",
            "used": 3,
            "uncertain": 0,
            "limit": 8,
            "remaining": 5,
            "threshold": 25,
        }
        assert alert["title"] == "demo/erp has used 25 % of its 8 parts (2023-11)."
        assert environment.receiver.received[0].is_signed
        await environment.pass_time(120)
        # Not even by a process that starts anew.
        await AlertMonitor(lambda: environment.gateway).evaluate()
        environment.time.advance(20 * 86_400)
        await environment.gateway.quota.refresh()
        assert await environment.request() == 200
        assert (await environment.next_alert())["details"]["period"] == "2023-12"
        assert len(environment.receiver.received) == 2


async def test_used_limit_is_reported_when_requests_are_refused(start_alerts: StartAlerts) -> None:
    async with start_alerts(application={"parts": 4}, alerts={"thresholds": ()}) as environment:
        assert await environment.request() == 200
        assert await environment.request() == 429
        alert = await environment.next_alert()
        assert (alert["event"], alert["details"]["remaining"]) == ("quota.exhausted", 1)
        assert alert["details"]["cause"] == "limit of the configuration"


async def test_exhaustion_by_the_upstream_is_reported_until_it_is_reopened(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        account = environment.sandbox.default_application.application_id
        environment.sandbox.part_usage.record(account, 1000)
        assert await environment.request() == 429
        alert = await environment.next_alert()
        assert (alert["event"], alert["status"], alert["severity"]) == ("quota.exhausted", "firing", "critical")
        assert (alert["details"]["quota_account"], alert["details"]["until"]) == ("demo", "2023-12-01T00:00:00Z")
        await environment.pass_time(7200)
        assert len(environment.receiver.received) == 1
        await environment.gateway.store.clear_exhausted("demo")
        await environment.gateway.quota.refresh()
        await environment.pass_time(120)
        resolved = (await environment.receiver.wait(2))[1].json
        assert (resolved["status"], resolved["details"]["alert"]) == ("resolved", alert["id"])
        assert await environment.request() == 429
        assert (await environment.next_alert())["status"] == "firing"


async def test_short_opening_of_a_breaker_is_not_missed_and_flapping_is_reported_once(
    start_alerts: StartAlerts,
) -> None:
    upstream = {"breaker": config.BreakerSettings(failures=2, cooldown_seconds=5)}
    async with start_alerts(upstream=upstream) as environment:
        for _ in range(3):
            fault(environment, "5xx on=graphql status=500")
            assert [await environment.request() for _ in range(3)] == [502, 502, 503]
            fault(environment)
            environment.time.advance(10)
            assert await environment.request() == 200
            # Closed again when the monitor looks.
            await environment.monitor.evaluate()
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["details"]["service"]) == ("breaker.open", "graphql")
        await environment.pass_time(120)
        await environment.receiver.wait(2)
        assert events(environment) == [("breaker.open", "firing"), ("breaker.open", "resolved")]


async def test_refused_credentials_are_reported(start_alerts: StartAlerts) -> None:
    wrong = {"client_secret": config.Secret("wr0ngPLANTED")}
    async with start_alerts(application=wrong) as environment:
        assert await environment.request() == 502
        alert = await environment.next_alert()
        assert (alert["event"], alert["details"]["application"]) == ("token.refused", "demo")
        assert "invalid_client" in alert["details"]["reason"]
        assert b"PLANTED" not in environment.receiver.received[0].body


async def test_token_limit_is_reported(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        fault(environment, "429 on=token retry_after=40")
        assert await environment.request() == 503
        assert (await environment.next_alert())["event"] == "token.limit"
        fault(environment)
        environment.time.advance(60)
        assert await environment.request() == 200
        await environment.pass_time(120)
        await environment.receiver.wait(2)
        assert events(environment) == [("token.limit", "firing"), ("token.limit", "resolved")]


async def test_failing_token_requests_are_reported_after_three(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        fault(environment, "5xx on=token status=500")
        for _ in range(3):
            assert events(environment) == []
            assert await environment.request() in (502, 503)
            await environment.monitor.evaluate()
            environment.time.advance(30)
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["details"]["failures"]) == ("token.failing", 3)


async def test_unavailable_store_is_reported(start_alerts: StartAlerts, redis_server: RedisServer) -> None:
    async with start_alerts(store=redis_server.url) as environment:
        assert await environment.request() == 200
        redis_server.stop()
        try:
            await environment.gateway.quota.refresh()
            alert = await environment.next_alert()
            assert alert["event"] == "store.unavailable"
            await environment.pass_time(30)
            assert len(environment.receiver.received) == 1
        finally:
            redis_server.start()
        await environment.gateway.quota.refresh()
        await environment.pass_time(120)
        await environment.receiver.wait(2)
        assert events(environment)[1] == ("store.unavailable", "resolved")


async def test_schema_drift_is_reported_and_again_when_more_is_gone(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        assert (await environment.monitor.schema.check()).state == "complete"
        fault(environment, "missing-field field=SupPart.octopartUrl")
        await environment.monitor.schema.check()
        alert = await environment.next_alert()
        assert (alert["event"], alert["severity"]) == ("schema.drift", "critical")
        assert [each["place"] for each in alert["details"]["drifts"]] == ["SupPart.octopartUrl"]
        assert "Part.octopart_url" in alert["details"]["affected"]
        fault(environment, "missing-field field=SupPart.octopartUrl", "missing-field field=SupPart.shortDescription")
        await environment.monitor.schema.check()
        assert (await environment.next_alert())["details"]["count"] == 2
        fault(environment)
        await environment.monitor.schema.check()
        await environment.pass_time(120)
        assert (await environment.receiver.wait(3))[2].json["status"] == "resolved"


async def test_new_clients_of_some_minutes_are_one_alert(start_alerts: StartAlerts) -> None:
    async def call(user_agent: str) -> None:
        await environment.proxy.get(target(ONE), headers={"User-Agent": user_agent})

    async with start_alerts() as environment:
        await call("bom-tool/1")
        await environment.write_callers()
        await environment.pass_time(monitor.CLIENTS_SECONDS)
        # Where recording has just begun, everything is new.
        environment.time.advance(callers.LEARNING_SECONDS)
        await environment.pass_time(monitor.CLIENTS_SECONDS)
        assert events(environment) == []
        for number in range(12):
            await call(f"crawler/{number}")
        await call("bom-tool/1")
        await environment.write_callers()
        await environment.pass_time(2 * monitor.CLIENTS_SECONDS)
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["severity"], alert["details"]["count"]) == ("client.new", "info", 12)
        assert alert["title"] == "12 programs use API keys that they had not used before."
        assert len(alert["details"]["clients"]) == 10
        await call("<!channel>")
        await environment.write_callers()
        await environment.pass_time(2 * monitor.CLIENTS_SECONDS)
        second = (await environment.receiver.wait(2))[1].json
        assert second["details"]["clients"][0]["user_agent"] == "<!channel>"
        assert "<" not in second["text"]


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
