"""`/readyz` over sockets: a wrong GraphQL address, a token that the upstream does not take and an open circuit breaker
are shown, without client requests and without cost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from support import running_proxy, scripted_upstream
from support.scripted_upstream import ScriptedResponse
from together.environment import RawResponse, StartEnvironment, raw, target

from proxy.kit import clock

PAGE = ScriptedResponse(b"<!doctype html><title>Not Found</title>", 404, "text/html")
GOOD: dict[str, Any] = {"data": {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}] * 2}}
REFUSED = {"errors": [{"message": "The field `supCategories` is not for you."}], "data": None}
INVALID = {"errors": [{"message": "…", "extensions": {"code": "AuthInvalidToken"}}]}
WRONG = "the GraphQL service answered HTTP {} instead of GraphQL; check the address in upstream.graphql_url"
INTERVAL = 10  # seconds between two probes


class ScriptedEnvironment(NamedTuple):
    proxy: running_proxy.ProxyClient
    upstream: scripted_upstream.ScriptedUpstream
    time: clock.ManualClock

    async def get(self, path: str) -> RawResponse:
        return await raw(self.proxy.port_of(path), f"GET {path} HTTP/1.1".encode())

    async def match(self, number: str = "X") -> RawResponse:
        return await self.get(target({"mpn": f"{number}1"}, {"mpn": f"{number}2"}))

    async def reasons(self, check: str = "graphql") -> list[str]:
        """Return the reasons of /readyz of one check; others must pass."""
        ready = await self.get("/readyz")
        found = ready.json.get("reasons", [])
        assert {each["check"] for each in found} <= {check}
        assert ready.status == (503 if found else 200)
        return [each["reason"] for each in found]

    async def breaker(self) -> float:
        text = (await self.get("/metrics")).body.decode()
        return float(text.partition('v3bridge_circuit_breaker_state{service="graphql"} ')[2].split()[0])


@asynccontextmanager
async def scripted_environment(*answers: object) -> AsyncIterator[ScriptedEnvironment]:
    time = clock.ManualClock()
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(*answers)
        # With all features the first operation is like others.
        chosen = running_proxy.settings(upstream.graphql_url, upstream.token_url, application={"features": "all"})
        async with running_proxy.running(chosen, time) as proxy:
            yield ScriptedEnvironment(proxy, upstream, time)


@pytest.mark.parametrize(
    "answer, what",
    [
        (PAGE, "404 with HTML"),
        (ScriptedResponse(b"", 307, headers={"Location": "https://elsewhere/graphql"}), "307 with a redirect"),
    ],
)
async def test_wrong_address_is_named_at_once_and_probed_at_intervals(answer: ScriptedResponse, what: str) -> None:
    async with scripted_environment(answer) as environment:
        for probes in (1, 2, 3):
            found = await asyncio.gather(*(environment.reasons() for _ in range(4)))
            assert [*found, await environment.reasons()] == [[WRONG.format(what)]] * 5
            assert (len(environment.upstream.requests), environment.upstream.tokens) == (probes, 1)
            environment.time.advance(INTERVAL)
        failure = await environment.match()
        assert (failure.status, failure.json["message"]) == (502, WRONG.format(what))
        environment.upstream.respond_with(GOOD)
        assert [await environment.reasons() for _ in range(3)] == [[], [], []]
        assert len(environment.upstream.requests) == 5


async def test_probe_is_one_free_request(start: StartEnvironment) -> None:
    async with start() as environment:
        for _ in range(5):
            ready = await asyncio.gather(*(environment.get("/readyz") for _ in range(3)))
            assert [each.status for each in ready] == [200] * 3
            environment.time.advance(INTERVAL)
        assert len(environment.sandbox.documents) == 1
        assert (environment.billed_parts, environment.sandbox.request_counts.tokens) == (0, 1)


async def test_request_replaces_the_probe_until_the_upstream_returns_html() -> None:
    async with scripted_environment(GOOD) as environment:
        assert (await environment.match()).status == 200
        assert await environment.reasons() == []
        assert [each["operationName"] for each in environment.upstream.requests] == ["supMultiMatch"]
        environment.time.advance(INTERVAL)
        environment.upstream.respond_with(PAGE)
        assert await environment.reasons() == []
        assert (await environment.match("Y")).status == 502
        assert await environment.reasons() == [WRONG.format("404 with HTML")]
        environment.upstream.respond_with(GOOD)
        assert (await environment.match("Y")).status == 200
        assert await environment.reasons() == []


@pytest.mark.parametrize(
    "answer", [REFUSED, ScriptedResponse(b"", 429), ScriptedResponse({"errors": REFUSED["errors"]}, 400)]
)
async def test_upstream_that_refuses_is_reachable(answer: object) -> None:
    async with scripted_environment(answer) as environment:
        assert await environment.reasons() == []


async def test_open_circuit_breaker_is_shown_until_a_request_succeeds() -> None:
    async with scripted_environment(GOOD) as environment:
        await environment.match("Y")
        environment.upstream.respond_with(ScriptedResponse(GOOD, cut_after=9))
        assert [(await environment.match()).status for _ in range(10)] == [502] * 10
        refused = await environment.match()
        assert refused.status == 503
        assert "the GraphQL service is not asked for the moment: it failed 10 times" in refused.json["message"]
        assert 5 <= int(refused.headers["retry-after"]) <= 8
        assert (len(environment.upstream.requests), await environment.breaker()) == (11, 1)
        assert await environment.reasons() == [refused.json["message"]]
        environment.upstream.respond_with(GOOD)
        environment.time.advance(8)
        assert (await environment.match()).status == 200
        assert (await environment.breaker(), await environment.reasons()) == (0, [])


async def test_readiness_probes_until_a_token_is_accepted() -> None:
    async with scripted_environment(INVALID) as environment:
        failure = await environment.match()
        assert "takes no token of application demo: AuthInvalidToken; is upstream.token_url" in failure.json["message"]
        for rounds in (1, 2):
            environment.time.advance(30)
            for _ in range(3):
                assert await environment.reasons("token demo") == [failure.json["message"]]
            assert (environment.upstream.tokens, len(environment.upstream.requests)) == (2 + 2 * rounds, 2 + 2 * rounds)
        assert environment.upstream.requests[-1]["operationName"] == "probe"
        environment.upstream.respond_with(GOOD)
        assert await environment.reasons("token demo") != []
        environment.time.advance(30)
        assert [await environment.reasons() for _ in range(3)] == [[], [], []]
        assert len(environment.upstream.requests) == 7
