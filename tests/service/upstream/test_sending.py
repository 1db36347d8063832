"""Sender of GraphQL operations, with access tokens, to a service on loopback."""

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
from service.upstream.graphql_responses import OPERATION, coded, fault
from service.upstream.identity_service import CREDENTIALS
from support.served import serve

from proxy import errors
from proxy import metrics as metering
from proxy.kit import clock as clocks
from proxy.log import REQUEST_ID
from proxy.upstream import sending
from proxy.upstream.sending import Sender
from proxy.upstream.tokens import Tokens

GOOD = (200, {"data": graphql_responses.GOOD})
EXPIRED = (200, {"errors": [coded("AuthExpiredToken")]})


class Upstream:
    """A GraphQL service that sends scripted responses, the last one for ever."""

    def __init__(self, *script: tuple[int, object], retry_after: str | None = None) -> None:
        self.script = list(script)
        self.headers = {"Retry-After": retry_after} if retry_after else {}
        self.requests: list[web.Request] = []

    async def respond(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        await request.read()
        status, body = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, content_type="application/json", headers=self.headers)

    @property
    def tokens(self) -> set[str]:
        return {request.headers["Authorization"] for request in self.requests}


@pytest.fixture
def waits() -> list[float]:
    """Seconds that were waited before an operation was sent once more."""
    return []


@pytest.fixture
def send(
    open_session: Callable[..., aiohttp.ClientSession],
    service: Any,
    worker: Tokens,
    waits: list[float],
    clock: clocks.ManualClock,
    metrics: metering.Metrics,
    make_breaker: Any,
) -> Any:
    async def send_(
        handler: Any, seconds: float = 30.0, breaker: sending.CircuitBreaker | None = None
    ) -> graphql_responses.Data:
        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            clock.advance(seconds)

        service.grant(times=2)
        shared: dict[str, Any] = {"clock": clock, "rng": random.Random(1), "metrics": metrics, "sleep": sleep}
        async with serve(handler) as url, open_session() as session:
            sender = Sender(session, url, worker, breaker=breaker or make_breaker(), **shared)
            data: graphql_responses.Data = await sender.send(OPERATION, CREDENTIALS, seconds)
            return data

    return send_


async def test_operation_is_sent_unchanged_and_timed(send: Any, metrics: metering.Metrics) -> None:
    upstream = Upstream(GOOD)
    REQUEST_ID.set("of-the-client")
    data = await send(upstream.respond)
    assert data.supSearchMpn == {"hits": 1}
    (request,) = upstream.requests
    assert await request.read() == OPERATION.payload
    assert request.headers["Authorization"].startswith("Bearer ey")
    assert request.headers["Content-Type"] == request.headers["Accept"] == "application/json"
    assert request.headers["X-Request-Id"] == "of-the-client"
    text = metrics.text().decode()
    assert 'v3bridge_upstream_request_duration_seconds_count{operation="supSearchMpn"} 1.0' in text


@pytest.mark.parametrize("refusal", [EXPIRED, (401, b""), (401, {"errors": [coded("AuthInvalidToken")]})])
async def test_refused_token_is_replaced_and_the_operation_sent_once_more(
    send: Any, worker: Tokens, metrics: metering.Metrics, refusal: Any
) -> None:
    upstream = Upstream(refusal, GOOD)
    worker.known["demo"].refusal = errors.CredentialsRefused("no token was taken")
    await send(upstream.respond)
    assert len(upstream.tokens) == 2
    text = metrics.text().decode()
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="CredentialsRefused"} 1.0' in text
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="ok"} 1.0' in text
    assert worker.known["demo"].refusal is None


@pytest.mark.parametrize(
    "code, requests, message",
    [
        ("AuthInvalidToken", 2, "takes no token of application demo: AuthInvalidToken; is upstream.token_url that of"),
        ("AUTH_NOT_AUTHORIZED", 1, "refuses supSearchMpn to application demo: .* needs the scope supply.domain"),
    ],
)
async def test_token_that_a_new_one_does_not_mend_is_explained(
    send: Any, worker: Tokens, code: str, requests: int, message: str
) -> None:
    upstream = Upstream((200, {"errors": [coded(code)]}))
    with pytest.raises(errors.CredentialsRefused, match=f"the GraphQL service {message}") as found:
        await send(upstream.respond)
    assert len(upstream.tokens) == len(upstream.requests) == requests
    assert worker.known["demo"].refusal is found.value


async def test_errors_beside_data_are_counted_and_logged(
    send: Any, metrics: metering.Metrics, log_output: io.StringIO
) -> None:
    await send(Upstream((200, {"data": graphql_responses.GOOD, "errors": [fault("half"), fault("x")]})).respond)
    assert 'v3bridge_upstream_errors_total{operation="supSearchMpn"} 2.0' in metrics.text().decode()
    assert '"errors":["half","x"]' in log_output.getvalue()


@pytest.mark.parametrize("refusal, retry_after", [((503, b""), None), ((503, b""), "3"), ((429, b""), "3")])
async def test_what_was_not_billed_is_sent_once_more(
    send: Any, waits: list[float], metrics: metering.Metrics, refusal: Any, retry_after: str | None
) -> None:
    await send(Upstream(refusal, GOOD, retry_after=retry_after).respond)
    (wait,) = waits
    assert 0 <= wait - float(retry_after or 0) <= 0.1
    assert 'v3bridge_upstream_retries_total{operation="supSearchMpn"' in metrics.text().decode()


@pytest.mark.parametrize(
    "response, retry_after, requests",
    [
        ((503, b""), None, 2),  # no third time
        ((503, b""), "30", 1),  # beyond the time limit
        ((502, b""), None, 1),
        ((200, b"<html>"), None, 1),
        ((200, b""), None, 1),
        ((200, {"errors": [fault("no")]}), None, 1),
    ],
)
async def test_what_may_be_billed_was_refused_or_fails_again_is_raised(
    send: Any, response: Any, retry_after: str | None, requests: int
) -> None:
    upstream = Upstream(response, retry_after=retry_after)
    with pytest.raises(errors.ServerError):
        await send(upstream.respond)
    assert len(upstream.requests) == requests


@pytest.mark.parametrize(
    "response, is_open",
    [
        ((400, {"errors": [fault("no")]}), False),
        ((429, b""), False),
        ((404, b"<html>"), False),
        (EXPIRED, False),
        ((502, b""), True),
        ((200, b"<html>"), True),
    ],
)
async def test_failures_open_the_circuit_breaker_and_refusals_do_not(
    send: Any, make_breaker: Any, response: Any, is_open: bool
) -> None:
    breaker = make_breaker(failures=1)
    with pytest.raises(errors.BridgeError):
        await send(Upstream(response).respond, breaker=breaker)
    assert (breaker.refusal() is not None) is is_open
    if is_open:
        upstream = Upstream(GOOD)
        with pytest.raises(errors.CircuitBreakerOpen):
            await send(upstream.respond, breaker=breaker)
        assert upstream.requests == []


async def test_late_response_is_a_failure_of_the_service(send: Any, make_breaker: Any) -> None:
    async def silent(_: Any) -> None:
        await asyncio.Event().wait()

    breaker = make_breaker(failures=1)
    with pytest.raises(errors.UpstreamUnreachable, match="did not answer in time") as found:
        await asyncio.wait_for(send(silent, 0.05, breaker), 20)
    assert found.value.may_be_billed
    assert breaker.refusal() is not None


@pytest.mark.parametrize("seconds, script, requests", [(30.0, [GOOD], 0), (15.0, [EXPIRED, GOOD], 1)])
async def test_nothing_is_sent_when_tokens_took_all_the_time(
    send: Any, service: Any, waits: list[float], seconds: float, script: Any, requests: int
) -> None:
    service.grant(times=2, seconds=seconds)
    upstream = Upstream(*script)
    with pytest.raises(errors.DeadlineExceeded, match="no time") as found:
        await send(upstream.respond)
    assert not found.value.may_be_billed
    assert len(upstream.requests) == requests
    assert waits == []
