"""Tests of `v3bridge serve`: its output, errors of the set-up, and shutdown."""

import http.client
import json
import shlex
import signal
import socket
import sys
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import Run

CONFIG = """
listen: {port: 0}
applications:
  shop:
    apikeys: ["a-key-of-our-own"]
"""
CREDENTIALS = """    client_id: an-id
    client_secret: a-secret
upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}
"""


def _get(address: Any) -> Any:
    """Send a target unchanged, as curl -g does; returns status and JSON."""
    parts = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", address.partition(parts.netloc)[2])
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
