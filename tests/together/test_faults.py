"""Faults of upstream and identity service: retries, what is never retried, and the circuit breaker.

The facts of docs/something-is-wrong.md. The upstream is scripted; everything goes over sockets.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from support import running_proxy, scripted_upstream
from support.scripted_upstream import ScriptedResponse
from together.environment import RawResponse, raw, target

from proxy.kit import clock

GOOD: dict[str, Any] = {"data": {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}] * 2}}
TROUBLE = {"errors": [{"message": "Unexpected Execution Error"}], "data": None}
INVALID = {"errors": [{"message": "…", "extensions": {"code": "AuthInvalidToken"}}]}
HTML = b"<html><body>Bad Gateway</body></html>"
CLOSED = ScriptedResponse(HTML, 503, headers={"Retry-After": "0"})


class _Environment(NamedTuple):
    """A proxy and its scripted upstream."""

    proxy: running_proxy.ProxyClient
    upstream: scripted_upstream.ScriptedUpstream
    time: clock.ManualClock

    async def reply(self, number: int = 0) -> RawResponse:
        """The reply to a match of two part numbers; `number` makes it another one."""
        return await self.get(target({"mpn": f"X{number}"}, {"mpn": "Y"}))

    async def get(self, path: str) -> RawResponse:
        return await raw(self.proxy.port_of(path), f"GET {path} HTTP/1.1".encode())

    async def metric(self, line: str) -> float:
        """The value of a line of /metrics; 0 where it is not there."""
        text = (await self.get("/metrics")).body.decode()
        return next((float(each.split()[-1]) for each in text.splitlines() if each.startswith(line)), 0.0)


@asynccontextmanager
async def scripted_environment(*answers: Any, graphql_url: str = "", **upstream: Any) -> AsyncIterator[_Environment]:
    """A proxy with these `upstream` settings whose upstream sends the given responses."""
    time = clock.ManualClock()
    async with scripted_upstream.running() as scripted:
        scripted.respond_with(*answers)
        application = {"features": "all"}  # so that the first operation is like others
        chosen = running_proxy.settings(
            graphql_url or scripted.graphql_url, scripted.token_url, upstream=upstream, application=application
        )
        async with running_proxy.running(chosen, time) as proxy:
            yield _Environment(proxy, scripted, time)


@pytest.mark.parametrize("first", [CLOSED, TROUBLE, ScriptedResponse(TROUBLE, 500), ScriptedResponse(HTML, 429)])
async def test_unbilled_request_is_retried_unnoticed_by_the_client(first: Any) -> None:
    async with scripted_environment(first, GOOD) as environment:
        assert (await environment.reply()).status == 200
        assert len(environment.upstream.requests) == 2
        assert await environment.metric('v3bridge_upstream_retries_total{operation="supMultiMatch"') == 1


async def test_outage_at_most_doubles_the_load() -> None:
    async with scripted_environment(CLOSED) as environment:
        replies = await asyncio.gather(*(environment.reply(number) for number in range(50)))
        assert {reply.status for reply in replies} == {503}
        assert len(environment.upstream.requests) <= 2 * 50


async def test_circuit_breaker_opens_and_closes_again() -> None:
    async with scripted_environment(ScriptedResponse(HTML, 500)) as environment:
        assert [(await environment.reply()).status for _ in range(10)] == [502] * 10
        refused = await environment.reply()
        assert (refused.status, refused.json["__class__"]) == (503, "ServerErrorResponse")
        assert "the GraphQL service is not asked for the moment: it failed 10 times" in refused.json["message"]
        assert 5 <= int(refused.headers["retry-after"]) <= 8
        assert len(environment.upstream.requests) == 10
        assert await environment.metric('v3bridge_circuit_breaker_state{service="graphql"}') == 2
        ready = await environment.get("/readyz")
        assert {"check": "graphql", "reason": refused.json["message"]} in ready.json["reasons"]
        environment.upstream.respond_with(GOOD)
        environment.time.advance(8)
        assert (await environment.reply()).status == 200
        assert await environment.metric('v3bridge_circuit_breaker_state{service="graphql"}') == 0
        assert (await environment.get("/readyz")).status == 200


async def test_readiness_probes_until_a_token_is_accepted() -> None:
    async with scripted_environment(INVALID) as environment:
        failure = await environment.reply()
        red = [{"check": "token demo", "reason": failure.json["message"]}]
        for rounds in (1, 2):
            environment.time.advance(30)
            for ready in [await environment.get("/readyz") for _ in range(3)]:
                assert (ready.status, ready.json["reasons"]) == (503, red)
            assert (environment.upstream.tokens, len(environment.upstream.requests)) == (2 + 2 * rounds, 2 + 2 * rounds)
        assert environment.upstream.requests[-1]["operationName"] == "probe"
        environment.upstream.respond_with(GOOD)
        assert (await environment.get("/readyz")).status == 503
        environment.time.advance(30)
        assert [(await environment.get("/readyz")).status for _ in range(3)] == [200] * 3
        assert len(environment.upstream.requests) == 7


async def test_invalid_token_is_replaced_once_and_shown_by_readiness() -> None:
    async with scripted_environment(INVALID) as environment:
        failure = await environment.reply()
        assert (failure.status, environment.upstream.tokens, len(environment.upstream.requests)) == (502, 2, 2)
        assert "takes no token of application demo: AuthInvalidToken; is upstream.token_url" in failure.json["message"]
        ready = await environment.get("/readyz")
        assert ready.json["reasons"] == [{"check": "token demo", "reason": failure.json["message"]}]
        assert (await environment.reply()).status == 502
        assert (environment.upstream.tokens, len(environment.upstream.requests)) == (2, 2)
        environment.upstream.respond_with(GOOD)
        environment.time.advance(30)
        assert (await environment.reply()).status == 200


async def test_requests_fail_at_once_during_an_identity_outage() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, without a listener
        token_url = f"http://127.0.0.1:{closed.getsockname()[1]}/token"
        chosen = running_proxy.settings("http://127.0.0.1:9/graphql", token_url)
        async with running_proxy.running(chosen, clock.ManualClock()) as proxy:
            port = int(proxy.url.rpartition(":")[2])
            asked = f"GET {target({'mpn': 'X'})} HTTP/1.1".encode()
            first = await raw(port, asked)
            replies, p99s = [], []
            async with asyncio.timeout(60):  # up to 15 seconds each, if they waited for the end of the back-off
                for _ in range(3):  # one of them may be disturbed by other programs
                    seconds = []
                    for _ in range(100):
                        began = time.perf_counter()
                        replies.append(await raw(port, asked))
                        seconds.append(time.perf_counter() - began)
                    p99s.append(sorted(seconds)[98])
    assert {(reply.status, reply.json["message"]) for reply in (first, *replies)} == {
        (503, "the identity service cannot be reached")
    }
    assert all(1 <= int(reply.headers["retry-after"]) <= 15 for reply in replies)
    assert min(p99s) < 0.1
