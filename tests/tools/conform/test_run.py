"""Tests of one run: which probes it sends, what an assumption's answers say, and what others see of them."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.tools.conform import run
from proxy.tools.conform.run import MAIN, NO_PARTS, Account, Assumption, Probe, Service

SECRET, TOKEN = "a-client-secret", "eyJhbGciOi.a-token"
CHEAP, DEAR, PAID = (
    Probe("{ cheap }", parts=1),
    Probe("{ dear }", parts=5),
    Probe("{ paid }", parts=1, account=NO_PARTS),
)


class Upstream:
    """Answers documents by `responses`, a JSON body or a status; None breaks the connection."""

    def __init__(self) -> None:
        self.responses: dict[str, Any] = {}
        self.requests: list[str] = []
        self.tokens: list[str] = []  # that were given, then those that were sent

    async def respond(self, request: web.Request) -> web.Response:
        if request.path == "/token":
            self.tokens.append(f"Bearer {TOKEN}{len(self.tokens)}")
            return web.json_response({"access_token": self.tokens[-1].removeprefix("Bearer ")})
        self.tokens.append(request.headers["Authorization"])
        self.requests.append((await request.json())["query"])
        response = self.responses.get(self.requests[-1], {"data": {}})
        if response is None and request.transport is not None:
            request.transport.close()
        return web.Response(status=response) if isinstance(response, int) else web.json_response(response)


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
async def service(upstream: Upstream) -> AsyncIterator[Service]:
    application = web.Application()
    application.router.add_post("/{path}", upstream.respond)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        urls = str(server.make_url("/graphql")), str(server.make_url("/token"))
        yield Service(*urls, {MAIN: Account("client", SECRET, frozenset())}, session, pauses=(0.0, 0.0))


def assumption(probe: Probe, check: Any = lambda _: True) -> Assumption:
    return Assumption(probe.document, "It holds.", "§1 OWN", "everything", probe, check)


async def outcome(service: Service, probe: Probe, check: Any = lambda _: True) -> run.Outcome:
    assumptions = [assumption(probe, check)]
    result = await run.run(assumptions, run.select(assumptions, 20, service), service, lambda _: None)
    return result.outcomes[0]


def test_probes_are_selected_within_the_budget_cheap_ones_first(service: Service) -> None:
    chosen = run.select([*map(assumption, (DEAR, CHEAP, PAID))], 5, service)
    assert (chosen.probes, chosen.at_worst) == ([CHEAP], 1)
    assert chosen.left_out[DEAR] == "the budget of 5 parts is too small"
    assert chosen.left_out[PAID] == f"needs {NO_PARTS}"


async def test_a_plan_without_a_feature_of_a_selection_leaves_it_out(service: Service) -> None:
    found = await outcome(service, Probe("{ specs }", features=("TECH_SPECS",)))
    assert found.reason == "the application's plan lacks TECH_SPECS (`features`)"


async def test_each_probe_is_sent_once(service: Service, upstream: Upstream) -> None:
    assumptions = [*map(assumption, (CHEAP, DEAR, CHEAP))]
    result = await run.run(assumptions, run.select(assumptions, 20, service), service, lambda _: None)
    assert upstream.requests == ["{ cheap }", "{ dear }"]
    assert (result.requests, [each.verdict for each in result.outcomes]) == (2, ["confirmed"] * 3)


@pytest.mark.parametrize(
    "response, reason",
    [
        (503, "the service responded 503"),
        (500, "the service responded 500"),
        (429, "the service responded 429"),
        (401, "the service does not accept the access token"),
        ({"errors": [{"message": "You have exceeded your part limit of 1000."}]}, "the application's part limit is"),
        (None, "no answer: ServerDisconnectedError"),
    ],
)
async def test_an_answer_about_something_else_contradicts_nothing(
    service: Service, upstream: Upstream, response: Any, reason: str
) -> None:
    upstream.responses["{ cheap }"] = response
    found = await outcome(service, CHEAP, check=lambda _: "never")
    assert (found.verdict, found.reason[: len(reason)]) == ("not tested", reason)


async def test_an_answer_of_another_shape_contradicts(service: Service, upstream: Upstream) -> None:
    upstream.responses["{ cheap }"] = {"data": None, "errors": [{"message": "no such field"}]}
    found = await outcome(service, CHEAP, check=lambda answer: answer.data["found"])
    assert (found.verdict, found.observed) == ("contradicted", [["no such field"]])


async def test_an_earlier_token_is_sent_after_another_one_was_requested(service: Service, upstream: Upstream) -> None:
    await service.send(Probe("{ cheap }", after_new_token=True))
    assert upstream.tokens == [f"Bearer {TOKEN}0", f"Bearer {TOKEN}1", f"Bearer {TOKEN}0"]


async def test_a_run_ends_after_three_probes_without_an_answer(service: Service, upstream: Upstream) -> None:
    probes = [Probe(f"{{ probe{number} }}", parts=1) for number in range(5)]
    upstream.responses = {probe.document: None for probe in probes}
    assumptions = [*map(assumption, probes)]
    result = await run.run(assumptions, run.select(assumptions, 20, service), service, lambda _: None)
    assert len(upstream.requests) == result.requests == result.uncertain == 3
    assert result.outcomes[4].reason == "the service left 3 requests in a row without an answer"


@pytest.mark.parametrize(
    "body, returned",
    [
        ({"data": {"a": [{"hits": 9, "parts": [{}, {}]}], "b": [{"parts": [{}]}, {"parts": None}]}}, 3),
        ({"data": {"supSearch": {"hits": 7, "results": [{"part": {}}, {"part": None}]}}}, 1),
        ({"data": {"supParts": [{"mpn": "A", "similarParts": [{"mpn": "B"}]}, None]}}, 1),
        ({"data": {"supSellers": [{"id": "1"}]}}, 0),
        ({"data": None}, 0),
        ([], 0),
    ],
)
async def test_part_objects_of_root_fields_are_counted(
    service: Service, upstream: Upstream, body: Any, returned: int
) -> None:
    upstream.responses["{ cheap }"] = body
    assert (await service.send(CHEAP)).returned == returned


async def test_a_result_has_no_credentials_and_no_ids(service: Service) -> None:
    private = [SECRET, "client", TOKEN, "me@example.com", "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f"]
    observed = {f"{text} {private[-1]}": {"text": f"of {text}", "number": 1} for text in private}
    found = await outcome(service, CHEAP, check=lambda _: observed)
    assert [text for text in private[:1] + private[2:] if text in str(found)] == []
    assert "'number': 1" in str(found)
