"""Tests of the public interface: the fixture `nexar`, and other people's GraphQL clients against it."""

import dataclasses
import subprocess
import sys

import gql
import pytest
from gql.transport.exceptions import TransportQueryError
from gql.transport.requests import RequestsHTTPTransport
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session
from support.running_commands import Run

import nexar_sandbox

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


def test_port_that_is_taken_is_an_error_of_the_caller(nexar: nexar_sandbox.Sandbox) -> None:
    with pytest.raises(OSError, match="in use"), nexar_sandbox.running(port=nexar.port):
        pass


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
