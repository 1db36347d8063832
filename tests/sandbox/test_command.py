"""Tests of `nexar-sandbox`: addresses and credentials work as printed."""

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ("-m", "nexar_sandbox")
RunCommand = Callable[..., "subprocess.CompletedProcess[str]"]


def _post(address: Any, body: Any, **headers: Any) -> Any:
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=30) as response:
        return json.loads(response.read())


class Shown:
    """Client of the sandbox with the printed addresses and credentials."""

    def __init__(self, lines: Any) -> None:
        self.values = dict(line.split() for line in lines)

    def token(self) -> Any:
        form = {"grant_type": "client_credentials", "scope": "supply.domain"}
        form |= {name: self.values[name] for name in ("client_id", "client_secret")}
        return _post(self.values["token_url"], urllib.parse.urlencode(form).encode())

    def ask(self, query: Any) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token()['access_token']}"}
        return _post(self.values["graphql_url"], json.dumps({"query": query}).encode(), **headers)["data"]


@pytest.fixture
def start_sandbox(start_command: Any) -> Any:
    """Starts a sandbox and reads what it prints."""
    return lambda *arguments: Shown(
        start_command("--port", "0", *arguments, python=PROGRAM).until("design_client_secret")
    )


def test_every_service_has_a_port(start_sandbox: Any) -> None:
    shown = start_sandbox()
    names = ("workspaces", "library", "projects", "collaboration")
    for name in names:
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(shown.values[f"design_{name}_url"], timeout=30)
        refused.value.close()
    with urllib.request.urlopen(shown.values["sandbox"], timeout=30) as response:
        index = json.loads(response.read())
    assert {name: index[f"design_{name}"] for name in names} == {
        name: shown.values[f"design_{name}_url"] for name in names
    }


def test_no_auth_needs_no_token_and_bills_the_printed_application(start_sandbox: Any) -> None:
    query = json.dumps({"query": "{ supSearch(limit: 3) { results { part { id } } } }"}).encode()
    usage = "{ admOrganizations { applications { security { clientId } supplyCounts { partCounter } } } }"
    shown, guarded = start_sandbox("--no-auth"), start_sandbox()
    found = _post(shown.values["graphql_url"], query, **{"Content-Type": "application/json"})["data"]["supSearch"]
    assert len(found["results"]) == 3
    applications = shown.ask(usage)["admOrganizations"][0]["applications"]
    used = {one["security"]["clientId"]: one["supplyCounts"]["partCounter"] for one in applications}
    assert used[shown.values["client_id"]] == 3
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        _post(guarded.values["graphql_url"], query, **{"Content-Type": "application/json"})
    refused.value.close()


def test_port_in_use_is_named(run_command: RunCommand) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        own = run_command("--port", str(port), python=PROGRAM)
    why = f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another with"
    assert (own.returncode, own.stderr) == (2, f"nexar-sandbox: the sandbox {why} --host or --port\n")


def test_plan_of_the_first_application_can_be_chosen(start_sandbox: Any) -> None:
    counts = "{ admOrganizations { applications { supplyCounts { partLimit } } } }"
    gated = '{ supParts(ids: ["54445"]) { bestDatasheet { url } cad { hasKicad } } }'
    limits = []
    for options, answered in (
        ("--plan pro --add-on DATASHEETS --add-on LEAD_TIME", {"bestDatasheet"}),
        ("--plan enterprise --part-limit 7", {"bestDatasheet", "cad"}),
    ):
        shown = start_sandbox(*options.split())
        (part,) = shown.ask(gated)["supParts"]
        assert {field for field, value in part.items() if value} == answered, options
        seed, design = shown.ask(counts)["admOrganizations"][0]["applications"]
        limits.append(seed["supplyCounts"]["partLimit"])
        assert design["supplyCounts"]["partLimit"] == 1000
    assert limits == [15_000, 7]


@pytest.mark.parametrize(
    "options, complaint",
    [
        ("--add-on DATASHEETS", "--add-on needs --plan pro"),
        ("--plan standard --add-on DATASHEETS", "Add-ons are for Pro; Standard has what it has."),
    ],
)
def test_add_on_without_its_plan_is_refused(run_command: RunCommand, options: str, complaint: str) -> None:
    done = run_command("--port", "0", *options.split(), python=PROGRAM)
    assert (done.returncode, done.stderr) == (2, f"nexar-sandbox: {complaint}\n")


def _old_brands(shown: Any, times: Any) -> Any:
    """The statuses of so many requests to the old v3 service, as its address and apikey are printed."""
    url = f"{shown.values['legacy_url']}/brands/search?q=texas&apikey={shown.values['legacy_apikey']}"
    statuses = []
    for _ in range(times):
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                statuses.append(response.status)
        except urllib.error.HTTPError as refused:
            with refused:
                statuses.append(refused.code)
    return statuses


def test_legacy_service_has_its_printed_address_and_configured_rate(start_sandbox: Any) -> None:
    assert _old_brands(start_sandbox("--legacy-rate", "0"), 8) == [200] * 8
    assert 429 in _old_brands(start_sandbox("--legacy-rate", "1"), 20)


def test_invalid_fault_is_named(run_command: RunCommand) -> None:
    done = run_command("--port", "0", "--fault", "5xx status=404", python=PROGRAM)
    complaint = "fault '5xx status=404': status must be 500, 502, 503 or 504; it is '404'"
    assert (done.returncode, done.stderr) == (2, f"nexar-sandbox: {complaint}\n")


def test_signal_stops_the_sandbox_cleanly(start_command: Any) -> None:
    sandbox = start_command("--port", "0", python=PROGRAM)
    sandbox.until("design_client_secret")
    assert sandbox.stop(signal.SIGTERM) == 0
    assert sandbox.errors == ""


_START_WITH_OWN_PACKAGES = """
import importlib.metadata as metadata
import re
import sys

allowed, left = set(), {"nexar-sandbox"}
while left:
    name = left.pop()
    allowed.add(re.sub("[-_.]+", "-", name).lower())
    try:
        required = metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        continue  # for other systems
    plain = (re.match(r"[\\w.-]+", line)[0] for line in required if "extra ==" not in line)
    left |= {each for each in plain if re.sub("[-_.]+", "-", each).lower() not in allowed}
for package, distributions in metadata.packages_distributions().items():
    if allowed.isdisjoint(re.sub("[-_.]+", "-", each).lower() for each in distributions):
        sys.modules[package] = None
import nexar_sandbox.command
"""


def test_command_needs_no_package_but_those_that_it_declares() -> None:
    subprocess.run([sys.executable, "-c", _START_WITH_OWN_PACKAGES], check=True)
