"""`v3bridge status` and `v3bridge config`: the running service, and its settings, on one screen."""

import contextlib
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import cases
from support.running_commands import Run, Start

from proxy.cli import operators

CONFIG = """
listen: {port: 0}
admin: {port: 0}
upstream: sandbox
applications: {shop: {apikeys: [{key: "THE_KEY", name: erp}], parts: 1000}}
"""


def admin_port(lines: list[str]) -> str:
    return lines[-1].partition("/status")[0].rpartition(":")[2]


def ask(url: str, key: str) -> None:
    query = quote('[{"mpn":"SN74S74N","limit":2}]')
    with contextlib.suppress(urllib.error.HTTPError):  # the key is wrong
        urllib.request.urlopen(f"{url}/parts/match?apikey={key}&queries={query}").read()


def test_running_service_is_shown_on_one_screen(start_command: Start, run_command: Run, config_file: str) -> None:
    service = start_command("serve", "--config", config_file)
    lines = service.until("For operators")
    url = lines[0].partition("listening at ")[2].partition(" on")[0]
    for key in ("THE_KEY", "THE_KEY", "WRONG"):
        ask(url, key)

    def status(*options: str) -> Any:
        return run_command("status", "--config", config_file, "--admin-port", admin_port(lines), *options)

    end = time.monotonic() + 60
    while True:
        found = json.loads(status("--json").stdout)
        if found["clients"]:  # they are stored at intervals
            break
        assert time.monotonic() < end, found
        time.sleep(1.0)  # a start costs as much
    done = status()
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    assert shown[0].startswith(f"ready, operators' port http://127.0.0.1:{admin_port(lines)}, version ")
    rows = [line.split() for line in shown]
    assert ["shop", f"{datetime.now(UTC):%Y-%m}", "2", "0", "1,000", "998", "0.2"] in [row[:7] for row in rows]
    assert ["shop/erp", "parts/match"] in [row[:2] for row in rows]
    assert found["unknown_keys"][0]["fingerprint"] in [row[0] for row in rows if row]
    assert len(shown) <= 24
    assert "THE_KEY" not in done.stdout


def test_check_names_what_needs_an_operator(start_command: Start, run_command: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.replace("1000", "2"))
    service = start_command("serve", "--config", str(file))
    lines = service.until("For operators")
    url = lines[0].partition("listening at ")[2].partition(" on")[0]
    check = ("status", "--check", "--config", str(file), "--admin-port", admin_port(lines))
    done = run_command(*check)
    assert (done.returncode, done.stdout) == (0, "nothing needs an operator\n")
    ask(url, "THE_KEY")
    end = time.monotonic() + 60
    while (done := run_command(*check)).returncode == 0:
        assert time.monotonic() < end
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"shop has used 2 of 2 parts ({datetime.now(UTC):%Y-%m}): 100%\n"


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


def test_token_is_sent_where_one_is_needed(start_command: Start, run_command: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.replace("{port: 0}\nup", "{port: 0, token: a-token-of-operators}\nup"))
    service = start_command("serve", "--config", str(file))
    lines = service.until("For operators")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"http://127.0.0.1:{admin_port(lines)}/status")
    done = run_command("status", "--config", str(file), "--admin-port", admin_port(lines))
    assert (done.returncode, done.stdout.split()[0]) == (0, "ready,")


OTHER = CONFIG.replace("upstream: sandbox", "upstream: nexar").replace(
    "apikeys", "client_id: a, client_secret: b, apikeys"
)


@pytest.mark.parametrize("other", [CONFIG.replace("{shop:", "{web:"), OTHER])
def test_another_v3bridge_on_the_port_is_called_that(
    start_command: Start, run_command: Run, config_file: str, tmp_path: Path, other: str
) -> None:
    port = admin_port(start_command("serve", "--config", config_file).until("For operators"))
    file = tmp_path / "other.yaml"
    file.write_text(other.replace("admin: {port: 0}", f"admin: {{port: {port}}}"))
    file.chmod(0o600)
    for options in ((), ("--check",), ("--json",)):
        done = run_command("status", "--config", str(file), "--admin-port", port, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(
            "v3bridge: another v3bridge, with the applications shop and the upstream 127.0.0.1:"
        )
        assert f"responds at http://127.0.0.1:{port}/status; the service of {file} needs" in done.stderr
    examined = run_command("doctor", "--config", str(file), "--only", "ports").stdout
    assert "ports         warning another v3bridge, with the applications shop and the upstream 127.0.0.1:" in examined
    assert f"responds at http://127.0.0.1:{port}/status" in examined
    own = Path(config_file).read_text().replace("admin: {port: 0}", f"admin: {{port: {port}}}")
    file.write_text(own)
    assert "another v3bridge" not in run_command("doctor", "--config", str(file), "--only", "ports").stdout


def test_what_is_no_operators_port_is_named(start_command: Start, run_command: Run, config_file: str) -> None:
    lines = start_command("serve", "--config", config_file).until("For operators")
    url = lines[0].partition("listening at ")[2].partition("/v3")[0]
    done = run_command("status", "--admin-port", url.rpartition(":")[2])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"v3bridge: what responds at {url}/status is not the operators' port of a v3bridge\n"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=respond_with_nonsense, args=(listening,), daemon=True).start()
        done = run_command("status", "--admin-port", str(port))
    assert done.stderr == (
        f"v3bridge: what responds at http://127.0.0.1:{port}/status is not the operators' port of a v3bridge\n"
    )


def respond_with_nonsense(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.sendall(b"-ERR unknown command\r\n")
        connection.recv(1000)


@pytest.mark.parametrize(
    "broken, says",
    [
        (CONFIG + "  - x", "own.yaml:6:3: did not find expected key"),
        (CONFIG.replace("1000", "1,000"), "own.yaml:5:63: applications.shop.parts: a comma ends a value in braces"),
        (CONFIG + "a: &a [*a]\n", "own.yaml:6:4: found unconstructable recursive node"),
    ],
)
def test_broken_file_is_named_with_the_place(run_command: Run, tmp_path: Path, broken: str, says: str) -> None:
    (tmp_path / "own.yaml").write_text(broken)
    done = run_command("status", "--config", str(tmp_path / "own.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"v3bridge: {says}")


def test_service_that_does_not_run_is_named(run_command: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.replace("admin: {port: 0}", "admin: false"))
    done = run_command("status", "--config", str(file))
    assert (done.returncode, "remove `admin: false`" in done.stderr) == (2, True)
    file.write_text(CONFIG)
    done = run_command("status", "--config", str(file), "--admin-port", "9")
    assert done.returncode == 2
    assert "no service responds at http://127.0.0.1:9/status: [Errno 111] Connection refused" in done.stderr


def test_configuration_is_shown_with_its_origins_and_without_keys(run_command: Run, config_file: str) -> None:
    done = run_command("config", "--config", config_file)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["applications.shop.parts", "1000", "own.yaml:5"] in rows
    assert "THE_KEY" not in done.stdout


FILE = Path(__file__).with_name("own.yaml")


@pytest.fixture
def shown(run_command: Any, tmp_path: Path) -> str:
    (tmp_path / "secret").write_text("PLANTED-client-secret")
    (tmp_path / "own.yaml").write_text(FILE.read_text(encoding="utf-8"))
    return str(run_command("config", "--all", "--json", "--config", str(tmp_path / "own.yaml")).stdout)


@cases.parametrize("name, value, source")
def test_setting_has_its_value_and_its_source(shown: str, name: str, value: str, source: str) -> None:
    rows = {row["name"]: (row["value"], row["source"]) for row in json.loads(shown)}
    assert rows[name] == (value, source)


def test_settings_are_41_at_most_and_listed_once_without_secrets(shown: str) -> None:
    names = [row["name"] for row in json.loads(shown)]
    assert len(names) == len(set(names))
    assert len([name for name in names if ".apikeys.1." not in name]) <= 41
    assert "PLANTED" not in shown
