"""Tests of `v3bridge serve`: its output, errors of the set-up, shutdown, and the operators' port."""

import json
import os
import shlex
import signal
import socket
from pathlib import Path

import pytest
from acceptance import running
from support import forked_commands
from support.running_commands import Run, Start
from together.cli.conftest import Serve

CONFIG = """
listen: {port: 1}
applications:
  shop:
    apikeys: ["a-key-of-our-own"]
"""
CREDENTIALS = """    client_id: an-id
    client_secret: a-secret
upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}
"""


def test_interrupt_stops_the_service_cleanly(serve: Serve) -> None:
    service = serve((running.ROOT / "config.yaml").read_text())
    os.kill(service.pid, signal.SIGINT)
    assert running.until(lambda: service.ended is not None and [service.ended], "the service ends") == [0]
    started, *logged = [line.split("]")[1].split()[:2] for line in service.log.splitlines()]
    assert sorted((started, logged.pop(0))) == [["sandbox", "started"], ["worker", "started"]]  # whichever is first
    assert logged == [
        ["service", "started"],
        ["service", "stopping"],
        ["service", "stopped"],
    ]


def test_port_option_overrides_the_file_and_only_the_example_key_is_printed(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked_commands, "COMMANDS", [])
    service = serve(CONFIG)
    files = Path(f"/proc/{service.pid}/maps").read_text()
    assert ("msgspec" in files, "pydantic" in files) == (True, False)  # nothing in memory reads options
    running.until(lambda: f"state at {service.operators}/status" in service.output, "all is printed")
    printed = service.output.splitlines()
    assert f"{service.url}/v3" in printed[0]
    curl, option, address = shlex.split(next(line for line in printed if line.strip().startswith("curl")))
    assert (curl, option, "apikey=YOUR_APIKEY&" in address) == ("curl", "-g", True)
    assert running.request(address).status == 403
    assert running.request(address.replace("YOUR_APIKEY", "a-key-of-our-own")).status == 200
    service.stop()
    assert "a-key-of-our-own" not in service.output + service.log
    assert "exposed secrets found" not in service.log


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


def test_secrets_readable_by_others_cause_a_warning(start_command: Start, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG + CREDENTIALS + "log: {format: json}\n")
    config.chmod(0o644)
    serving = start_command("serve", "--config", str(config), "--workers", "2", "--port", "0")
    serving.until("curl")
    assert serving.stop(signal.SIGTERM) == 0
    lines = map(json.loads, serving.errors.splitlines())
    assert {line["remedy"] for line in lines if line["event"] == "exposed secrets found"} == {f"chmod 600 {config}"}
    assert "a-key-of-our-own" not in serving.errors


def test_every_worker_responds_on_the_operators_port(serve: Serve) -> None:
    service = serve(CONFIG, "--workers", "2")
    responses = [running.request(service.operators, "/status") for _ in range(12)]
    assert {response.status for response in responses} == {200}
    assert len({response.json["pid"] for response in responses}) == 2
    assert f"admin={service.operators}" in service.log


@pytest.mark.parametrize("is_taken", [True, False])
def test_service_runs_where_its_operators_port_is_taken_or_off(serve: Serve, is_taken: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        port = owner.getsockname()[1]
        service = serve(f"{CONFIG}admin: {f'{{port: {port}}}' if is_taken else 'false'}\n")
        assert service.stop() == 0
    assert "For operators" not in service.output
    assert "admin=off" in service.log
    said = (
        f"the operators' port cannot listen on 127.0.0.1:{port}: Address already in use;"
        " choose another with admin.port in the configuration, or --admin-port"
    )
    assert (said in service.log) is is_taken


def test_port_of_the_service_itself_is_taken(run_command: Run) -> None:
    port = str(running.free_port())
    done = run_command("serve", "--port", port, "--admin-port", port)
    assert done.returncode == 2
    message = (
        f"port {port} is that of the service: choose another with admin.port in the configuration, or --admin-port"
    )
    assert done.stderr == f"v3bridge: {message}\n"
