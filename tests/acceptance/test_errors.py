"""Errors of v3, and what every answer of the upstream becomes: the client's status, and what is booked."""

import asyncio
import functools
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from acceptance import bills
from acceptance.running import Operation, Processes, Sandbox, ScriptedUpstream, Service
from acceptance.vendor import Vendor
from aiohttp import web

PART = '/v3/parts/match?apikey={}&queries=[{{"mpn":"SN74S74N"}}]'
PAIR = '/v3/parts/match?apikey={}&queries=[{{"mpn":"1N4007"}},{{"mpn":"1N4733A"}}]'  # at most 3 parts each, 1 in fact
FORBIDDEN = '{\n  "__class__": "ClientErrorResponse",\n  "message": "Forbidden request"\n}'


@pytest.fixture(scope="module")
def service(module_processes: Processes, sandbox: Sandbox) -> Service:
    """A service with an application that works, one with a rate, and one with a key of two parts."""
    own = sandbox.credentials
    return module_processes.service(
        f"""{sandbox.upstream}
store: "memory:"
applications:
  shop: {{{own}, apikeys: [KEY]}}
  slow: {{{own}, apikeys: [KEY-SLOW], rate: 1}}
  small: {{{own}, apikeys: [{{key: KEY-SMALL, parts: 2}}]}}
"""
    )


@pytest.mark.parametrize("key", ["unknown", "key", "KEY%20", "KEY&apikey=other"])
def test_wrong_key_gets_the_recorded_body(service: Service, key: str) -> None:
    reply = service.get(PART.format(key))
    assert (reply.status, reply.text, len(reply.text)) == (403, FORBIDDEN, 74)
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "target, status, says",
    [
        ("/v3/parts/match?queries=[]", 400, "apikey argument missing"),
        ("/v3/parts/match?apikey=KEY", 400, "queries argument missing"),
        ("/v3/parts/match?apikey=KEY&queries=[", 400, "not valid JSON"),
        (
            '/v3/parts/match?apikey=KEY&queries=[{"mpn":"X"}]&exact_only=perhaps',
            400,
            "exact_only must be true or false",
        ),
        ("/v3/parts/0000000000000000?apikey=KEY", 404, ""),
        ("/v3/nothing?apikey=KEY", 404, ""),
        (PART.format("KEY-SMALL"), 429, "2 of 2 parts left"),
    ],
)
def test_refused_request_is_a_client_error(service: Service, target: str, status: int, says: str) -> None:
    reply = service.get(target)
    assert (reply.status, set(reply.json)) == (status, {"__class__", "message"})
    assert (reply.json["__class__"], says in reply.json["message"]) == ("ClientErrorResponse", True), reply.text


def test_request_beyond_the_rate_is_a_429(service: Service) -> None:
    replies = [service.get(PART.format("KEY-SLOW")) for _ in range(10)]
    assert (replies[0].status, replies[-1].status) == (200, 429)
    assert replies[-1].json["__class__"] == "ClientErrorResponse"
    assert int(replies[-1].headers["retry-after"]) >= 1


def test_upstream_that_cannot_be_reached_is_a_503(processes: Processes) -> None:
    gone = 'upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}'
    service = processes.service(
        f"{gone}\napplications: {{shop: {{client_id: a-client, client_secret: a-secret, apikeys: [KEY]}}}}"
    )
    reply = service.get(PART.format("KEY"))
    assert (reply.status, reply.json["__class__"]) == (503, "ServerErrorResponse")
    assert "cannot be reached" in reply.json["message"]


def failed(message: str, code: str = "") -> bytes:
    return json.dumps({"errors": [{"message": message, "extensions": {"code": code}}]}).encode()


ANSWERS = Path(__file__).with_name("upstream_answers.txt")
STATUSES = (200, 301, 400, 401, 403, 404, 429, 500, 502, 503, 504)
BODIES: dict[str, Callable[[bytes], bytes]] = {  # made of what the sandbox responds
    "data": lambda data: data,
    "data and errors": lambda data: data[: data.rindex(b"}")] + b"," + failed("a field failed")[1:],
    "refused query": lambda _: failed("no such seller"),
    "unexpected error": lambda _: failed("Unexpected Execution Error"),
    "part limit": lambda _: failed("You have exceeded your part limit of 10."),
    "invalid token": lambda _: failed("no", "AuthInvalidToken"),
    "HTML": lambda _: b"<html><body>a page</body></html>",
    "empty": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
}
BILLED = {"data", "data and errors", "HTML", "empty", "cut"}  # with status 200: parts, however spoiled on their way
CASES = list(product(BODIES, STATUSES))


@pytest.fixture(scope="module")
def scripted(module_processes: Processes, sandbox: Sandbox) -> ScriptedUpstream:
    """An upstream that sends each application what the sandbox responds, changed as the application's case says."""
    upstream, vendor = module_processes.upstream(), Vendor(sandbox)
    token = vendor.token()
    ask = functools.cache(lambda query, variables: vendor.ask(query, token, **json.loads(variables)).text.encode())

    async def answer(operation: Operation) -> web.Response:
        data = await asyncio.to_thread(ask, operation.query, json.dumps(operation.variables))
        body, status = ("data", 200) if operation.client_id == "good" else CASES[int(operation.client_id)]
        return web.Response(body=BODIES[body](data), status=status, content_type="application/json")

    upstream.answer = answer
    return upstream


def test_answers_of_the_upstream(
    processes: Processes, scripted: ScriptedUpstream, request: pytest.FixtureRequest
) -> None:
    """Each in an application of its own. The file is written anew by `pytest --renew-responses`."""
    applications = "".join(
        f"  a{each}: {{client_id: '{each}', client_secret: s, plan: enterprise, apikeys: [KEY-{each}]}}\n"
        for each in (*range(len(CASES)), "good")
    )
    service = processes.service(f"{scripted.upstream}\nstore: sqlite:store\napplications:\n{applications}")
    statuses = []
    for number in range(len(CASES)):
        statuses.append(service.get(PAIR.format(f"KEY-{number}")).status)
        # A success between two failures, so that the circuit breaker stays closed.
        assert service.get(f'/v3/parts/match?apikey=KEY-good&queries=[{{"mpn":"X{number}"}}]').status == 200
    usage, lines = bills.usage(service), []
    for number, (body, status) in enumerate(CASES):
        sent, (used, uncertain, reserved, _) = len(scripted.of(str(number))), usage[f"a{number}"]
        billed = 2 * sent if body in BILLED and status == 200 else 0
        assert (used + uncertain >= billed, reserved) == (True, 0), (body, status)
        assert sent == 1 or used + uncertain == 0, "what may be billed is not sent again"
        lines.append(f"{body:16} {status}: {statuses[number]}, billed {billed}, used {used}, uncertain {uncertain}")
    if request.config.getoption("--renew-responses"):
        ANSWERS.write_text("\n".join(lines) + "\n", "utf-8")
    renewal = f"renew it with: pytest --renew-responses {request.node.nodeid}"
    assert lines == ANSWERS.read_text("utf-8").splitlines(), renewal
