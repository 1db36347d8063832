"""`nexar-sandbox`, whose addresses and credentials work as printed, and the public interface: the fixture `nexar`, with
other people's GraphQL clients."""

import dataclasses
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

import gql
import pytest
from gql.transport.exceptions import TransportQueryError
from gql.transport.requests import RequestsHTTPTransport
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session
from support.running_commands import Run

import nexar_sandbox

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
    shown = start_sandbox("--no-auth")
    found = _post(shown.values["graphql_url"], query, **{"Content-Type": "application/json"})["data"]["supSearch"]
    assert len(found["results"]) == 3
    applications = shown.ask(usage)["admOrganizations"][0]["applications"]
    used = {one["security"]["clientId"]: one["supplyCounts"]["partCounter"] for one in applications}
    assert used[shown.values["client_id"]] == 3


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
        ("--fault quota=", "fault 'quota=': no kind 'quota='; there are latency, "),
    ],
)
def test_add_on_without_its_plan_and_invalid_fault_are_refused(
    run_command: RunCommand, options: str, complaint: str
) -> None:
    done = run_command("--port", "0", *options.split(), python=PROGRAM)
    assert done.returncode == 2
    assert done.stderr.startswith(f"nexar-sandbox: {complaint}")


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


MATCH = """query ($queries: [SupPartMatchQuery!]!) {
    supMultiMatch(queries: $queries) { hits parts { mpn manufacturer { name } } } }"""


@pytest.fixture(autouse=True)
def _insecure_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # loopback


def _client(nexar: nexar_sandbox.Sandbox) -> gql.Client:
    with OAuth2Session(client=BackendApplicationClient(nexar.client_id, scope=["supply.domain"])) as session:
        token = session.fetch_token(nexar.token_url, client_secret=nexar.client_secret)["access_token"]
    transport = RequestsHTTPTransport(nexar.graphql_url, headers={"Authorization": f"Bearer {token}"})
    return gql.Client(transport=transport, fetch_schema_from_transport=True)


def test_gql_validates_against_the_schema_and_its_parts_are_billed(nexar: nexar_sandbox.Sandbox) -> None:
    with _client(nexar) as session:
        found = session.execute(gql.GraphQLRequest(MATCH, variable_values={"queries": [{"mpn": "NE555P", "limit": 1}]}))
    (match,) = found["supMultiMatch"]
    assert match["parts"][0]["mpn"] == "NE555P"
    assert nexar.billed_parts == len(match["parts"]) == 1


class TestPlanOfTwoParts:
    """Tests with settings of their own."""

    @pytest.fixture
    def nexar_settings(self) -> nexar_sandbox.SandboxSettings:
        plan = dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, part_limit=2)
        return nexar_sandbox.SandboxSettings(applications=(plan,))

    def test_part_limit_ends_the_queries(self, nexar: nexar_sandbox.Sandbox) -> None:
        query = gql.gql('{ supSearch(q: "", limit: 2) { results { part { mpn } } } }')
        with _client(nexar) as session:
            session.execute(query)
            with pytest.raises(TransportQueryError, match="exceeded your part limit of 2"):
                session.execute(query)


def test_each_test_has_services_of_its_own(nexar: nexar_sandbox.Sandbox) -> None:
    assert (nexar.billed_parts, nexar.journal.totals.requests.total()) == (0, 0)


def test_plug_in_imports_nothing_until_it_is_used() -> None:
    code = "import sys, nexar_sandbox.pytest_plugin; print(*(m for m in sys.modules if m.startswith('nexar_sandbox')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["nexar_sandbox", "nexar_sandbox.pytest_plugin"]


@pytest.mark.parametrize("name", nexar_sandbox.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(nexar_sandbox, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = nexar_sandbox.no_such_name


def test_v3bridge_runs_it_with_its_options(run_command: Run) -> None:
    done = run_command("sandbox", "--fault", "no")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("v3bridge: fault 'no': no kind 'no'")
