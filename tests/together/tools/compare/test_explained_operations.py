"""Tests that the operations of an explanation are all that a response is made of.

They are sent to the sandbox by plain HTTP. A gateway that has nothing but these responses gives the response of the
proxy, byte for byte. That takes two executions of each request: of the generated ones a share is compared in this way,
and of all of them the operations.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import graphql as language
import pytest
import pytest_asyncio
import yarl
from support import running_proxy, sandbox_client
from together.environment import ProxyEnvironment
from together.tools.compare import covering_requests, generated_requests
from together.tools.compare.comparison import GenerateRequests

from proxy import model
from proxy.explain import trace
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import ExplainedOperation, Explanation
from proxy.gateway import assembly
from proxy.kit import clock
from proxy.telemetry import activity
from proxy.traffic.sources import clients, source
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.upstream import classify, graphql, http_post, stalls
from proxy.upstream.auth import identity

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file
ROOT = Path(__file__).parents[4]
CASES = ROOT / "tests/service/cases"
REQUESTS, SHARE = 1_000, 6  # of the requests that test_equivalence.py compares, one in twelve


class Responses:
    """Responses to the operations of one explanation, and to those of lists, by document and variables."""

    def __init__(self) -> None:
        self._explained: dict[str, http_post.HttpResponse] = {}
        self._lists: dict[str, http_post.HttpResponse] = {}
        self._printed: dict[str, str] = {}
        self.unused: set[str] = set()

    def replace(self, responses: dict[str, http_post.HttpResponse]) -> None:
        self._explained = responses
        self.unused = set(responses)

    def add_list(self, operation: ExplainedOperation, response: http_post.HttpResponse) -> None:
        self._lists[key(operation.document, operation.variables)] = response

    def take(self, payload: bytes) -> http_post.HttpResponse:
        sent = json.loads(payload)
        text = sent["query"]
        if text not in self._printed:
            self._printed[text] = language.print_ast(language.parse(text))
        name = key(self._printed[text], sent["variables"])
        self.unused.discard(name)
        return self._explained.get(name) or self._lists[name]

    def replace_by_empty(self, operations: Iterable[ExplainedOperation]) -> None:
        self.replace({key(each.document, each.variables): empty_response(each) for each in operations})


def empty_response(operation: ExplainedOperation) -> http_post.HttpResponse:
    """Response that finds nothing."""
    (definition,) = language.parse(operation.document).definitions
    assert isinstance(definition, language.OperationDefinitionNode)
    (root,) = definition.selection_set.selections
    assert isinstance(root, language.FieldNode)
    assert root.selection_set is not None
    name, variables = root.name.value, operation.variables
    fields = [each for each in root.selection_set.selections if isinstance(each, language.FieldNode)]
    found: Any = {(field.alias or field.name).value: [] for field in fields} | {"hits": 0}
    if name == "supMultiMatch":
        found = [{"hits": 0, "parts": []}] * len(variables["queries"])
    elif name == "supParts":
        found = [None] * len(variables["ids"])
    return http_post.HttpResponse(200, json.dumps({"data": {name: found}}).encode())


def key(document: str, variables: Any) -> str:
    return json.dumps([document, variables], sort_keys=True)


class AnsweringClient(graphql.GraphQLClient):
    """GraphQL client without a network."""

    def __init__(self, *arguments: Any, responses: Responses, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._responses = responses

    async def execute(
        self,
        operation: classify.GraphQLOperation[Any],
        credentials: identity.Credentials,
        since: float | None = None,
        partial_errors: list[model.GraphQLError] | None = None,
        record: activity.OperationRecord | None = None,
        *,
        watches: Sequence[stalls.StallWatch[Any]] = (),
    ) -> Any:
        reply = self._responses.take(operation.payload)
        return self._data(operation, reply, classify.decode(operation, reply))


class Executor:
    """Explains requests, sends their operations, and serves the requests from the responses alone."""

    def __init__(
        self,
        explainer: Explainer,
        sandbox: sandbox_client.SandboxClient,
        gateway: assembly.Gateway,
        responses: Responses,
    ) -> None:
        self._explainer = explainer
        self._sandbox = sandbox
        self._gateway = gateway
        self._responses = responses

    async def serve(self, request: V3Request) -> trace.Trace:
        """Return the trace of a request that has the responses to the explained operations, and no others."""
        explanation = await self._explain(request)
        responses = {key(each.document, each.variables): await self._send(each) for each in explanation.operations}
        self._responses.replace(responses)
        return await self._trace(request, explanation)

    async def serve_nothing(self, request: V3Request) -> trace.Trace:
        """Return the trace of a request for which the explained operations, and no others, find nothing."""
        explanation = await self._explain(request)
        self._responses.replace_by_empty(explanation.operations)
        return await self._trace(request, explanation)

    async def _explain(self, request: V3Request) -> Explanation:
        explanation = self._explainer.explain(request, apikey=running_proxy.KEY)
        for name, operation in zip(explanation.lists, explanation.operations, strict=False):
            response = await self._send(operation)
            self._explainer.supply_list(name, response.body)
            self._responses.add_list(operation, response)
        return self._explainer.explain(request, apikey=running_proxy.KEY) if explanation.lists else explanation

    async def _trace(self, request: V3Request, explanation: Explanation) -> trace.Trace:
        client = self._gateway.applications.client(running_proxy.KEY)
        traced = await trace.trace(self._gateway, request, lambda: client)
        always = [each for each in explanation.operations if each.condition is None]
        assert [each.name for each in always if key(each.document, each.variables) in self._responses.unused] == []
        return traced

    async def _send(self, operation: ExplainedOperation) -> http_post.HttpResponse:
        reply = await self._sandbox.ask(operation.document, operation.variables)
        return http_post.HttpResponse(reply.status, reply.raw)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor(environment: ProxyEnvironment) -> AsyncIterator[Executor]:
    """An executor beside the environment's proxy. Its gateway sends each operation by itself, to nobody."""
    nobody = "http://127.0.0.1:9/"
    settings = running_proxy.settings(nobody, nobody, coalescing={"enabled": False})
    responses = Responses()
    async with AsyncExitStack() as resources:
        session = await resources.enter_async_context(aiohttp.ClientSession())
        sandbox = sandbox_client.SandboxClient(environment.sandbox, session)
        await sandbox.log_in()
        factory = partial(AnsweringClient, responses=responses)
        gateway = await assembly.build(settings, clock.ManualClock(), resources, client_factory=factory)
        yield Executor(Explainer(settings), sandbox, gateway, responses)


async def check(environment: ProxyEnvironment, executor: Executor, requests: list[V3Request]) -> None:
    """Compare the response to each request with that of the proxy over a socket."""
    for request in requests:
        url = yarl.URL(f"{environment.proxy.url}/v3{request.target(running_proxy.KEY)}", encoded=True)
        async with environment.proxy.session.get(url) as response:
            expected = response.status, await response.text()
        traced = await executor.serve(request)
        body = traced.response if isinstance(traced.response, str) else bytes(traced.response).decode()
        assert (traced.status, body) == expected, request.target()


async def test_operations_of_generated_requests_give_the_response_of_the_proxy(
    environment: ProxyEnvironment, executor: Executor, generate_requests: GenerateRequests
) -> None:
    requests = generated_requests.covering_pairs(await generate_requests(REQUESTS))
    await check(environment, executor, requests[::SHARE])


async def test_every_generated_request_is_served_by_the_explained_operations(
    executor: Executor, generate_requests: GenerateRequests
) -> None:
    requests = generated_requests.covering_pairs(await generate_requests(REQUESTS))
    statuses = Counter([(await executor.serve_nothing(request)).status for request in requests])
    assert statuses.keys() == {200, 400, 404}
    assert statuses[200] > len(requests) / 2


async def test_operations_of_requests_for_every_field_give_the_response_of_the_proxy(
    environment: ProxyEnvironment, executor: Executor
) -> None:
    await check(environment, executor, await covering_requests.covering_requests(environment.sandbox.legacy_url))


async def test_operations_of_recorded_requests_give_the_response_of_the_proxy(
    environment: ProxyEnvironment, executor: Executor
) -> None:
    requests = list(source.open_source(ROOT / "examples" / "access.log", clients.Clients()).requests())
    assert len(requests) > 20
    await check(environment, executor, requests)


async def test_operations_of_each_case_of_the_mappings_give_the_response_of_the_proxy(
    environment: ProxyEnvironment, executor: Executor
) -> None:
    """Most of these cases are rare: mistakes, wildcards, counts, filters by names that only upstream's lists have."""
    first = [next(case_requests(case), None) for case in sorted(CASES.glob("*/request.txt"))]
    requests = [request for request in first if request is not None]
    assert len(requests) > 200
    await check(environment, executor, requests)


def case_requests(case: Path) -> Iterator[V3Request]:
    """Yield the GET requests of a case of tests/service/cases that have a v3 path. All have the same response."""
    for line in case.read_text("utf-8").splitlines():
        with suppress(ValueError):
            if line.startswith("/"):
                path, query, _ = parse_target(line)
                yield V3Request(path, query)
