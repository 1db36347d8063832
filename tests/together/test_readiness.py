"""Tests of /readyz: a wrong GraphQL address is found without client requests and without cost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support import running_proxy, scripted_upstream
from support.scripted_upstream import ScriptedResponse
from together.environment import RawResponse, StartEnvironment, raw, target

from proxy.kit import clock

PAGE = b"<!doctype html><title>Not Found</title>"
GOOD: dict[str, Any] = {"data": {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}] * 2}}
REFUSED = {"errors": [{"message": "The field `supCategories` is not for you."}], "data": None}
WRONG = "the GraphQL service answered HTTP {} instead of GraphQL; check the address in upstream.graphql_url"
INTERVAL = 10  # seconds between two probes


class _Environment:
    """A proxy before a scripted upstream."""

    def __init__(
        self, proxy: running_proxy.ProxyClient, upstream: scripted_upstream.ScriptedUpstream, time: clock.ManualClock
    ) -> None:
        self.proxy = proxy
        self.upstream = upstream
        self.time = time

    async def get(self, path: str) -> RawResponse:
        return await raw(self.proxy.port_of(path), f"GET {path} HTTP/1.1".encode())

    async def match(self) -> RawResponse:
        return await self.get(target({"mpn": "X"}, {"mpn": "Y"}))

    async def reasons(self) -> list[str]:
        """Return the reasons of /readyz about the GraphQL service; other checks must pass."""
        ready = await self.get("/readyz")
        found = ready.json.get("reasons", [])
        assert {each["check"] for each in found} <= {"graphql"}
        assert ready.status == (503 if found else 200)
        return [each["reason"] for each in found]


@asynccontextmanager
async def scripted_environment(*answers: object) -> AsyncIterator[_Environment]:
    time = clock.ManualClock()
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(*answers)
        chosen = running_proxy.settings(upstream.graphql_url, upstream.token_url, application={"features": "all"})
        async with running_proxy.running(chosen, time) as proxy:
            yield _Environment(proxy, upstream, time)


@pytest.mark.parametrize(
    "answer, what",
    [
        (ScriptedResponse(PAGE, 404, "text/html"), "404 with HTML"),
        (ScriptedResponse(PAGE, 200, "text/html"), "200 with HTML"),
        (ScriptedResponse(PAGE, 403, "text/html"), "403 with HTML"),
        (ScriptedResponse(b"404: Not Found", 404, "text/plain"), "404 with 14 bytes"),
        (ScriptedResponse(b"", 405), "405 with 0 bytes"),
        (ScriptedResponse(b"", 301, headers={"Location": "/graphql/"}), "301 with a redirect"),
        (ScriptedResponse(b"", 307, headers={"Location": "https://elsewhere/graphql"}), "307 with a redirect"),
    ],
)
async def test_readiness_fails_before_the_first_request_with_the_reason_of_responses(
    answer: ScriptedResponse, what: str
) -> None:
    async with scripted_environment(answer) as environment:
        assert await environment.reasons() == [WRONG.format(what)]
        failure = await environment.match()
        assert (failure.status, failure.json["__class__"]) == (502, "ServerErrorResponse")
        assert failure.json["message"] == WRONG.format(what)


async def test_wrong_path_of_the_graphql_url_is_detected(start: StartEnvironment, unreachable_url: str) -> None:
    async with start() as right:
        assert (await right.get("/readyz")).status == 200
        async with start(urls={"graphql_url": f"{right.sandbox.url}/graphq"}) as environment:
            ready = await environment.get("/readyz")
        (reason,) = ready.json["reasons"]
    assert (ready.status, reason["check"]) == (503, "graphql")
    assert reason["reason"].startswith("the GraphQL service answered HTTP 404 with ")


async def test_probe_is_one_free_request(start: StartEnvironment) -> None:
    async with start() as environment:
        for _ in range(5):
            assert (await environment.get("/readyz")).status == 200
            environment.time.advance(INTERVAL)
        assert len(environment.sandbox.documents) == 1
        assert (environment.billed_parts, environment.sandbox.request_counts.tokens) == (0, 1)


async def test_wrong_address_is_probed_at_intervals_with_one_token() -> None:
    async with scripted_environment(ScriptedResponse(PAGE, 404, "text/html")) as environment:
        for probes in (1, 2, 3):
            for _ in range(4):
                assert await environment.reasons() == [WRONG.format("404 with HTML")]
            assert (len(environment.upstream.requests), environment.upstream.tokens) == (probes, 1)
            environment.time.advance(INTERVAL)
        environment.upstream.respond_with(GOOD)
        assert [await environment.reasons() for _ in range(3)] == [[], [], []]
        assert len(environment.upstream.requests) == 4


async def test_successful_request_replaces_the_probe() -> None:
    async with scripted_environment(GOOD) as environment:
        assert (await environment.match()).status == 200
        assert await environment.reasons() == []
        assert [each["operationName"] for each in environment.upstream.requests] == ["supMultiMatch"]


async def test_upstream_that_starts_returning_html_is_probed_again() -> None:
    async with scripted_environment(GOOD) as environment:
        assert await environment.reasons() == []
        environment.time.advance(INTERVAL)
        environment.upstream.respond_with(ScriptedResponse(PAGE, 404, "text/html"))
        assert await environment.reasons() == []
        assert (await environment.match()).status == 502
        assert await environment.reasons() == [WRONG.format("404 with HTML")]
        environment.upstream.respond_with(GOOD)
        assert (await environment.match()).status == 200
        assert await environment.reasons() == []


@pytest.mark.parametrize(
    "answer", [REFUSED, ScriptedResponse(b"", 429), ScriptedResponse({"errors": REFUSED["errors"]}, 400)]
)
async def test_upstream_that_refuses_is_reachable(answer: object) -> None:
    async with scripted_environment(answer) as environment:
        assert await environment.reasons() == []
