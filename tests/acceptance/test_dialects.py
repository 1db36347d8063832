"""The dialects beside each other: what is paid once for all, what is passed on, and the ways to the upstream."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from acceptance import bills
from acceptance.running import Operation, Processes, Response, Sandbox, Service
from acceptance.vendor import Vendor
from aiohttp import web
from octopart.client import OctopartClient

pytestmark = pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning")

KEY, JSON = bills.KEY, "application/json"
GRAPHQL = """query ($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { parts { mpn specs {
  displayValue } sellers { company { name } offers { sku inventoryLevel prices { quantity price currency } } } } } }"""
V4 = """query ($queries: [PartMatchQuery!]!) { multi_match(queries: $queries) { parts { mpn v3uid
  sellers { company { name } offers { sku inventory_level prices { quantity price currency } } } } } }"""
NUMBER = "SN74S74N"
FREE = '{ supSellers(ids: ["459"]) { name } }'


@pytest.fixture(scope="module")
def sandbox(module_processes: Processes) -> Sandbox:
    return bills.sandbox(module_processes, 180, "--plan", "enterprise")


def configuration(sandbox: Sandbox, application: str = "plan: enterprise") -> str:
    return bills.configuration(sandbox, "memory:", shop=bills.application(sandbox, f"{application}, apikeys: [{KEY}]"))


@pytest.fixture(scope="module")
def service(module_processes: Processes, sandbox: Sandbox) -> Service:
    return module_processes.service(configuration(sandbox))


def ask(service: Service, document: str, path: str = "/graphql", own: str = "", **variables: Any) -> Response:
    headers = {"x_nexar_authorization": f"Bearer {own}"} if own else {}
    body = json.dumps({"query": document, "variables": variables})
    return service.get(path, method="POST", body=body, token=KEY, content_type=JSON, **headers)


def v3(service: Service, numbers: list[str]) -> list[str]:
    client = OctopartClient(api_key=KEY, base_url=f"{service.url}/api/v3")
    found = client.match([{"mpn": number} for number in numbers], includes=["specs", "datasheets"])
    return [result["items"][0]["mpn"] for result in found["results"]]


def by_graphql(service: Service, numbers: list[str]) -> list[str]:
    queries = [{"mpn": number} for number in numbers]
    return [each["parts"][0]["mpn"] for each in ask(service, GRAPHQL, queries=queries).json["data"]["supMultiMatch"]]


def by_v4(service: Service, numbers: list[str]) -> list[str]:
    queries = [{"mpn": number} for number in numbers]
    reply = ask(service, V4, "/api/v4/endpoint", queries=queries)
    return [each["parts"][0]["mpn"] for each in reply.json["data"]["multi_match"]]


ORDERS = [(v3, by_graphql, by_v4), (by_graphql, by_v4, v3), (by_v4, v3, by_graphql)]


@pytest.mark.parametrize("order", range(len(ORDERS)))
def test_parts_are_paid_once_by_a_v3_client_a_graphql_and_a_v4_document(
    service: Service, sandbox: Sandbox, order: int
) -> None:
    numbers, before = bills.numbers(60, 60 * order), sandbox.parts
    for program in ORDERS[order]:
        for first in range(0, 60, 20):
            assert program(service, numbers[first : first + 20]) == numbers[first : first + 20]
    assert sandbox.parts - before == 60


def test_parts_match_of_v4_is_that_of_v3_in_its_shape(service: Service) -> None:
    target = "/parts/match?queries=" + json.dumps([{"mpn": "SN74S74N", "reference": "7"}]).replace(" ", "")
    (old,) = service.get(f"/v3{target}&apikey={KEY}").json["results"]
    reply = service.get(f"/api/v4/rest{target}", token=KEY)
    (new,) = reply.json["results"]
    assert (new["reference"], new["hits"], reply.headers["x-parts-cost"]) == ("7", old["hits"], "0")
    assert list(new["items"][0]) == ["uid", "mpn", "brand", "manufacturer", "octopart_url", "offers"]
    assert [item["mpn"] for item in new["items"]] == [item["mpn"] for item in old["items"]]
    prices = [[offer["prices"] for offer in result["items"][0]["offers"]] for result in (old, new)]
    assert prices[0] == prices[1]
    assert service.get(f"/api/v4/rest{target}").json["message"].startswith("token missing")


def test_token_for_clients_of_the_vendor(service: Service) -> None:
    def token(secret: str) -> Response:
        form = {"grant_type": "client_credentials", "client_id": "any", "client_secret": secret}
        headers = {"content_type": "application/x-www-form-urlencoded"}
        return service.get("/connect/token", method="POST", body=urlencode(form), **headers)

    right, wrong = token(KEY), token("wrong")
    assert (right.status, right.json["token_type"], right.json["expires_in"]) == (200, "Bearer", 86_400)
    assert (wrong.status, wrong.json) == (400, {"error": "invalid_client"})
    for bearer, status in ((right.json["access_token"], 200), ("x.y.z", 401)):
        headers = {"content_type": JSON, "authorization": f"Bearer {bearer}"}
        assert service.get("/graphql", method="POST", body=json.dumps({"query": FREE}), **headers).status == status


MUTATION = """mutation { desDeleteComment(input: {entityId: "x", commentThreadId: "t", commentId: "c"}) {
  errors { message } } }"""


@pytest.mark.parametrize("document", [MUTATION, "{ desWorkspaceInfos { name } }"])
def test_what_is_the_callers_own_is_sent_each_time_with_the_callers_token(
    service: Service, sandbox: Sandbox, document: str
) -> None:
    vendor = Vendor(sandbox)
    token = vendor.token(**vendor.design)
    for _ in range(2):
        before = sandbox.requests("graphql")
        expected, reply = vendor.ask(document, token).json, ask(service, document, own=token).json
        assert reply["data"] == expected["data"]
        assert [each["message"] for each in reply["errors"]] == [each["message"] for each in expected["errors"]]
        assert sandbox.requests("graphql") == before + 2
        *_, direct, passed_on = (each for each in sandbox.journal()["entries"] if each["service"] == "graphql")
        assert [passed_on[name] for name in ("application", "fields")] == [direct["application"], direct["fields"]]
    assert ask(service, document).status == 400  # without that token


def test_unsupported_parameters_are_named(service: Service) -> None:
    reply = service.get(f"/v3/parts/search?apikey={KEY}&q=resistor&limit=1&facet[fields][mpn][include]=1")
    assert (reply.status, reply.headers["x-v3-unsupported"]) == (200, "facet[fields][mpn]")


def test_upstream_at_another_host_and_port(processes: Processes, sandbox: Sandbox) -> None:
    """Where the vendor's name leads to the proxy, the proxy needs another way to the vendor."""
    name = "api.nexar.test"  # no name server knows it
    connect_to = f"{name}:80:127.0.0.1:{sandbox.url.rpartition(':')[2]}"
    upstream = (
        f"graphql_url: 'http://{name}/graphql', token_url: 'http://{name}/connect/token', connect_to: ['{connect_to}']"
    )
    text = configuration(sandbox).replace(sandbox.upstream, f"upstream: {{{upstream}}}")
    assert bills.found(processes.service(text).get(bills.match(NUMBER, limit=1))) == [NUMBER]


def test_site_names_the_urls_of_parts(processes: Processes, sandbox: Sandbox) -> None:
    """The sandbox's site is octopart; the upstream between translates."""
    vendor, upstream = Vendor(sandbox), processes.upstream()
    token = vendor.token()

    def answer(operation: Operation) -> web.Response:
        assert "acmeUrl" in operation.query
        data = vendor.ask(operation.query.replace("acmeUrl", "octopartUrl"), token, **operation.variables)
        return web.Response(text=data.text.replace("octopartUrl", "acmeUrl"), content_type=JSON)

    upstream.answer = answer
    text = configuration(sandbox).replace(sandbox.upstream, upstream.upstream.replace("}", ", site: acme}"))
    item, *_ = processes.service(text).get(bills.match(NUMBER)).json["results"][0]["items"]
    assert item["acme_url"].startswith("https://octopart.com/")
    assert "octopart_url" not in item
