"""Tests of `v3bridge serve`: its output, errors of the set-up, shutdown, and the operators' port."""

import http.client
import json
import re
import shlex
import signal
import socket
import sys
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import Run, Start

CONFIG = """
listen: {port: 0}
applications:
  shop:
    apikeys: ["a-key-of-our-own"]
"""
ADMIN = """
listen: {{port: 0}}
admin: {admin}
applications: {{demo: {{apikeys: [EXAMPLE_KEY]}}}}
"""
TOKEN = "a-configured-admin-token"
CREDENTIALS = """    client_id: an-id
    client_secret: a-secret
upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}
"""


def _get(address: str, **headers: str) -> Any:
    """Send a target unchanged, as curl -g does, over a new connection; returns status and JSON."""
    parts = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", address.partition(parts.netloc)[2], headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _address(lines: Any) -> Any:
    """The address in the printed curl line, split into words as a shell does."""
    words = shlex.split(lines[-1])
    assert words[:2] == ["curl", "-g"]
    assert len(words) == 3
    return words[2]


def test_interrupt_stops_the_service_cleanly(start_command: Any) -> None:
    serving = start_command("serve", "--port", "0")
    serving.until("curl")
    assert serving.stop(signal.SIGINT) == 0
    started, *logged = [line.split("]")[1].split()[:2] for line in serving.errors.splitlines()]
    assert sorted((started, logged.pop(0))) == [["sandbox", "started"], ["worker", "started"]]  # whichever is first
    assert logged == [
        ["service", "started"],
        ["service", "stopping"],
        ["service", "stopped"],
    ]


def test_port_option_overrides_the_file_and_only_the_example_key_is_printed(start_command: Any, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.replace("port: 0", "port: 1"))
    config.chmod(0o600)
    serving = start_command("serve", "--config", str(config), "--port", str(port))
    lines = serving.until("curl")
    assert f"http://127.0.0.1:{port}/v3" in lines[0]
    address = _address(lines)
    assert "apikey=YOUR_APIKEY&" in address
    assert "a-key-of-our-own" not in "\n".join(lines)
    assert _get(address)[0] == 403
    assert _get(address.replace("YOUR_APIKEY", "a-key-of-our-own"))[0] == 200
    serving.stop(signal.SIGTERM)
    assert "a-key-of-our-own" not in serving.errors
    assert "exposed secrets found" not in serving.errors


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows the files of a process")
def test_service_has_nothing_in_memory_that_reads_options(start_command: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG + CREDENTIALS)
    serving = start_command("serve", "--config", str(config))
    serving.until("curl")
    files = Path(f"/proc/{serving.pid}/maps").read_text()
    assert serving.stop(signal.SIGTERM) == 0
    assert ("msgspec" in files, "pydantic" in files) == (True, False)


@pytest.mark.parametrize("command, who", [("serve", ""), ("sandbox", "the sandbox ")])
def test_port_in_use_is_one_line_and_exit_code_2(run_command: Run, command: str, who: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_command(command, "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == (
        f"v3bridge: {who}cannot listen on 127.0.0.1:{port}: Address already in use; "
        "choose another with --host or --port\n"
    )


def test_secrets_readable_by_others_cause_one_warning(start_command: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG + CREDENTIALS + "log: {format: json}\n")
    config.chmod(0o644)
    serving = start_command("serve", "--config", str(config), "--workers", "2")
    serving.until("curl")
    assert serving.stop(signal.SIGTERM) == 0
    (warning,) = [line for line in serving.errors.splitlines() if "exposed secrets found" in line]
    assert json.loads(warning)["remedy"] == f"chmod 600 {config}"
    assert "a-key-of-our-own" not in serving.errors


def _operators_url(lines: list[str]) -> str:
    return next(found[1] for line in lines if (found := re.search(r"state at (http://[\d.:]+/status)", line)))


def test_every_worker_responds_on_the_operators_port(start_command: Start) -> None:
    serving = start_command("serve", "--port", "0", "--workers", "2")
    address = _operators_url(serving.until("For operators"))
    responses = [_get(address) for _ in range(12)]
    assert {status for status, _ in responses} == {200}
    assert len({shown["pid"] for _, shown in responses}) == 2
    assert serving.stop(signal.SIGTERM) == 0
    assert f"admin={address.removesuffix('/status')}" in serving.errors


def test_token_of_the_operators_port_is_not_printed(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(ADMIN.format(admin=f"{{token: {TOKEN}}}"))
    serving = start_command("serve", "--config", str(file), "--admin-port", "0")
    lines = serving.until("For operators")
    assert TOKEN not in "\n".join(lines)
    url = _operators_url(lines)
    statuses = [_get(url, Authorization=f"Bearer {token}")[0] for token in (TOKEN, TOKEN[::-1])]
    assert (statuses, _get(url)[0]) == ([200, 401], 401)
    serving.stop(signal.SIGTERM)
    assert TOKEN not in serving.errors


def test_operators_port_can_be_off(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(ADMIN.format(admin="false"))
    serving = start_command("serve", "--config", str(file))
    lines = serving.until("curl")
    assert serving.stop(signal.SIGTERM) == 0
    assert "For operators" not in "\n".join(lines)
    assert "admin=off" in serving.errors


def test_service_runs_where_its_operators_port_is_taken(start_command: Start) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = str(owner.getsockname()[1])
        serving = start_command("serve", "--port", "0", "--admin-port", port)
        lines = serving.until("curl")
        assert serving.stop(signal.SIGTERM) == 0
    assert "For operators" not in "\n".join(lines)
    assert (
        f"the operators' port cannot listen on 127.0.0.1:{port}: Address already in use;"
        " choose another with admin.port in the configuration, or --admin-port"
    ) in serving.errors
    assert "admin=off" in serving.errors


def test_port_of_the_service_itself_is_taken(run_command: Run) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = run_command("serve", "--port", port, "--admin-port", port)
    assert done.returncode == 2
    message = (
        f"port {port} is that of the service: choose another with admin.port in the configuration, or --admin-port"
    )
    assert done.stderr == f"v3bridge: {message}\n"
