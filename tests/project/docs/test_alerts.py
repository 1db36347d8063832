"""docs/how-to/alerts.md: configuration, events, examples of every body, and the verification of signatures."""

import asyncio
import json
import shlex
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import alert_gateway, alert_receiver
from typer import testing

from proxy import config
from proxy.alerts import alert as alerts
from proxy.alerts import conditions, forecasts, receivers
from proxy.cli import main
from proxy.config import loader
from proxy.gateway.callers import NewClient
from proxy.gateway.quota import accounts, burn_down
from proxy.kit import clock
from proxy.stores.protocols import LedgerEntry, Settlement, UsageIncrement

ENVIRON = {"V3BRIDGE_ALERT_URL": "https://chat.example/T0K3N", "V3BRIDGE_ALERT_SECRET": alert_receiver.SECRET}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/how-to/alerts.md"]


@pytest.fixture(scope="module")
def by_event() -> dict[str, list[conditions.AlertCondition]]:
    """Conditions of every event."""
    found: dict[str, list[conditions.AlertCondition]] = {}
    newcomer = NewClient("erp", "bom-tool", "python-requests/2.32", 1_699_999_200)
    gateway, report = alert_gateway.with_everything()

    async def forecast() -> list[conditions.AlertCondition]:
        days = accounts.last_days(gateway.clock.now(), burn_down.DAYS)
        used = tuple(UsageIncrement(LedgerEntry("erp", day), 1_018, 0) for day in days)
        await gateway.store.settle(Settlement("a worker", 1, (), used))
        return await forecasts.read(gateway, ())

    for each in [
        *conditions.Observer().read(gateway, report),
        *asyncio.run(forecast()),
        conditions.new_clients([newcomer]),
    ]:
        found.setdefault(each.event, []).append(each)
    return found


def test_documented_receivers_are_those_of_the_configuration(page: Any, tmp_path: Path) -> None:
    (block,) = page.blocks("yaml", "receivers")
    file = tmp_path / "config.yaml"
    file.write_text(block.text)
    chosen = loader.load(file, ENVIRON).alerts
    assert list(chosen.receivers) == ["chat", "pager"]


def test_test_is_printed_as_documented(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (receivers_block,), (output,) = page.blocks("yaml", "receivers"), page.blocks("console")
    (tmp_path / "our.yaml").write_text(receivers_block.text)
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    # One receiver after the other: when each begins and ends.
    moments, own = iter((0.0, 0.212, 1.0, 1.031)), threading.get_ident()
    monkeypatch.setattr(
        clock.SystemClock,
        "monotonic",
        lambda self: next(moments) if threading.get_ident() == own else time.monotonic(),  # a service in another thread
    )

    async def accept(*_: object) -> receivers.DeliveryOutcome:
        return receivers.DeliveryOutcome()

    monkeypatch.setattr(receivers, "deliver", accept)
    typed, _, shown = output.text.partition("\n")
    done = testing.CliRunner().invoke(main.program(), shlex.split(typed)[2:])
    assert done.exit_code == 0
    assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines()


def test_documented_events_are_all(page: Any, by_event: dict[str, list[conditions.AlertCondition]]) -> None:
    rows = {row[0].strip("`"): row for row in page.table("event")}
    assert list(rows) == list(config.ALERT_EVENTS) == list(alerts.MEANINGS)
    assert by_event.keys() == rows.keys()
    for event, found in by_event.items():
        assert all(each.severity in rows[event][1] for each in found)
        assert {bool(each.over) for each in found} == {rows[event][3] == "yes"}


def test_documented_body_is_that_of_an_alert(page: Any, by_event: dict[str, list[conditions.AlertCondition]]) -> None:
    (block,) = page.blocks("json", "body")
    shown = json.loads(block.text)
    made = json.loads(alerts.encode(_made(by_event["quota.threshold"][0])))
    changing = {"id", "machine", "text", "service_version"}
    assert list(shown) == list(made)
    assert {name: made[name] for name in made.keys() - changing} == {
        name: shown[name] for name in shown.keys() - changing
    }
    assert shown["text"].endswith(made["title"])


def test_every_event_has_an_example(page: Any, by_event: dict[str, list[conditions.AlertCondition]]) -> None:
    for event in config.ALERT_EVENTS:
        if event == "quota.threshold":
            continue
        shown = [json.loads(block.text) for block in page.blocks("json", event)]
        made = [json.loads(alerts.encode(_made(each)))["details"] for each in by_event[event]]
        assert shown == made, event


def _made(condition: conditions.AlertCondition) -> alerts.Alert:
    event, severity, title, details = condition.event, condition.severity, condition.title, condition.details
    return alerts.make("msg_1", event, severity, title, details, now=1_700_000_000)


async def test_documented_verification_accepts_genuine_requests_only(page: Any) -> None:
    (block,) = page.blocks("python", "verify")
    scope: dict[str, Any] = {}
    exec(block.text, scope)
    is_genuine = scope["is_genuine"]
    async with alert_receiver.running() as receiver:
        hook = config.WebhookSettings(
            config.WebhookUrl(receiver.url), secret=config.WebhookSecret(alert_receiver.SECRET)
        )
        for age in (0, 400):
            await receivers.deliver(hook, alerts.test(0), time.time() - age)
    recent, old = receiver.received
    assert is_genuine(recent.headers, recent.body, alert_receiver.SECRET)
    assert not is_genuine(recent.headers, recent.body + b" ", alert_receiver.SECRET)
    assert not is_genuine(recent.headers | {"webhook-id": "msg_2"}, recent.body, alert_receiver.SECRET)
    assert not is_genuine(recent.headers, recent.body, f"whsec_{'A' * 32}")
    assert not is_genuine(old.headers, old.body, alert_receiver.SECRET)
