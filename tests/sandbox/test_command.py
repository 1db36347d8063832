"""`nexar-sandbox`, whose addresses and credentials work as printed, and the public interface: the fixture `nexar`, with
other people's GraphQL clients."""

import dataclasses
import signal
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gql
import pytest
from acceptance import running
from acceptance.vendor import Vendor
from gql.transport.exceptions import TransportQueryError
from gql.transport.requests import RequestsHTTPTransport
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session
from support.running_commands import Run

import nexar_sandbox

PROGRAM = ("-m", "nexar_sandbox")


@pytest.fixture
def start_sandbox(start_command: Any) -> Callable[..., Vendor]:
    """Starts a sandbox, and makes a client of what it prints."""

    def start(*arguments: str) -> Vendor:
        command = start_command("--port", "0", *arguments, python=PROGRAM)
        ways = dict(line.split() for line in command.until("design_client_secret"))
        return Vendor(SimpleNamespace(ways=ways, url=ways["sandbox"], command=command))  # type: ignore[arg-type]

    return start


def test_every_service_has_a_port_until_a_signal_stops_it_cleanly(start_sandbox: Callable[..., Vendor]) -> None:
    shown: Any = start_sandbox()
    names = ("workspaces", "library", "projects", "collaboration")
    assert {running.request(shown.ways[f"design_{name}_url"]).status for name in names} == {401}
    index = shown.get("")
    assert {name: index[f"design_{name}"] for name in names} == {
        name: shown.ways[f"design_{name}_url"] for name in names
    }
    assert (shown.sandbox.command.stop(signal.SIGTERM), shown.sandbox.command.errors) == (0, "")


def test_no_auth_needs_no_token_and_bills_the_printed_application(start_sandbox: Callable[..., Vendor]) -> None:
    usage = "{ admOrganizations { applications { security { clientId } supplyCounts { partCounter } } } }"
    shown = start_sandbox("--no-auth")
    found = shown.data("{ supSearch(limit: 3) { results { part { id } } } }")["supSearch"]
    assert len(found["results"]) == 3
    applications = shown.data(usage, shown.token())["admOrganizations"][0]["applications"]
    used = {one["security"]["clientId"]: one["supplyCounts"]["partCounter"] for one in applications}
    assert used[shown.ways["client_id"]] == 3


def test_plan_of_the_first_application_can_be_chosen(start_sandbox: Callable[..., Vendor]) -> None:
    counts = "{ admOrganizations { applications { supplyCounts { partLimit } } } }"
    gated = '{ supParts(ids: ["54445"]) { bestDatasheet { url } cad { hasKicad } } }'
    limits = []
    for options, answered in (
        ("--plan pro --add-on DATASHEETS --add-on LEAD_TIME", {"bestDatasheet"}),
        ("--plan enterprise --part-limit 7", {"bestDatasheet", "cad"}),
    ):
        shown = start_sandbox(*options.split())
        token = shown.token()
        (part,) = shown.ask(gated, token).json["data"]["supParts"]
        assert {field for field, value in part.items() if value} == answered, options
        seed, design = shown.data(counts, token)["admOrganizations"][0]["applications"]
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
def test_add_on_without_its_plan_and_invalid_fault_are_refused(run_command: Run, options: str, complaint: str) -> None:
    done = run_command("--port", "0", *options.split(), python=PROGRAM)
    assert done.returncode == 2
    assert done.stderr.startswith(f"nexar-sandbox: {complaint}")


def test_legacy_service_has_its_printed_address_and_configured_rate(start_sandbox: Callable[..., Vendor]) -> None:
    def statuses(shown: Vendor, times: int) -> list[int]:
        url = f"{shown.ways['legacy_url']}/brands/search?q=texas&apikey={shown.ways['legacy_apikey']}"
        return [running.request(url).status for _ in range(times)]

    assert statuses(start_sandbox("--legacy-rate", "0"), 8) == [200] * 8
    assert 429 in statuses(start_sandbox("--legacy-rate", "1"), 20)


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


@pytest.fixture(autouse=True)
def _insecure_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # loopback


def _client(nexar: nexar_sandbox.Sandbox) -> gql.Client:
    with OAuth2Session(client=BackendApplicationClient(nexar.client_id, scope=["supply.domain"])) as session:
        token = session.fetch_token(nexar.token_url, client_secret=nexar.client_secret)["access_token"]
    transport = RequestsHTTPTransport(nexar.graphql_url, headers={"Authorization": f"Bearer {token}"})
    return gql.Client(transport=transport, fetch_schema_from_transport=True)


class TestPlanOfTwoParts:
    """Tests with settings of their own."""

    @pytest.fixture
    def nexar_settings(self) -> nexar_sandbox.SandboxSettings:
        plan = dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, part_limit=2)
        return nexar_sandbox.SandboxSettings(applications=(plan,))

    def test_gql_validates_and_the_part_limit_ends_its_queries(self, nexar: nexar_sandbox.Sandbox) -> None:
        query = gql.gql('{ supSearch(q: "", limit: 2) { results { part { mpn } } } }')
        with _client(nexar) as session:
            found = session.execute(query)["supSearch"]["results"]
            assert nexar.billed_parts == len(found) == 2
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
