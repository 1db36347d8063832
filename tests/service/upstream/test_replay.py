"""Recording and replay of GraphQL responses, and messages about missing fields."""

import contextlib
import json
import random
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from service.upstream import graphql_responses

from proxy import errors
from proxy.kit import clock as clocks
from proxy.telemetry import metrics as metering
from proxy.telemetry.request_ids import REQUEST_ID
from proxy.upstream import policies, replay
from proxy.upstream.auth import identity

DOCUMENT = "query supSearchMpn($q: String!) { supSearchMpn(q: $q) { hits results { part { mpn } } } }"
RICHER = "query supSearchMpn($q: String!) { supSearchMpn(q: $q) { hits results { part { mpn sku: id(of: $q) } } } }"
POORER = "query supSearchMpn($q: String!) { supSearchMpn(q: $q) { hits } }"


class Tokens:
    """Token source without a limit."""

    async def get(self, credentials: Any, seconds: Any) -> Any:
        return "a-token"

    async def invalidate(self, credentials: Any, token: Any) -> None:
        pass

    def mark_accepted(self, credentials: Any, token: Any) -> None:
        pass


class _Upstream:
    """A GraphQL service that sends scripted responses, the last one for ever."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)

    async def respond(self, request: Any) -> Any:
        status, body = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return web.json_response(body, status=status)


def operation_of(document: Any = DOCUMENT, **variables: Any) -> Any:
    payload = {"operationName": "supSearchMpn", "query": document, "variables": variables}
    return graphql_responses.Operation(payload=json.dumps(payload).encode())


@pytest.fixture
def request_id() -> Any:
    token = REQUEST_ID.set("call-1")
    yield "call-1"
    REQUEST_ID.reset(token)


@pytest.fixture
def client_of(clock: clocks.ManualClock, metrics: metering.Metrics, make_breaker: Any) -> Any:
    """A client of some kind, and what it needs; closed with the test."""

    def make(kind: Any, url: str = "", session: Any = None, **named: Any) -> Any:
        retry = policies.RetryPolicy(0, 30.0, policies.RetryBudget(), random.Random(1))
        return kind(session, url, Tokens(), retry=retry, breaker=make_breaker(), metrics=metrics, clock=clock, **named)

    return make


@pytest.fixture
async def record(
    client_of: Any,
    open_session: Callable[..., aiohttp.ClientSession],
    serve: Any,
    credentials: identity.Credentials,
    request_id: Any,
) -> Any:
    """Records the responses of a service."""

    async def execute(service: Any, *operations: Any) -> Any:
        recorder = replay.ResponseRecorder()
        async with serve(service.respond) as url, open_session() as session:
            client = client_of(replay.RecordingGraphQLClient, url, session, recorder=recorder)
            for operation in operations:
                with contextlib.suppress(errors.BridgeError):
                    await client.execute(operation, credentials)
        return recorder

    return execute


GOOD = (200, {"data": graphql_responses.GOOD})


async def test_responses_of_a_request_are_recorded_once(record: Any, request_id: Any) -> None:
    recorder = await record(_Upstream(GOOD), operation_of(q="a", b=1), operation_of(b=1, q="a"), operation_of(q="z"))
    first, second = recorder.take(request_id)
    assert (first.name, first.variables, first.status) == ("supSearchMpn", '{"b":1,"q":"a"}', 200)
    assert first.document == DOCUMENT
    assert json.loads(first.body) == {"data": graphql_responses.GOOD}
    assert second.variables == '{"q":"z"}'
    assert recorder.take(request_id) == ()


async def test_response_after_a_refused_token_replaces_it(record: Any, request_id: Any) -> None:
    recorder = await record(_Upstream((401, {}), GOOD), operation_of(q="a"))
    (only,) = recorder.take(request_id)
    assert only.status == 200


async def test_refusal_is_recorded_unchanged(record: Any, request_id: Any) -> None:
    recorder = await record(
        _Upstream((200, {"errors": [graphql_responses.fault("no such spec")], "data": None})), operation_of(q="a")
    )
    (only,) = recorder.take(request_id)
    assert b"no such spec" in only.body


async def test_operation_without_variables_is_recorded_as_shared(record: Any, request_id: Any) -> None:
    recorder = await record(_Upstream(GOOD), operation_of())
    assert recorder.take(request_id) == ()
    assert [each.name for each in recorder.take_shared()] == ["supSearchMpn"]
    assert recorder.take_shared() == ()


def note(
    document: Any = DOCUMENT,
    variables: str = '{"q":"a"}',
    body: bytes = b'{"data": {"supSearchMpn": {"hits": 1}}}',
    status: int = 200,
) -> Any:
    return replay.RecordedGraphQLResponse("supSearchMpn", variables, document, status, body)


async def play(client_of: Any, credentials: Any, operation: Any, *notes: Any, shared: Any = ()) -> Any:
    player = replay.ResponseReplayer()
    for each in shared:
        player.add_shared(each)
    player.load("call-1", notes)
    client = client_of(replay.ReplayingGraphQLClient, replayer=player)
    try:
        return await client.execute(operation, credentials), player.unload("call-1")
    except errors.BridgeError as error:
        return error, player.unload("call-1")


@pytest.mark.parametrize("document", [DOCUMENT, POORER])
async def test_recorded_response_is_replayed_for_fewer_fields(
    client_of: Any, credentials: identity.Credentials, request_id: Any, document: Any
) -> None:
    data, lacking = await play(client_of, credentials, operation_of(document, q="a"), note())
    assert data.supSearchMpn == {"hits": 1}
    assert lacking is None


async def test_missing_field_is_named(client_of: Any, credentials: identity.Credentials, request_id: Any) -> None:
    error, lacking = await play(client_of, credentials, operation_of(RICHER, q="a"), note())
    assert isinstance(error, errors.UpstreamUnreadable)
    assert lacking == str(error)
    assert lacking == (
        "the mappings ask for more than was recorded (supSearchMpn(q: $q).results.part.sku: id(of: $q)): record again"
    )


async def test_missing_operation_is_named(client_of: Any, credentials: identity.Credentials, request_id: Any) -> None:
    _, lacking = await play(client_of, credentials, operation_of(q="b"), note())
    assert lacking == "the mappings ask for more than was recorded (supSearchMpn): record again"


async def test_recording_with_all_fields_is_preferred(
    client_of: Any, credentials: identity.Credentials, request_id: Any
) -> None:
    richer = note(RICHER, body=b'{"data": {"supSearchMpn": {"hits": 2}}}')
    data, _ = await play(client_of, credentials, operation_of(RICHER, q="a"), richer, note())
    assert data.supSearchMpn == {"hits": 2}


async def test_shared_response_is_replayed_for_all_requests(
    client_of: Any, credentials: identity.Credentials, request_id: Any
) -> None:
    data, _ = await play(client_of, credentials, operation_of(), shared=[note(variables="{}")])
    assert data.supSearchMpn == {"hits": 1}


async def test_response_of_another_request_is_not_replayed(
    client_of: Any, credentials: identity.Credentials, request_id: Any
) -> None:
    player = replay.ResponseReplayer()
    player.load("call-2", (note(),))
    client = client_of(replay.ReplayingGraphQLClient, replayer=player)
    with pytest.raises(errors.UpstreamUnreadable):
        await client.execute(operation_of(q="a"), credentials)


async def test_recorded_quota_exhausted_is_replayed_as_query_refused(
    client_of: Any, credentials: identity.Credentials, request_id: Any
) -> None:
    body = json.dumps({"errors": [graphql_responses.fault(graphql_responses.PART_LIMIT)], "data": None}).encode()
    error, _ = await play(client_of, credentials, operation_of(q="a"), note(body=body))
    assert type(error) is errors.QueryRefused


def test_fields_include_aliases_arguments_and_fragments() -> None:
    document = (
        """query x($c: String) { a(n: 1) { b: c(currency: $c) { d } ... on E { f } ...G } } fragment G on E { h }"""
    )
    assert replay.fields(document) == {
        "a(n: 1)",
        "a(n: 1).b: c(currency: $c)",
        "a(n: 1).b: c(currency: $c).d",
        "a(n: 1).f",
        "a(n: 1).h",
    }
