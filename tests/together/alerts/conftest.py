"""Fixtures: a proxy on a sandbox, whose monitor evaluates when it is told, and a receiver of its alerts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from support import alert_receiver, running_proxy
from together.environment import target

import nexar_sandbox
from proxy import config
from proxy.alerts import monitor, records
from proxy.alerts.monitor import AlertMonitor
from proxy.gateway import callers
from proxy.gateway.assembly import Gateway
from proxy.kit import clock
from proxy.web.service import SERVICE, RunningService

ONE = {"mpn": "SN74S74N"}


@dataclass
class AlertEnvironment:
    """A proxy on a sandbox, whose monitor evaluates when it is told, and a receiver of its alerts."""

    proxy: running_proxy.ProxyClient
    service: RunningService
    sandbox: nexar_sandbox.Sandbox
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

    async def delivered(self) -> None:
        """Wait until no alert is pending: another process takes over what is delivered for too long."""
        async with asyncio.timeout(60):
            while any(each.is_pending for each in await records.recent(self.gateway.store)):
                await asyncio.sleep(0.01)

    def fault(self, *texts: str) -> None:
        """Replace the faults of the sandbox."""
        self.sandbox.faults.replace([each for text in texts for each in nexar_sandbox.parse_faults(text)])

    async def next_alert(self) -> Any:
        """Evaluate, and return the next alert that comes."""
        count = len(self.receiver.received)
        await self.monitor.evaluate()
        return (await self.receiver.wait(count + 1))[count].json


StartAlerts = Callable[..., AbstractAsyncContextManager[AlertEnvironment]]


@pytest.fixture
def start_alerts(
    catalog: nexar_sandbox.Catalog,
    signing_key: nexar_sandbox.SigningKey,
    time: clock.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> StartAlerts:
    """`alerts` are settings of the alerts beside the webhook, `sandbox` those of the sandbox; the rest as usual."""
    recorders: list[callers.CallerRecorder] = []
    monkeypatch.setattr(AlertMonitor, "start", lambda self: None)
    monkeypatch.setattr(callers.CallerRecorder, "start", lambda self: recorders.append(self))

    @asynccontextmanager
    async def started(
        sandbox: dict[str, Any] | None = None, alerts: dict[str, Any] | None = None, **changes: Any
    ) -> AsyncIterator[AlertEnvironment]:
        chosen = nexar_sandbox.SandboxSettings(**(sandbox or {}))
        async with (
            alert_receiver.running() as receiver,
            nexar_sandbox.serve(chosen, clock=time, catalog=catalog, key=signing_key) as upstream,
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
