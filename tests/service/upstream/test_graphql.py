"""GraphQL client against a server on loopback."""

import asyncio
import io
import json
import random
from collections.abc import Callable
from typing import Any

import aiohttp
import prometheus_client
import pytest
from aiohttp import web
from service.upstream import answers

from proxy import errors
from proxy.kit import clock as clocks
from proxy.telemetry import activity
from proxy.telemetry import metrics as metering
from proxy.upstream import graphql, http_post, policies
from proxy.upstream.auth import identity, token_cache


class Store(token_cache.TokenCache):
    """Tokens without an identity service: t1, t2, …"""

    def __init__(self, clock: Any) -> None:
        counted = metering.Metrics(prometheus_client.CollectorRegistry())
        super().__init__(None, clock=clock, rng=random.Random(1), metrics=counted)  # type: ignore[arg-type]
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
    """A GraphQL service that gives the answers it was told, the last one for ever."""

    def __init__(self, *told: tuple[int, object]) -> None:
        self.told = list(told)
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append(request)
        self.bodies.append(await request.read())
        status, body = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, content_type="application/json")


GOOD = (200, {"data": answers.GOOD})
EXPIRED = (200, {"errors": [answers.coded("AuthExpiredToken")]})
OPERATION = answers.Operation(payload=b'{"query":"x"}')


@pytest.fixture
def store(clock: clocks.ManualClock) -> Any:
    return Store(clock)


@pytest.fixture
def recent(clock: clocks.ManualClock) -> activity.Activity:
    return activity.Activity(clock)


@pytest.fixture
def ask(
    serve: Any,
    open_session: Callable[..., aiohttp.ClientSession],
    store: Any,
    clock: clocks.ManualClock,
    metrics: metering.Metrics,
    make_breaker: Any,
    credentials: identity.Credentials,
    recent: activity.Activity,
) -> Any:
    """Ask one operation of an upstream."""

    async def asking(
        handler: Any, retries: int = 0, breaker: policies.CircuitBreaker | None = None, since: float | None = None
    ) -> answers.Data:
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
                activity=recent,
            )
            return await client.execute(OPERATION, credentials, since)

    return asking


async def test_operation_is_sent_unchanged(ask: Any) -> None:
    upstream = _Upstream(GOOD)
    data = await ask(upstream.answer)
    assert data.supSearchMpn == {"hits": 1}
    (request,) = upstream.seen
    assert upstream.bodies == [OPERATION.payload]
    assert request.headers["Authorization"] == "Bearer t1"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept"] == "application/json"
    assert "Cookie" not in request.headers


@pytest.mark.parametrize("refusal", [EXPIRED, (401, b""), (401, {"errors": [answers.coded("AuthInvalidToken")]})])
async def test_refused_token_is_replaced_and_the_request_retried_once(
    ask: Any, store: Any, metrics: metering.Metrics, refusal: Any
) -> None:
    upstream = _Upstream(refusal, GOOD)
    await ask(upstream.answer)
    assert [request.headers["Authorization"] for request in upstream.seen] == ["Bearer t1", "Bearer t2"]
    text = metrics.text().decode()
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="TokenRefused"} 1.0' in text
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="ok"} 1.0' in text
    assert not store.refusals
    assert store.good == ["t2"]


async def test_every_attempt_is_recorded_with_its_outcome(ask: Any, recent: activity.Activity) -> None:
    upstream = _Upstream(EXPIRED, (503, b""), GOOD)
    await ask(upstream.answer, retries=2)
    attempts = (await recent.recent()).operations
    assert [each.outcome for each in reversed(attempts)] == ["TokenRefused", "UpstreamFault", "ok"]
    assert {(each.name, each.application, each.parts) for each in attempts} == {("supSearchMpn", "demo", None)}


async def test_request_that_an_open_circuit_breaker_stops_is_no_attempt(
    ask: Any, recent: activity.Activity, make_breaker: Any
) -> None:
    breaker = make_breaker(1)
    breaker.failed()
    with pytest.raises(errors.CircuitBreakerOpen):
        await ask(_Upstream(GOOD).answer, breaker=breaker)
    assert (await recent.recent()).operations == []


async def test_new_token_does_not_extend_the_time_limit(
    ask: Any, store: Any, clock: clocks.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [answers.reply(401), answers.reply(200, {"data": answers.GOOD})]
    allowed = []

    async def slowly(_: Any, request: Any, sending: Any) -> Any:
        clock.advance(12)
        allowed.append(request.seconds)
        return replies.pop(0)

    monkeypatch.setattr(http_post, "post", slowly)
    await ask(_Upstream(GOOD).answer)
    assert allowed == store.allowed == [30, 18]


async def test_second_refusal_is_credentials_refused(ask: Any, store: Any) -> None:
    upstream = _Upstream(EXPIRED)
    with pytest.raises(errors.CredentialsRefused, match="takes no token of application demo"):
        await ask(upstream.answer)
    assert len(upstream.seen) == 2
    assert store.current is None
    assert store.refusals == ["the GraphQL service takes no token of application demo: AuthExpiredToken"]


async def test_token_invalid_twice_names_the_settings(ask: Any, store: Any) -> None:
    with pytest.raises(errors.CredentialsRefused) as found:
        await ask(_Upstream((200, {"errors": [answers.coded("AuthInvalidToken")]})).answer)
    assert found.value.message == (
        "the GraphQL service takes no token of application demo: AuthInvalidToken; "
        "is upstream.token_url that of upstream.graphql_url, and does upstream.scope allow it?"
    )
    assert store.refusals == [found.value.message]


@pytest.mark.parametrize("status", [200, 400, 403, 500])
async def test_missing_scope_is_explained_and_not_retried(
    ask: Any, store: Any, metrics: metering.Metrics, log_output: io.StringIO, status: int
) -> None:
    refusal = {**answers.coded("AUTH_NOT_AUTHORIZED"), "path": ["supSearchMpn"]}
    upstream = _Upstream((status, {"errors": [refusal], "data": None}))
    with pytest.raises(errors.CredentialsRefused) as found:
        await ask(upstream.answer, retries=5)
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


@pytest.mark.parametrize("data, path", [(answers.GOOD, ["supSearchMpn"]), (None, ["supSearchMpn", "results", 0])])
async def test_refused_field_is_no_missing_scope(ask: Any, store: Any, data: Any, path: Any) -> None:
    refusal = {**answers.coded("AUTH_NOT_AUTHORIZED"), "path": path}
    upstream = _Upstream((200, {"errors": [refusal], "data": data}))
    if data is None:
        with pytest.raises(errors.QueryRefused):
            await ask(upstream.answer)
    else:
        await ask(upstream.answer)
    assert not store.refusals


@pytest.mark.parametrize(
    "answer, error",
    [
        ((200, {"errors": [answers.fault(answers.PART_LIMIT)]}), errors.QuotaExhausted),
        ((200, {"errors": [answers.fault("no")]}), errors.QueryRefused),
        ((500, b""), errors.UpstreamFault),
        ((502, b"<html>"), errors.UpstreamFault),
        ((200, b"<html>"), errors.UpstreamUnreadable),
        ((200, b'{"data":'), errors.UpstreamUnreadable),
    ],
)
async def test_other_errors_are_not_retried(ask: Any, metrics: metering.Metrics, answer: Any, error: Any) -> None:
    upstream = _Upstream(answer)
    with pytest.raises(error):
        await ask(upstream.answer, retries=5)
    assert len(upstream.seen) == 1
    assert f'outcome="{error.__name__}"}} 1.0' in metrics.text().decode()


async def test_errors_in_a_response_with_data_are_counted_and_logged(
    ask: Any, metrics: metering.Metrics, log_output: io.StringIO
) -> None:
    faults = [answers.fault("half"), answers.fault("x")]
    await ask(_Upstream((200, {"data": answers.GOOD, "errors": faults})).answer)
    assert 'v3bridge_upstream_errors_total{operation="supSearchMpn"} 2.0' in metrics.text().decode()
    assert '"errors": ["half", "x"]' in log_output.getvalue()


async def test_every_request_is_timed(ask: Any, metrics: metering.Metrics) -> None:
    await ask(_Upstream(GOOD).answer)
    assert 'v3bridge_upstream_request_duration_seconds_count{operation="supSearchMpn"} 1.0' in metrics.text().decode()


@pytest.mark.parametrize(
    "answer, reason",
    [
        ((429, b""), "TooManyRequests"),
        ((503, b"<html>"), "UpstreamFault"),
        ((502, {"errors": [answers.fault("down")]}), "UpstreamFault"),
        ((200, {"errors": [answers.fault("Unexpected Execution Error")]}), "UpstreamFault"),
    ],
)
async def test_unbilled_request_is_retried_and_counted(
    ask: Any, metrics: metering.Metrics, answer: Any, reason: str
) -> None:
    upstream = _Upstream(answer, answer, GOOD)
    assert (await ask(upstream.answer, retries=2)).supSearchMpn == {"hits": 1}
    assert len(upstream.seen) == 3
    text = metrics.text().decode()
    assert f'v3bridge_upstream_retries_total{{operation="supSearchMpn",reason="{reason}"}} 2.0' in text


async def test_last_error_is_raised_after_all_retries(ask: Any) -> None:
    upstream = _Upstream((503, b""))
    with pytest.raises(errors.UpstreamFault, match="HTTP 503"):
        await ask(upstream.answer, retries=2)
    assert len(upstream.seen) == 3


async def test_open_circuit_breaker_sends_nothing_and_closes_on_success(
    ask: Any, make_breaker: Any, clock: clocks.ManualClock
) -> None:
    breaker = make_breaker(failures=2)
    upstream = _Upstream((500, b""), (500, b""), GOOD)
    for error in (errors.UpstreamFault, errors.UpstreamFault, errors.CircuitBreakerOpen):
        with pytest.raises(error):
            await ask(upstream.answer, retries=2, breaker=breaker)
    assert len(upstream.seen) == 2
    clock.advance(5)
    await ask(upstream.answer, breaker=breaker)
    assert breaker.refusal() is None


@pytest.mark.parametrize("answer", [(400, {"errors": [answers.fault("no")]}), (429, b""), (404, b"<html>"), EXPIRED])
async def test_refusals_do_not_open_the_circuit_breaker(ask: Any, make_breaker: Any, answer: Any) -> None:
    breaker = make_breaker(failures=1)
    with pytest.raises(errors.BridgeError):
        await ask(_Upstream(answer).answer, breaker=breaker)
    assert breaker.refusal() is None


async def test_follow_up_request_has_the_remaining_time(ask: Any, clock: clocks.ManualClock) -> None:
    async def silent(_: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(errors.UpstreamUnreachable, match="did not answer in time"):
        await asyncio.wait_for(ask(silent, since=clock.monotonic() - 29.95), 20)


@pytest.mark.parametrize("kind, counts", [(errors.DeadlineExceeded, False), (errors.UpstreamUnreachable, True)])
async def test_timeout_counts_as_failure_only_after_a_fair_time(
    ask: Any, make_breaker: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, counts: bool
) -> None:
    async def late(*_: Any) -> None:
        raise kind("the service did not answer in time", may_be_billed=True)

    monkeypatch.setattr(http_post, "post", late)
    breaker = make_breaker(failures=1)
    with pytest.raises(kind):
        await ask(_Upstream(GOOD).answer, retries=2, breaker=breaker)
    assert (breaker.refusal() is not None) is counts


async def test_request_without_remaining_time_is_not_sent_and_no_failure(
    ask: Any, clock: clocks.ManualClock, metrics: metering.Metrics
) -> None:
    upstream = _Upstream(GOOD)
    with pytest.raises(errors.UpstreamUnreachable, match="no time") as caught:
        await ask(upstream.answer, retries=2, since=clock.monotonic() - 30)
    assert not caught.value.may_be_billed
    assert upstream.seen == []
    assert not metrics.retries
