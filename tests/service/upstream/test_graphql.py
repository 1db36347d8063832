"""GraphQL client against a server on loopback."""

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
from proxy.kit import clock as clocks
from proxy.telemetry import metrics as metering
from proxy.upstream import graphql, http_post, policies
from proxy.upstream.auth import identity, token_cache


class Store(token_cache.TokenCache):
    """Tokens without an identity service: t1, t2, …"""

    def __init__(self, clock: Any) -> None:
        super().__init__(None, clock=clock, rng=random.Random(1))  # type: ignore[arg-type]
        self.handed = 0
        self.current: str | None = None
        self.refusals: list[str] = []
        self.good: list[str] = []
        self.allowed: list[float | None] = []

    async def get(self, credentials: Any, seconds: float | None = None) -> str:
        self.allowed.append(seconds)
        if self.current is None:
            self.handed += 1
            self.current = f"t{self.handed}"
        return self.current

    async def invalidate(self, credentials: Any, token: Any) -> None:
        if token == self.current:
            self.current = None

    def mark_accepted(self, credentials: Any, token: Any) -> None:
        self.good.append(token)

    async def mark_refused(self, credentials: Any, token: Any, error: Any) -> None:
        self.refusals.append(error.message)


class _Upstream:
    """A GraphQL service that sends scripted responses, the last one for ever."""

    def __init__(self, *script: tuple[int, object]) -> None:
        self.script = list(script)
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def respond(self, request: web.Request) -> web.Response:
        self.seen.append(request)
        self.bodies.append(await request.read())
        status, body = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, content_type="application/json")


GOOD = (200, {"data": graphql_responses.GOOD})
EXPIRED = (200, {"errors": [graphql_responses.coded("AuthExpiredToken")]})
OPERATION = graphql_responses.Operation(payload=b'{"query":"x"}')


@pytest.fixture
def store(clock: clocks.ManualClock) -> Any:
    return Store(clock)


@pytest.fixture
def execute(
    serve: Any,
    open_session: Callable[..., aiohttp.ClientSession],
    store: Any,
    clock: clocks.ManualClock,
    metrics: metering.Metrics,
    make_breaker: Any,
    credentials: identity.Credentials,
) -> Any:
    """Execute one operation on an upstream."""

    async def execute_(
        handler: Any, retries: int = 0, breaker: policies.CircuitBreaker | None = None, since: float | None = None
    ) -> graphql_responses.Data:
        async def sleep(seconds: float) -> None:
            clock.advance(seconds)

        retry = policies.RetryPolicy(retries, 30.0, policies.RetryBudget(), random.Random(1))
        async with serve(handler) as url, open_session() as session:
            client = graphql.GraphQLClient(
                session,
                url,
                store,
                retry=retry,
                breaker=breaker or make_breaker(),
                metrics=metrics,
                clock=clock,
                sleep=sleep,
            )
            return await client.execute(OPERATION, credentials, since)

    return execute_


async def test_operation_is_sent_unchanged(execute: Any) -> None:
    upstream = _Upstream(GOOD)
    data = await execute(upstream.respond)
    assert data.supSearchMpn == {"hits": 1}
    (request,) = upstream.seen
    assert upstream.bodies == [OPERATION.payload]
    assert request.headers["Authorization"] == "Bearer t1"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept"] == "application/json"
    assert "Cookie" not in request.headers


@pytest.mark.parametrize(
    "refusal", [EXPIRED, (401, b""), (401, {"errors": [graphql_responses.coded("AuthInvalidToken")]})]
)
async def test_refused_token_is_replaced_and_the_request_retried_once(
    execute: Any, store: Any, metrics: metering.Metrics, refusal: Any
) -> None:
    upstream = _Upstream(refusal, GOOD)
    await execute(upstream.respond)
    assert [request.headers["Authorization"] for request in upstream.seen] == ["Bearer t1", "Bearer t2"]
    text = metrics.text().decode()
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="TokenRefused"} 1.0' in text
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="ok"} 1.0' in text
    assert not store.refusals
    assert store.good == ["t2"]


async def test_new_token_does_not_extend_the_time_limit(
    execute: Any, store: Any, clock: clocks.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [graphql_responses.reply(401), graphql_responses.reply(200, {"data": graphql_responses.GOOD})]
    allowed = []

    async def slowly(_: Any, request: Any, sending: Any) -> Any:
        clock.advance(12)
        allowed.append(request.seconds)
        return replies.pop(0)

    monkeypatch.setattr(http_post, "post", slowly)
    await execute(_Upstream(GOOD).respond)
    assert allowed == store.allowed == [30, 18]


async def test_second_refusal_is_credentials_refused(execute: Any, store: Any) -> None:
    upstream = _Upstream(EXPIRED)
    with pytest.raises(errors.CredentialsRefused, match="takes no token of application demo"):
        await execute(upstream.respond)
    assert len(upstream.seen) == 2
    assert store.current is None
    assert store.refusals == ["the GraphQL service takes no token of application demo: AuthExpiredToken"]


@pytest.mark.parametrize("status", [200, 400, 403, 500])
async def test_missing_scope_is_explained_and_not_retried(
    execute: Any, store: Any, metrics: metering.Metrics, log_output: io.StringIO, status: int
) -> None:
    refusal = {**graphql_responses.coded("AUTH_NOT_AUTHORIZED"), "path": ["supSearchMpn"]}
    upstream = _Upstream((status, {"errors": [refusal], "data": None}))
    with pytest.raises(errors.CredentialsRefused) as found:
        await execute(upstream.respond, retries=5)
    assert found.value.message == (
        "the GraphQL service refuses supSearchMpn to application demo: its token lacks a scope (AUTH_NOT_AUTHORIZED); "
        "supply data needs the scope supply.domain: check that upstream.scope has it and that the application has the "
        "Supply domain in the portal, or use the client id and secret of one that has"
    )
    assert not found.value.may_be_billed
    assert len(upstream.seen) == 1
    assert store.refusals == [found.value.message]
    assert store.current is None
    assert 'outcome="ScopeRefused"} 1.0' in metrics.text().decode()
    assert '"application": "demo"' in log_output.getvalue()


@pytest.mark.parametrize(
    "data, path", [(graphql_responses.GOOD, ["supSearchMpn"]), (None, ["supSearchMpn", "results", 0])]
)
async def test_refused_field_is_no_missing_scope(execute: Any, store: Any, data: Any, path: Any) -> None:
    refusal = {**graphql_responses.coded("AUTH_NOT_AUTHORIZED"), "path": path}
    upstream = _Upstream((200, {"errors": [refusal], "data": data}))
    if data is None:
        with pytest.raises(errors.QueryRefused):
            await execute(upstream.respond)
    else:
        await execute(upstream.respond)
    assert not store.refusals


async def test_errors_in_a_response_with_data_are_counted_and_logged(
    execute: Any, metrics: metering.Metrics, log_output: io.StringIO
) -> None:
    faults = [graphql_responses.fault("half"), graphql_responses.fault("x")]
    await execute(_Upstream((200, {"data": graphql_responses.GOOD, "errors": faults})).respond)
    assert 'v3bridge_upstream_errors_total{operation="supSearchMpn"} 2.0' in metrics.text().decode()
    assert '"errors": ["half", "x"]' in log_output.getvalue()


async def test_every_request_is_timed(execute: Any, metrics: metering.Metrics) -> None:
    await execute(_Upstream(GOOD).respond)
    assert 'v3bridge_upstream_request_duration_seconds_count{operation="supSearchMpn"} 1.0' in metrics.text().decode()


async def test_last_error_is_raised_after_all_retries(execute: Any) -> None:
    upstream = _Upstream((503, b""))
    with pytest.raises(errors.UpstreamFault, match="HTTP 503"):
        await execute(upstream.respond, retries=2)
    assert len(upstream.seen) == 3


@pytest.mark.parametrize(
    "response", [(400, {"errors": [graphql_responses.fault("no")]}), (429, b""), (404, b"<html>"), EXPIRED]
)
async def test_refusals_do_not_open_the_circuit_breaker(execute: Any, make_breaker: Any, response: Any) -> None:
    breaker = make_breaker(failures=1)
    with pytest.raises(errors.BridgeError):
        await execute(_Upstream(response).respond, breaker=breaker)
    assert breaker.refusal() is None


async def test_follow_up_request_has_the_remaining_time(execute: Any, clock: clocks.ManualClock) -> None:
    async def silent(_: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(errors.UpstreamUnreachable, match="did not answer in time"):
        await asyncio.wait_for(execute(silent, since=clock.monotonic() - 29.95), 20)


@pytest.mark.parametrize("kind, counts", [(errors.DeadlineExceeded, False), (errors.UpstreamUnreachable, True)])
async def test_timeout_counts_as_failure_only_after_a_fair_time(
    execute: Any, make_breaker: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, counts: bool
) -> None:
    async def late(*_: Any) -> None:
        raise kind("the service did not answer in time", may_be_billed=True)

    monkeypatch.setattr(http_post, "post", late)
    breaker = make_breaker(failures=1)
    with pytest.raises(kind):
        await execute(_Upstream(GOOD).respond, retries=2, breaker=breaker)
    assert (breaker.refusal() is not None) is counts


async def test_request_without_remaining_time_is_not_sent_and_no_failure(
    execute: Any, clock: clocks.ManualClock, metrics: metering.Metrics
) -> None:
    upstream = _Upstream(GOOD)
    with pytest.raises(errors.UpstreamUnreachable, match="no time") as caught:
        await execute(upstream.respond, retries=2, since=clock.monotonic() - 30)
    assert not caught.value.may_be_billed
    assert upstream.seen == []
    assert "v3bridge_upstream_retries_total{" not in metrics.text().decode()
