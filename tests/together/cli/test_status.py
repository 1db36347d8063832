"""`v3bridge status` and `v3bridge config`: the running service, and its settings, on one screen."""

import json
import shutil
import socket
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from acceptance import bills, running
from support import cases
from support.running_commands import run_in_this_process
from together.cli.conftest import UseStore

from proxy.cli import operators
from proxy.model import Seen
from proxy.store.protocol import CLIENT, DAY_SECONDS, UNKNOWN_KEY

CONFIG = """
upstream: sandbox
applications: {shop: {apikeys: [{key: "THE_KEY", name: erp}], parts: 1000}}
"""
OTHERS = [
    CONFIG.replace("{shop:", "{web:"),
    CONFIG.replace("upstream: sandbox", "upstream: nexar").replace(
        "apikeys", "client_id: a, client_secret: b, apikeys"
    ),
]
PART = bills.match("SN74S74N", key="THE_KEY", limit=2)


def run(url: str, command: str, *options: str, file: Path) -> Any:
    """Run a command that looks for a service at the URL of its operators' port."""
    return run_in_this_process(command, "--config", str(file), "--admin-port", url.rpartition(":")[2], *options)


@pytest.fixture(scope="module")
def service(module_processes: running.Processes) -> running.Service:
    return module_processes.service(CONFIG)


def test_service_is_shown_on_one_screen(processes: running.Processes, tmp_path: Path, use_store: UseStore) -> None:
    day = int(time.time() // DAY_SECONDS)
    client = Seen(CLIENT, day, "shop", "erp", "parts/match", "erp/1", "", 2, time.time())
    unknown = Seen(UNKNOWN_KEY, day, "", "4b1d" * 16, "::1", "bom/2", "", 1, time.time())
    use_store(lambda store: store.add_seen("1", [client, unknown]))
    sandbox = processes.sandbox()
    shop = bills.application(sandbox, 'apikeys: [{key: "THE_KEY", name: erp}], parts: 1000')
    service = processes.service(bills.configuration(sandbox, f"sqlite:{tmp_path}/state.sqlite", shop=shop))
    assert service.get(PART).status == 200
    done = run(service.operators, "status", file=service.file)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    assert shown[0].startswith(f"ready, operators' port {service.operators}, version ")
    rows = [line.split() for line in shown]
    assert ["shop", f"{datetime.now(UTC):%Y-%m}", "2", "0", "1,000", "998", "0.2"] in [row[:7] for row in rows]
    assert ["shop/erp", "parts/match"] in [row[:2] for row in rows]
    assert "4b1d" in [row[0] for row in rows if row]
    assert len(shown) <= 24
    assert "THE_KEY" not in done.stdout
    found = json.loads(run(service.operators, "status", "--json", file=service.file).stdout)
    assert [row["user_agent"] for row in found["clients"]] == ["erp/1"]


def test_check_names_what_needs_an_operator_and_sends_the_token(processes: running.Processes) -> None:
    port = running.free_port()
    admin = f"admin: {{port: {port}, token: a-token-of-operators}}\n"
    service, url = processes.service(CONFIG.replace("1000", "2") + admin), f"http://127.0.0.1:{port}"
    assert running.request(url, "/status").status == 401
    done = run(url, "status", "--check", file=service.file)
    assert (done.returncode, done.stdout) == (0, "nothing needs an operator\n")
    assert service.get(PART).status == 200
    done = running.until(
        lambda: (again := run(url, "status", "--check", file=service.file)).returncode and again, "all parts are used"
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"shop has used 2 of 2 parts ({datetime.now(UTC):%Y-%m}): 100%\n"
    assert "a-token-of-operators" not in service.output + service.log


def test_reasons_of_a_check_are_a_line_each() -> None:
    row = {"application": "shop", "key": None, "period": "2026-11", "used": 7, "uncertain": 1, "limit": 10}
    read = {
        "reasons": [{"check": "token shop", "reason": "invalid_client"}],
        "tokens": [
            {"application": "shop", "refusal": "invalid_client"},
            {"application": "web", "refusal": "refused"},
        ],
        "breakers": {"graphql": "open", "identity": "closed"},
        "usage": [
            row | {"exhausted_until": None},
            row | {"key": "erp", "used": 6, "exhausted_until": None},
            row | {"key": "off", "limit": 0, "exhausted_until": None},
            row | {"key": "web", "exhausted_until": "2026-12-01T00:00:00Z"},
        ],
    }
    assert list(operators.reasons(read)) == [
        "not ready: token shop: invalid_client",
        "credentials of web refused: refused",
        "circuit breaker of graphql open",
        "shop has used 8 of 10 parts (2026-11): 80%",
        "shop/web exhausted until 2026-12-01T00:00:00Z: the upstream refuses its requests",
    ]


def test_another_v3bridge_on_the_port_is_called_that(service: running.Service, tmp_path: Path) -> None:
    file, place = tmp_path / "other.yaml", f"admin: {{port: {service.operators.rpartition(':')[2]}}}\n"
    file.touch(0o600)
    another = "another v3bridge, with the applications shop and the upstream 127.0.0.1:"
    for text in OTHERS:
        file.write_text(text + place)
        for options in ((), ("--check",), ("--json",)):
            done = run(service.operators, "status", *options, file=file)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"v3bridge: {another}")
            assert f"responds at {service.operators}/status; the service of {file} needs" in done.stderr
        examined = run_in_this_process("doctor", "--config", str(file), "--only", "ports").stdout
        assert f"ports         warning {another}" in examined
        assert f"responds at {service.operators}/status" in examined
    own = run_in_this_process("doctor", "--config", str(service.file), "--only", "ports").stdout
    assert "another v3bridge" not in own


def test_what_is_no_operators_port_is_named(service: running.Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=respond_with_nonsense, args=(listening,), daemon=True).start()
        for url in (service.url, f"http://127.0.0.1:{listening.getsockname()[1]}"):
            done = run(url, "status", file=service.file)
            assert (done.returncode, done.stdout) == (2, "")
            said = f"v3bridge: what responds at {url}/status is not the operators' port of a v3bridge\n"
            assert done.stderr == said


def respond_with_nonsense(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.sendall(b"-ERR unknown command\r\n")
        connection.recv(1000)


def test_service_that_does_not_run_is_named(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(f"{CONFIG}admin: false\n")
    done = run_in_this_process("status", "--config", str(file))
    assert (done.returncode, "remove `admin: false`" in done.stderr) == (2, True)
    file.write_text(CONFIG)
    done = run("127.0.0.1:9", "status", file=file)
    assert done.returncode == 2
    assert "no service responds at http://127.0.0.1:9/status: [Errno 111] Connection refused" in done.stderr


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """All settings of the file beside this module, as `config` shows them."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "secret").write_text("PLANTED-client-secret")
    shutil.copy(Path(__file__).with_name("own.yaml"), folder)
    shown = run_in_this_process("config", "--all", "--json", "--config", str(folder / "own.yaml"))
    rows: list[dict[str, str]] = json.loads(shown.stdout)
    return rows


@cases.parametrize("name, value, source")
def test_setting_has_its_value_and_source(settings: list[dict[str, str]], name: str, value: str, source: str) -> None:
    assert [(row["value"], row["source"]) for row in settings if row["name"] == name] == [(value, source)]


def test_settings_are_41_at_most_and_listed_once_without_secrets(settings: list[dict[str, str]]) -> None:
    names = [row["name"] for row in settings]
    assert len(names) == len(set(names))
    assert len([name for name in names if ".apikeys.1." not in name]) <= 41
    assert "PLANTED" not in json.dumps(settings)
