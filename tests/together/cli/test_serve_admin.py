"""`v3bridge serve` and its operators' port: address, token, and errors of its port."""

import http.client
import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

from support.running_commands import Run, Start

CONFIG = """
listen: {{port: 0}}
admin: {admin}
applications: {{demo: {{apikeys: [EXAMPLE_KEY]}}}}
"""
TOKEN = "a-configured-admin-token"


def _get(address: str, token: str = "") -> Any:
    """Send a request over a new connection, so that any worker may respond; status and JSON."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("GET", "/status", headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _address(lines: list[str]) -> str:
    return next(found[1] for line in lines if (found := re.search(r"state at http://([\d.:]+)/status", line)))


def test_every_worker_responds(start_command: Start) -> None:
    serving = start_command("serve", "--port", "0", "--workers", "2")
    address = _address(serving.until("For operators"))
    responses = [_get(address) for _ in range(12)]
    assert {status for status, _ in responses} == {200}
    assert len({shown["pid"] for _, shown in responses}) == 2
    assert serving.stop(signal.SIGTERM) == 0
    assert f"admin=http://{address}" in serving.errors


def test_token_is_not_printed(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin=f"{{token: {TOKEN}}}"))
    serving = start_command("serve", "--config", str(file), "--admin-port", "0")
    lines = serving.until("For operators")
    assert TOKEN not in "\n".join(lines)
    assert [_get(_address(lines), token)[0] for token in (TOKEN, "", TOKEN[::-1])] == [200, 401, 401]
    serving.stop(signal.SIGTERM)
    assert TOKEN not in serving.errors


def test_port_can_be_off(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin="false"))
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
