"""What operators see and do: health, metrics, a service manager's socket, and the commands with their exit codes."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from acceptance import bills
from acceptance.running import PROGRAM, ROOT, Processes, Sandbox, Service, command, environment, request, until

PART = bills.match("SN74S74N")
GONE = 'upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}'
LOG = ROOT / "examples/access.log"


@pytest.fixture(scope="module")
def service(module_processes: Processes, sandbox: Sandbox) -> Service:
    """A service that has used three parts."""
    started = module_processes.service(bills.configuration(sandbox))
    assert started.get(PART).headers["x-parts-cost"] == "3"
    return started


@pytest.fixture(scope="module")
def unready(module_processes: Processes) -> Service:
    """A service that cannot reach its upstream."""
    application = f"{{client_id: a-client, client_secret: a-secret, apikeys: [{bills.KEY}]}}"
    return module_processes.service(f'{GONE}\nstore: "memory:"\napplications: {{shop: {application}}}\n')


def run(service: Service, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return command(*arguments, "--config", service.file, folder=service.folder)


def test_health_and_readiness(service: Service, unready: Service) -> None:
    for each in (service, unready):
        assert [request(url, "/healthz").status for url in (each.url, each.operators)] == [200, 200]
    assert request(service.operators, "/readyz").status == 200
    until(lambda: request(unready.operators, "/readyz").status == 503, "the service is not ready")
    assert "cannot be reached" in request(unready.operators, "/readyz").text


def test_metrics_have_the_names_that_rules_and_dashboard_use(service: Service) -> None:
    files = [ROOT / "deploy/prometheus-rules.yaml", ROOT / "deploy/grafana-dashboard.json"]
    used = {name for file in files for name in re.findall(r"\bv3bridge_\w+", file.read_text())}
    text = request(service.operators, "/metrics").text
    offered = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert {name.removesuffix("_bucket") for name in used} <= offered
    assert len(used) > 20

    def parts() -> list[str]:
        text = request(service.operators, "/metrics").text
        return re.findall(r'^v3bridge_parts_used\{.*"shop".*\} (\S+)', text, re.MULTILINE)

    until(lambda: parts() == ["3.0"], "the parts used are shown")


# What systemd does before it executes a service: the socket is file 3, and LISTEN_PID its own process.
MANAGER = """import os, sys
os.dup2(int(sys.argv[1]), 3)
named = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "http", "LISTEN_PID": str(os.getpid())}
os.execve(sys.argv[2], sys.argv[2:], {**os.environ, **named})"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_socket_of_a_service_manager(processes: Processes, unready: Service, workers: str) -> None:
    folder = processes.new_folder()
    file = folder / "v3bridge.yaml"
    file.touch(0o600)
    file.write_text(re.sub("(?m)^admin:.*", "admin: false", unready.file.read_text()))
    with socket.create_server(("127.0.0.1", 0)) as listening, (folder / "log").open("wb") as log:
        number = listening.fileno()
        words = [sys.executable, "-c", MANAGER, str(number), PROGRAM, "serve", "--config", str(file)]
        process = subprocess.Popen(
            [*words, "--workers", workers],
            cwd=folder, env=environment(folder, {}), stdout=log, stderr=log, pass_fds=[number], start_new_session=True,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            assert request(url, "/healthz").status == 200
            process.terminate()
            assert process.wait(30) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_init_writes_a_configuration_that_works(processes: Processes, sandbox: Sandbox) -> None:
    folder, ways = processes.new_folder(), sandbox.ways
    options = ["--yes", "--client-id", ways["client_id"], "--client-secret", "env:SECRET", "--plan", "enterprise"]
    options += ["--graphql-url", ways["graphql_url"], "--token-url", ways["token_url"], "--apikey", bills.KEY]
    done = command("init", *options, folder=folder, SECRET=ways["client_secret"])
    text = (folder / "our.yaml").read_text()
    assert (done.returncode, ways["client_secret"] in text + done.stdout) == (0, False), done.stdout
    assert processes.service(text, SECRET=ways["client_secret"]).get(PART).status == 200
    again = command("init", *options, folder=folder, SECRET=ways["client_secret"])
    assert (again.returncode, "our.yaml" in again.stderr) == (2, True)


def test_status_of_a_running_service(processes: Processes, service: Service, unready: Service) -> None:
    found = run(service, "status")
    assert (found.returncode, "shop" in found.stdout) == (0, True)
    until(lambda: request(unready.operators, "/readyz").status == 503, "the service is not ready")
    assert run(unready, "status").returncode == 1
    nothing = command("status", folder=processes.new_folder())
    assert (nothing.returncode, nothing.stdout) == (2, "")


def test_doctor(service: Service, unready: Service) -> None:
    good, bad = run(service, "doctor", "--json"), run(unready, "doctor")
    assert (good.returncode, json.loads(good.stdout)["ok"]) == (0, True)
    assert (bad.returncode, "127.0.0.1:9" in bad.stdout) == (1, True)


def test_explain_a_url(service: Service, sandbox: Sandbox) -> None:
    before = sandbox.parts
    found = run(service, "explain", f"https://octopart.com/api{PART}")
    assert (found.returncode, sandbox.parts) == (0, before)
    assert all(text in found.stdout for text in ("supMultiMatch", "SN74S74N", "At most 3 parts"))
    assert bills.KEY not in found.stdout


def test_explain_a_log(service: Service) -> None:
    found = run(service, "explain", str(LOG))
    assert (found.returncode, "34 requests" in found.stdout, "/parts/match" in found.stdout) == (0, True, True)
    missing = run(service, "explain", "missing.log")
    assert (missing.returncode, missing.stdout) == (2, "")


def test_conform_against_the_sandbox(processes: Processes) -> None:
    found = command("conform", "--against", "sandbox", "--json", folder=processes.new_folder())
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)


def test_usage(service: Service) -> None:
    assert bills.usage(service)["shop"] == (3, 0, 0, None)
    printed = run(service, "usage")
    assert (printed.returncode, "shop" in printed.stdout) == (0, True)
    assert command("usage", "--config", "missing.yaml", folder=service.folder).returncode == 2


def test_config_names_origins_and_all_mistakes(service: Service) -> None:
    good = run(service, "config")
    assert (good.returncode, "v3bridge.yaml:" in good.stdout) == (0, True)
    assert not any(secret in good.stdout for secret in (bills.KEY, "sandbox-secret"))
    (service.folder / "bad.yaml").write_text("applications:\n  shop: {apikeys: [K], partss: 3, rate: -1}\nstor: x\n")
    bad = command("config", "--config", "bad.yaml", folder=service.folder)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert [line.split(" ")[1] for line in bad.stderr.splitlines()] == [
        "bad.yaml:2:24:",
        "bad.yaml:2:35:",
        "bad.yaml:3:1:",
    ]
