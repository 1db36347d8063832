"""`v3bridge serve` and its admin interface: address, token, and errors of its port."""

import http.client
import json
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import Run, Start

CONFIG = """
listen: {{port: 0}}
admin: {admin}
applications: {{demo: {{apikeys: [EXAMPLE_KEY]}}}}
"""
TOKEN = "a-configured-admin-token"


def _get(address: str, token: str, target: str = "/overview.json", method: str = "GET") -> Any:
    """Send a request over a new connection, so that any worker may respond; status and JSON."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, target, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _address(lines: list[str]) -> str:
    return next(found[1] for line in lines if (found := re.search(r"admin interface is at http://([\d.:]+)", line)))


def _of_group(pid: int) -> list[Path]:
    """Return the folders in /proc of a process and its children."""
    folders = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if pid in (parent, int(folder.name)):
            folders.append(folder)
    return folders


@pytest.mark.parametrize("workers", ["1", "2"])
def test_generated_token_is_printed_and_opens_every_worker(start_command: Start, workers: str) -> None:
    serving = start_command("serve", "--port", "0", "--workers", workers)
    lines = serving.until("sign in with this token")
    serving.until("")
    token = serving.until("")[0].strip()
    assert re.fullmatch(r"[\w-]{43}", token)
    responses = [_get(_address(lines), token) for _ in range(12)]
    assert {status for status, _ in responses} == {200}
    numbers = {
        worker["number"] for _, page in responses for machine in page["machines"] for worker in machine["workers"]
    }
    assert len(numbers) == int(workers)
    assert _get(_address(lines), token[::-1])[0] == 401
    if os.path.isdir("/proc"):
        folders = _of_group(serving.pid)
        assert len(folders) >= int(workers)
        shown = b"".join((folder / name).read_bytes() for folder in folders for name in ("cmdline", "environ"))
        assert token.encode() not in shown
    assert serving.stop(signal.SIGTERM) == 0
    assert token not in serving.errors
    assert f"admin=http://{_address(lines)}" in serving.errors


def test_configured_token_is_not_printed(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin=f"{{token: {TOKEN}}}"))
    serving = start_command("serve", "--config", str(file), "--admin-port", "0")
    lines = serving.until("admin interface")
    assert lines[-1].endswith("the token is that of admin.token.")
    assert TOKEN not in "\n".join(lines)
    assert _get(_address(lines), TOKEN)[0] == 200
    serving.stop(signal.SIGTERM)
    assert TOKEN not in serving.errors


def test_token_is_printed_when_a_reload_removes_the_configured_one(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin=f"{{token: {TOKEN}}}"))
    serving = start_command("serve", "--config", str(file), "--admin-port", "0")
    address = _address(serving.until("admin interface"))
    file.write_text(CONFIG.format(admin="{}"))
    assert _get(address, TOKEN, "/configuration/reload", "POST")[0] == 200
    assert _address(serving.until("sign in with this token")) == address
    serving.until("")
    assert [_get(address, token)[0] for token in (serving.until("")[0].strip(), TOKEN)] == [200, 401]


def test_token_that_nobody_reads_fails_no_reload(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin=f"{{token: {TOKEN}}}"))
    serving = start_command("serve", "--config", str(file), "--admin-port", "0")
    address = _address(serving.until("admin interface"))
    serving.hang_up()
    file.write_text(CONFIG.format(admin="{}"))
    assert _get(address, TOKEN, "/configuration/reload", "POST")[0] == 200
    assert _get(address, TOKEN)[0] == 401
    assert serving.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_configuration_page_of_every_worker_knows_its_file_and_reloads_all(
    start_command: Start, tmp_path: Path, workers: str
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin=f"{{token: {TOKEN}}}"))
    serving = start_command("serve", "--config", str(file), "--admin-port", "0", "--workers", workers)
    address = _address(serving.until("admin interface"))

    def values(name: str) -> set[tuple[str, str]]:
        """Value and source of a setting in several responses, of any worker."""
        pages = [_get(address, TOKEN, "/configuration.json")[1] for _ in range(8)]
        assert {page["file"] for page in pages} == {str(file)}
        return {(each["value"], each["source"]) for page in pages for each in page["settings"] if each["name"] == name}

    assert values("listen.workers") == {(workers, "--workers of the command line")}
    assert values("applications.demo.rate") == {("0", "default")}
    file.write_text(CONFIG.format(admin=f"{{token: {TOKEN}}}").replace("[EXAMPLE_KEY]", "[EXAMPLE_KEY], rate: 7"))
    status, result = _get(address, TOKEN, "/configuration/reload", "POST")
    assert (status, result["message"]) == (200, "The configuration is reloaded; changed: applications.demo.rate.")
    assert values("applications.demo.rate") == {("7", "own.yaml:4")}
    file.write_text("listen: nonsense")
    assert "stays as it was" in _get(address, TOKEN, "/configuration/reload", "POST")[1]["message"]
    results = [_get(address, TOKEN, "/configuration.json")[1]["last_reload"] for _ in range(8)]
    assert {(each["outcome"], len(each["mistakes"])) for each in results} == {("failed", 2)}


def test_admin_interface_can_be_off(start_command: Start, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.format(admin="false"))
    serving = start_command("serve", "--config", str(file))
    lines = serving.until("curl")
    assert serving.stop(signal.SIGTERM) == 0
    assert "admin interface" not in "\n".join(lines)
    assert "admin=off" in serving.errors


@pytest.mark.parametrize("workers", ["1", "2"])
def test_service_runs_where_the_port_of_its_admin_interface_is_taken(start_command: Start, workers: str) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = str(owner.getsockname()[1])
        serving = start_command("serve", "--port", "0", "--admin-port", port, "--workers", workers)
        lines = serving.until("curl")
        assert serving.stop(signal.SIGTERM) == 0
    assert "sign in" not in "\n".join(lines)
    assert (
        f"the admin interface cannot listen on 127.0.0.1:{port}: Address already in use;"
        " choose another with admin.port in the configuration, or --admin-port"
    ) in serving.errors
    assert "admin=off" in serving.errors


@pytest.mark.parametrize("workers", ["1", "2"])
def test_port_of_the_service_itself_is_taken(run_command: Run, workers: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = run_command("serve", "--port", port, "--admin-port", port, "--workers", workers)
    assert done.returncode == 2
    message = (
        f"port {port} is that of the service: choose another with admin.port in the configuration, or --admin-port"
    )
    assert done.stderr == f"v3bridge: {message}\n"
