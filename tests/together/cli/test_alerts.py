"""Tests of `v3bridge alerts`: a test alert to every receiver, and the last alerts of the store."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from support.running_commands import Run

from proxy import config
from proxy.alerts import alert as alerts
from proxy.alerts import records
from proxy.kit import clock
from proxy.stores import open as opening

CONFIG = """
upstream: {{graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}}
store: sqlite:state.sqlite
applications:
  shop: {{client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-shop"]}}
alerts: {{webhooks: [{webhooks}], commands: [{commands}]}}
"""


@pytest.fixture
def bodies() -> list[bytes]:
    """Bodies that the receiver got."""
    return []


@pytest.fixture
def receiver(bodies: list[bytes]) -> Iterator[str]:
    """Address of a receiver that accepts everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/T0K3N"
    server.shutdown()
    server.server_close()


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Path]:
    def write(webhooks: str = "", commands: str = "") -> Path:
        file = tmp_path / "own.yaml"
        file.write_text(CONFIG.format(webhooks=webhooks, commands=commands))
        return file

    return write


def test_every_receiver_gets_a_test(
    run_command: Run, configured: Callable[..., Path], receiver: str, bodies: list[bytes]
) -> None:
    file = configured(
        f'{{url: "{receiver}", name: chat}}', "{command: [sh, -c, cat > /dev/null, s3cret], events: [client.new]}"
    )
    done = run_command("alerts", "test", "--config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("delivered") == 2
    assert json.loads(bodies[0])["event"] == "test"
    assert "T0K3N" not in done.stdout
    assert "s3cret" not in done.stdout


def test_receiver_that_fails_makes_the_exit_code_1(
    run_command: Run, configured: Callable[..., Path], receiver: str
) -> None:
    hooks = f'{{url: "{receiver}", name: chat}}, {{url: "http://127.0.0.1:1/T0K3N", name: dead}}'
    done = run_command("alerts", "test", "--config", str(configured(hooks)))
    assert (done.returncode, done.stderr) == (1, "")
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if "127.0.0.1" in line}
    assert "delivered" in lines["chat"]
    assert "the receiver cannot be reached" in lines["dead"]
    assert "T0K3N" not in done.stdout


def test_configuration_without_receivers_is_a_mistake(run_command: Run, configured: Callable[..., Path]) -> None:
    done = run_command("alerts", "test", "--config", str(configured()))
    assert done.returncode == 2
    assert done.stderr.startswith("v3bridge: alerts: the configuration has no webhooks and no commands")


def test_list_shows_alerts_and_deliveries(run_command: Run, configured: Callable[..., Path], tmp_path: Path) -> None:
    file = configured()
    assert run_command("alerts", "list", "--config", str(file)).stdout == "No alerts.\n"
    hostile = "API key demo/erp is used by a program: \x1b[31m[bold]x."

    async def fill() -> None:
        store = await opening.open_store(config.StoreUrl(f"sqlite:{tmp_path / 'state.sqlite'}"), clock.SystemClock())
        for number, title in enumerate(("The store is unavailable.", hostile)):
            alert = alerts.make(f"msg_{number}", "client.new", "info", title, {}, now=number)
            delivery = records.Delivery("chat", "failed", 8, "HTTP 500")
            await records.keep(store, records.AlertRecord(number, alert, [delivery]))
        await store.aclose()

    asyncio.run(fill())
    done = run_command("alerts", "list", "--config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "[bold]x" in done.stdout
    assert "chat failed (HTTP 500)" in done.stdout
    listed = json.loads(run_command("alerts", "list", "--config", str(file), "--json").stdout)
    assert [each["alert"]["id"] for each in listed] == ["msg_1", "msg_0"]


def test_list_needs_a_store(run_command: Run) -> None:
    done = run_command("alerts", "list")
    assert done.returncode == 2
    assert "page Alerts of the admin interface" in done.stderr
