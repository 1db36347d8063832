"""Sender of GraphQL operations against a server on loopback."""

import asyncio
import io
import json
import random
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from service.upstream import graphql_responses

from proxy import errors
from proxy import metrics as metering
from proxy.kit import clock as clocks
from proxy.log import REQUEST_ID
from proxy.upstream import http_post, identity, policies
from proxy.upstream import tokens as tokens_
from proxy.upstream.sending import Sender

GOOD = (200, {"data": graphql_responses.GOOD})
EXPIRED = (200, {"errors": [graphql_responses.coded("AuthExpiredToken")]})
OPERATION = graphql_responses.Operation(payload=b'{"query":"x"}')


class Tokens(tokens_.Tokens):
    """Tokens without an identity service: t1, t2, …, each of which takes some seconds."""

    def __init__(self, clock: Any) -> None:
        settings: Any = {"store": None, "clock": clock, "rng": random.Random(1), "metrics": None}
        super().__init__(None, "", **settings)  # type: ignore[arg-type]
        self._manual = clock
        self.seconds = 0.0
        self.number = 0
        self.current: str | None = None
        self.refusals: list[str] = []
        self.accepted: list[str] = []

    async def get(self, credentials: Any, seconds: float | None = None) -> str:
        if self.current is None:
            self._manual.advance(self.seconds)
            self.number += 1
            self.current = f"t{self.number}"
        return self.current

    async def invalidate(self, credentials: Any, token: Any) -> None:
        if token == self.current:
            self.current = None

    def mark_accepted(self, credentials: Any, token: Any) -> None:
        self.accepted.append(token)

    async def mark_refused(self, credentials: Any, token: Any, error: Any) -> None:
        self.refusals.append(error.message)


class _Upstream:
    """A GraphQL service that sends scripted responses, the last one for ever."""

    def __init__(self, *script: tuple[int, object], retry_after: str | None = None) -> None:
        self.script = list(script)
        self.headers = {"Retry-After": retry_after} if retry_after else {}
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def respond(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(await request.read())
        status, body = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, content_type="application/json", headers=self.headers)

    @property
    def tokens(self) -> list[str]:
        return [request.headers["Authorization"] for request in self.requests]


@pytest.fixture
def tokens(clock: clocks.ManualClock) -> Tokens:
    return Tokens(clock)


@pytest.fixture
def waits() -> list[float]:
    """Seconds that were waited before an operation was sent once more."""
    return []


@pytest.fixture
def send(
    serve: Any,
    open_session: Callable[..., aiohttp.ClientSession],
    tokens: Tokens,
    waits: list[float],
    clock: clocks.ManualClock,
    metrics: metering.Metrics,
    make_breaker: Any,
    credentials: identity.Credentials,
) -> Any:
    """Send one operation to an upstream."""

    async def send_(
        handler: Any, seconds: float = 30.0, breaker: policies.CircuitBreaker | None = None
    ) -> graphql_responses.Data:
        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            clock.advance(seconds)

        async with serve(handler) as url, open_session() as session:
            sender = Sender(
                session,
                url,
                tokens,
                breaker=breaker or make_breaker(),
                clock=clock,
                rng=random.Random(1),
                metrics=metrics,
                sleep=sleep,
            )
            return await sender.send(OPERATION, credentials, seconds)

    return send_


async def test_operation_is_sent_unchanged(send: Any) -> None:
    upstream = _Upstream(GOOD)
    REQUEST_ID.set("of-the-client")
    data = await send(upstream.respond)
    assert data.supSearchMpn == {"hits": 1}
    (request,) = upstream.requests
    assert upstream.bodies == [OPERATION.payload]
    assert request.headers["Authorization"] == "Bearer t1"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["X-Request-Id"] == "of-the-client"
    assert "Cookie" not in request.headers


@pytest.mark.parametrize(
    "refusal", [EXPIRED, (401, b""), (401, {"errors": [graphql_responses.coded("AuthInvalidToken")]})]
)
async def test_refused_token_is_replaced_and_the_operation_sent_once_more(
    send: Any, tokens: Tokens, metrics: metering.Metrics, refusal: Any
) -> None:
    upstream = _Upstream(refusal, GOOD)
    await send(upstream.respond)
    assert upstream.tokens == ["Bearer t1", "Bearer t2"]
    text = metrics.text().decode()
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="TokenRefused"} 1.0' in text
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="ok"} 1.0' in text
    assert not tokens.refusals
    assert tokens.accepted == ["t2"]


async def test_second_refusal_is_credentials_refused(send: Any, tokens: Tokens) -> None:
    upstream = _Upstream(EXPIRED)
    with pytest.raises(errors.CredentialsRefused, match="takes no token of application demo"):
        await send(upstream.respond)
    assert len(upstream.requests) == 2
    assert tokens.current is None
    assert tokens.refusals == ["the GraphQL service takes no token of application demo: AuthExpiredToken"]


@pytest.mark.parametrize("status", [200, 400, 403, 500])
async def test_missing_scope_is_explained_and_no_other_token_tried(
    send: Any, tokens: Tokens, metrics: metering.Metrics, log_output: io.StringIO, status: int
) -> None:
    refusal = {**graphql_responses.coded("AUTH_NOT_AUTHORIZED"), "path": ["supSearchMpn"]}
    upstream = _Upstream((status, {"errors": [refusal], "data": None}))
    with pytest.raises(errors.CredentialsRefused) as found:
        await send(upstream.respond)
    assert found.value.message == (
        "the GraphQL service refuses supSearchMpn to application demo: its token lacks a scope (AUTH_NOT_AUTHORIZED); "
        "supply data needs the scope supply.domain: check that the application has the Supply domain in the portal, or "
        "use the client id and secret of one that has"
    )
    assert not found.value.may_be_billed
    assert len(upstream.requests) == 1
    assert tokens.refusals == [found.value.message]
    assert tokens.current is None
    assert 'outcome="ScopeRefused"} 1.0' in metrics.text().decode()
    assert '"application": "demo"' in log_output.getvalue()


@pytest.mark.parametrize(
    "data, path", [(graphql_responses.GOOD, ["supSearchMpn"]), (None, ["supSearchMpn", "results", 0])]
)
async def test_refused_field_is_no_missing_scope(send: Any, tokens: Tokens, data: Any, path: Any) -> None:
    refusal = {**graphql_responses.coded("AUTH_NOT_AUTHORIZED"), "path": path}
    upstream = _Upstream((200, {"errors": [refusal], "data": data}))
    if data is None:
        with pytest.raises(errors.QueryRefused):
            await send(upstream.respond)
    else:
        await send(upstream.respond)
    assert not tokens.refusals


async def test_errors_beside_data_are_counted_and_logged(
    send: Any, metrics: metering.Metrics, log_output: io.StringIO
) -> None:
    faults = [graphql_responses.fault("half"), graphql_responses.fault("x")]
    await send(_Upstream((200, {"data": graphql_responses.GOOD, "errors": faults})).respond)
    assert 'v3bridge_upstream_errors_total{operation="supSearchMpn"} 2.0' in metrics.text().decode()
    assert '"errors": ["half", "x"]' in log_output.getvalue()


async def test_every_request_is_timed(send: Any, metrics: metering.Metrics) -> None:
    await send(_Upstream(GOOD).respond)
    assert 'v3bridge_upstream_request_duration_seconds_count{operation="supSearchMpn"} 1.0' in metrics.text().decode()
    assert "v3bridge_upstream_requests_in_flight 0.0" in metrics.text().decode()


@pytest.mark.parametrize("refusal, retry_after", [((503, b""), None), ((503, b""), "3"), ((429, b""), "3")])
async def test_what_was_not_billed_is_sent_once_more(
    send: Any, waits: list[float], metrics: metering.Metrics, refusal: Any, retry_after: str | None
) -> None:
    await send(_Upstream(refusal, GOOD, retry_after=retry_after).respond)
    (wait,) = waits
    assert 0 <= wait - float(retry_after or 0) <= 0.1
    assert 'v3bridge_upstream_retries_total{operation="supSearchMpn"' in metrics.text().decode()


async def test_second_failure_is_raised(send: Any) -> None:
    upstream = _Upstream((503, b""))
    with pytest.raises(errors.UpstreamFault, match="HTTP 503"):
        await send(upstream.respond)
    assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    "response", [(502, b""), (200, b"<html>"), (200, b""), (200, {"errors": [graphql_responses.fault("no")]})]
)
async def test_what_may_be_billed_or_was_refused_is_not_sent_again(
    send: Any, waits: list[float], response: Any
) -> None:
    upstream = _Upstream(response)
    with pytest.raises(errors.ServerError):
        await send(upstream.respond)
    assert len(upstream.requests) == 1
    assert waits == []


async def test_wait_beyond_the_time_limit_is_not_waited_for(send: Any, waits: list[float]) -> None:
    upstream = _Upstream((503, b""), retry_after="30")
    with pytest.raises(errors.UpstreamFault):
        await send(upstream.respond)
    assert waits == []


@pytest.mark.parametrize(
    "response", [(400, {"errors": [graphql_responses.fault("no")]}), (429, b""), (404, b"<html>"), EXPIRED]
)
async def test_refusals_do_not_open_the_circuit_breaker(send: Any, make_breaker: Any, response: Any) -> None:
    breaker = make_breaker(failures=1)
    with pytest.raises(errors.BridgeError):
        await send(_Upstream(response).respond, breaker=breaker)
    assert breaker.refusal() is None


@pytest.mark.parametrize("response", [(502, b""), (200, b"<html>")])
async def test_failures_open_the_circuit_breaker(send: Any, make_breaker: Any, response: Any) -> None:
    breaker = make_breaker(failures=1)
    with pytest.raises(errors.ServerError):
        await send(_Upstream(response).respond, breaker=breaker)
    upstream = _Upstream(GOOD)
    with pytest.raises(errors.CircuitBreakerOpen):
        await send(upstream.respond, breaker=breaker)
    assert upstream.requests == []


async def test_too_little_time_is_no_failure_of_the_service(send: Any, make_breaker: Any) -> None:
    async def silent(_: Any) -> None:
        await asyncio.Event().wait()

    breaker = make_breaker(failures=1)
    with pytest.raises(errors.DeadlineExceeded, match="did not answer in time") as found:
        await asyncio.wait_for(send(silent, 0.05, breaker), 20)
    assert found.value.may_be_billed
    assert breaker.refusal() is None


async def test_nothing_is_sent_when_the_token_came_too_late(send: Any, tokens: Tokens, waits: list[float]) -> None:
    tokens.seconds = 30.0
    upstream = _Upstream(GOOD)
    with pytest.raises(errors.DeadlineExceeded, match="no time") as found:
        await send(upstream.respond)
    assert not found.value.may_be_billed
    assert upstream.requests == []
    assert waits == []


async def test_second_token_has_the_rest_of_the_time(send: Any, tokens: Tokens) -> None:
    tokens.seconds = 15.0
    upstream = _Upstream(EXPIRED, GOOD)
    with pytest.raises(errors.DeadlineExceeded):
        await send(upstream.respond)
    assert upstream.tokens == ["Bearer t1"]


async def test_response_with_too_many_bytes_is_oversized(send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_post, "LONGEST", 65_536)
    with pytest.raises(errors.OversizedOperation, match="more than 65536 bytes") as found:
        await send(_Upstream((200, b" " * 70_000)).respond)
    assert found.value.may_be_billed
