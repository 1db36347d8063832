"""Tests of one attempt to deliver an alert: webhooks of every behavior, signatures, and commands."""

import asyncio
import json
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support import alert_receiver, certificates

from proxy import config
from proxy.alerts import alert as alerts
from proxy.alerts import receivers

MACHINE = socket.gethostname()
NOW = 1_700_000_000.0
ALERT = alerts.make("msg_1", "quota.threshold", "warning", "demo has used 80 %.", {"used": 80}, now=NOW)


@pytest.fixture
async def receiver() -> AsyncIterator[alert_receiver.AlertReceiver]:
    async with alert_receiver.running() as running:
        yield running


def webhook(url: str, **changes: Any) -> config.WebhookSettings:
    return config.WebhookSettings(config.WebhookUrl(url), **{"timeout_seconds": 20.0, **changes})


async def attempt(receiver: alert_receiver.AlertReceiver, **changes: Any) -> receivers.DeliveryOutcome:
    return await receivers.deliver(webhook(receiver.url, **changes), ALERT, NOW + 5)


async def test_webhook_gets_the_alert_with_a_signature(receiver: alert_receiver.AlertReceiver) -> None:
    assert await attempt(receiver, secret=config.WebhookSecret(alert_receiver.SECRET)) == receivers.DeliveryOutcome()
    (request,) = receiver.received
    assert request.json == {
        "version": 1,
        "id": "msg_1",
        "event": "quota.threshold",
        "status": "firing",
        "severity": "warning",
        "title": "demo has used 80 %.",
        "text": f"v3bridge on {MACHINE}: warning: demo has used 80 %.",
        "details": {"used": 80},
        "at": "2023-11-14T22:13:20Z",
        "machine": MACHINE,
        "service": "v3bridge",
        "service_version": ALERT.service_version,
    }
    assert request.headers["webhook-id"] == "msg_1"
    assert request.headers["webhook-timestamp"] == str(int(NOW) + 5)
    assert request.headers["content-type"] == "application/json"
    assert request.is_signed


def test_signature_is_that_of_the_specification() -> None:
    # The example of the reference implementations (standard-webhooks, libraries/*/test).
    secret, body = config.WebhookSecret(alert_receiver.SECRET), b'{"test": 2432232314}'
    signature = receivers.signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_webhook_without_secret_is_not_signed(receiver: alert_receiver.AlertReceiver) -> None:
    await attempt(receiver)
    assert "webhook-signature" not in receiver.received[0].headers


async def test_text_body_has_nothing_else(receiver: alert_receiver.AlertReceiver) -> None:
    await attempt(receiver, body="text")
    assert receiver.received[0].json == {"text": ALERT.text}


@pytest.mark.parametrize(
    "status,headers,outcome",
    [
        (200, {}, receivers.DeliveryOutcome()),
        (500, {}, receivers.DeliveryOutcome("HTTP 500")),
        (503, {"Retry-After": "7"}, receivers.DeliveryOutcome("HTTP 503", retry_after=7)),
        (429, {"Retry-After": "30"}, receivers.DeliveryOutcome("HTTP 429", retry_after=30)),
        (404, {}, receivers.DeliveryOutcome("HTTP 404", final=True)),
        (410, {}, receivers.DeliveryOutcome("HTTP 410", final=True)),
    ],
)
async def test_status_decides_on_a_retry(
    receiver: alert_receiver.AlertReceiver, status: int, headers: dict[str, str], outcome: receivers.DeliveryOutcome
) -> None:
    receiver.statuses, receiver.headers = [status], headers
    assert await attempt(receiver) == outcome


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirect_is_not_followed(receiver: alert_receiver.AlertReceiver, status: int) -> None:
    receiver.statuses, receiver.headers = [status, 204], {"Location": receiver.url}
    assert await attempt(receiver) == receivers.DeliveryOutcome(
        f"HTTP {status}: redirects are not followed", final=True
    )
    assert len(receiver.received) == 1


async def test_receiver_that_never_answers_ends_the_attempt(receiver: alert_receiver.AlertReceiver) -> None:
    receiver.statuses = [None]
    outcome = await attempt(receiver, timeout_seconds=0.2)
    assert (outcome.final, outcome.reason.partition(":")[0]) == (False, "the receiver did not answer in time")


async def test_dead_receiver_is_tried_again(receiver: alert_receiver.AlertReceiver) -> None:
    outcome = await receivers.deliver(webhook("http://127.0.0.1:1/T0K3N"), ALERT, NOW)
    assert outcome == receivers.DeliveryOutcome("the receiver cannot be reached")


async def test_certificate_must_be_trusted(tmp_path: Path) -> None:
    authority = certificates.CertificateAuthority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue("receiver"))
    async with alert_receiver.running(tls) as receiver:
        outcome = await attempt(receiver)
        assert outcome == receivers.DeliveryOutcome("the receiver shows a certificate that is not trusted")
        assert receiver.received == []
        assert await attempt(receiver, ca_file=config.File(authority.ca_file)) == receivers.DeliveryOutcome()
        unreadable = tmp_path / "no.pem"
        unreadable.write_text("nothing")
        assert (await attempt(receiver, ca_file=config.File(unreadable))).final


async def test_proxy_of_a_webhook_is_used(receiver: alert_receiver.AlertReceiver) -> None:
    gateway = receiver.url.removesuffix("/hooks/T0K3N")
    address = config.ProxyAddress(gateway.replace("http://", "http://name:pass@"))
    changed = webhook("http://localhost:1/through", proxy=address)
    assert await receivers.deliver(changed, ALERT, NOW) == receivers.DeliveryOutcome()
    assert "proxy-authorization" in receiver.received[0].headers


def script(folder: Path, text: str) -> tuple[str, ...]:
    file = folder / "receiver.py"
    file.write_text(text)
    return sys.executable, "-I", str(file)


async def run(command: tuple[str, ...], seconds: float = 60.0) -> receivers.DeliveryOutcome:
    return await receivers.deliver(config.CommandSettings(command, timeout_seconds=seconds), ALERT, NOW)


async def test_command_gets_the_alert_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXAR_CLIENT_SECRET", "s3cretPLANTED")
    result = tmp_path / "result.json"
    command = script(
        tmp_path,
        "import json, os, sys\n"
        f"json.dump([json.load(sys.stdin), dict(os.environ), sys.argv], open({str(result)!r}, 'w'))\n",
    )
    assert await run((*command, "an argument")) == receivers.DeliveryOutcome()
    body, environ, arguments = json.loads(result.read_text())
    assert body == json.loads(alerts.encode(ALERT))
    assert arguments[1:] == ["an argument"]
    named = {name: value for name, value in environ.items() if name.startswith("V3BRIDGE_ALERT_")}
    assert named == {
        "V3BRIDGE_ALERT_ID": "msg_1",
        "V3BRIDGE_ALERT_EVENT": "quota.threshold",
        "V3BRIDGE_ALERT_STATUS": "firing",
        "V3BRIDGE_ALERT_SEVERITY": "warning",
        "V3BRIDGE_ALERT_TITLE": "demo has used 80 %.",
        "V3BRIDGE_ALERT_AT": "2023-11-14T22:13:20Z",
        "V3BRIDGE_ALERT_MACHINE": MACHINE,
    }
    assert "NEXAR_CLIENT_SECRET" not in environ
    assert set(environ) - set(named) <= {*receivers.INHERITED, "LC_CTYPE"}


async def test_command_is_killed_with_its_children_after_its_time(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = script(
        tmp_path,
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-I', '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n",
    )
    running = asyncio.create_task(run(command, 5.0))
    outcome = await running
    assert outcome == receivers.DeliveryOutcome("the program was killed after 5 s")
    for pid in map(int, pids.read_text().split()):
        await _ended(pid)


async def _ended(pid: int) -> None:
    """Wait until a process has ended; a zombie has."""
    while True:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        await asyncio.sleep(0.01)


async def test_command_that_fails_says_how(tmp_path: Path) -> None:
    assert await run(script(tmp_path, "import sys; sys.exit(3)")) == receivers.DeliveryOutcome(
        "the program ended with exit code 3"
    )
    assert await run(script(tmp_path, "import os; os.kill(os.getpid(), 9)")) == receivers.DeliveryOutcome(
        "the program ended by SIGKILL"
    )
    missing = await run((str(tmp_path / "missing"),))
    assert missing == receivers.DeliveryOutcome("the program cannot be started: No such file or directory", final=True)


async def test_command_that_reads_nothing_succeeds(tmp_path: Path) -> None:
    assert await run(script(tmp_path, "")) == receivers.DeliveryOutcome()


async def test_unexpected_error_is_a_failed_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a mistake of the event loop")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)
    assert await run(("true",)) == receivers.DeliveryOutcome("an unexpected error; see the log")


def test_receivers_choose_their_events() -> None:
    chosen = webhook("https://a.example", events=("breaker.open",))
    assert [receivers.wants(chosen, event) for event in ("breaker.open", "client.new", "test")] == [True, False, True]
    assert receivers.wants(webhook("https://a.example"), "client.new")
