"""Tests of spans: one per request and one per upstream operation, sent to a collector on a loopback socket."""

import subprocess
import sys
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from together import span_collector
from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import errors
from proxy.telemetry import tracing
from proxy.web import middleware, server

ONE = {"mpn": "SN74S74N"}
ASKED = target(ONE, ONE)  # one operation
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def spans(
    start: StartEnvironment, *asked: str, headers: dict[str, str] | None = None, **changes: Any
) -> list[Any]:
    """Return the collected spans after some requests and the shutdown of the service."""
    async with span_collector.running() as sink:
        async with start(tracing={"otlp_url": sink.url, **changes.pop("tracing", {})}, **changes) as environment:
            for each in asked:
                await environment.proxy.get(each, headers=headers)
        return sink.spans


async def test_request_and_upstream_requests_are_one_trace(start: StartEnvironment) -> None:
    found = await spans(start, ASKED)
    request, call = sorted(found, key=lambda span: not span.server)
    assert (request.name, request.parent, request.failed) == ("/v3/parts/match", "", False)
    assert request.attributes["v3bridge.request"]
    assert request.attributes["http.route"] == "/v3/parts/match"
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["v3bridge.application"] == "demo"
    assert (call.trace, call.parent, call.server, call.failed) == (request.trace, request.id, False, False)
    assert call.attributes == {"v3bridge.operation": "supMultiMatch", "v3bridge.outcome": "ok"}


async def test_span_has_cost_and_cache_status_of_the_response() -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(headers={"X-Parts-Cost": "3", "X-Cache": "hit", "X-Request-Id": "an-id"})

    async with span_collector.running() as sink:
        spans_of = tracing.open_tracing(sink.url, 1.0)
        app = web.Application(middlewares=[middleware.traced(spans_of)])
        app.router.add_get("/{path}", reply)
        async with (
            server.running(app, "127.0.0.1", 0) as url,
            aiohttp.ClientSession() as session,
            session.get(f"{url}/secret?apikey=secret") as response,
        ):
            assert response.status == 200
        await spans_of.close()
    (span,) = sink.spans
    assert (span.name, span.attributes["v3bridge.parts"], span.attributes["v3bridge.cache"]) == ("/{path}", 3, "hit")
    assert not any(b"secret" in payload for payload in sink.payloads)


async def test_span_of_a_failure_has_only_the_kind_of_error(start: StartEnvironment, unreachable_url: str) -> None:
    found = await spans(start, ASKED, urls={"graphql_url": f"{unreachable_url}/graphql"})
    request, call = sorted(found, key=lambda span: not span.server)
    assert (request.attributes["http.response.status_code"], request.failed, call.failed) == (503, True, True)
    assert call.attributes["v3bridge.outcome"] == "UpstreamUnreachable"


async def test_incoming_trace_is_continued(start: StartEnvironment) -> None:
    parent = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    found = await spans(start, ASKED, headers=parent)
    assert {span.trace for span in found} == {TRACE}
    (request,) = [span for span in found if span.server]
    assert (request.parent, request.attributes["v3bridge.request"]) == ("00f067aa0ba902b7", TRACE)


@pytest.mark.parametrize("flag, count", [("00", 0), ("01", 2)])
async def test_sampling_decision_of_the_caller_is_respected(start: StartEnvironment, flag: str, count: int) -> None:
    parent = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-{flag}"}
    share = 1.0 - count / 2  # the opposite of what the caller says
    assert len(await spans(start, ASKED, headers=parent, tracing={"share": share})) == count


async def test_sampling_share_of_zero_sends_nothing(start: StartEnvironment) -> None:
    assert await spans(start, ASKED, "/healthz", tracing={"share": 0.0}) == []


async def test_unreachable_collector_affects_no_response(start: StartEnvironment, unreachable_url: str) -> None:
    async with start(tracing={"otlp_url": f"{unreachable_url}/v1/traces"}) as environment:
        assert (await environment.get(ASKED)).status == 200


def test_disabled_tracing_imports_no_opentelemetry() -> None:
    program = (
        "import sys, proxy.cli.main, proxy.web.app, proxy.workers.supervisor, proxy.workers.worker;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_missing_opentelemetry_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(errors.ConfigError, match=r"tracing\.otlp_url: the package .+ pip install '\.\[otel\]'"):
        tracing.open_tracing("http://127.0.0.1:4318/v1/traces", 1.0)


async def test_disabled_tracing_adopts_the_trace_id_as_request_id(environment: ProxyEnvironment) -> None:
    reply = await environment.proxy.get("/healthz", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    assert reply.headers["X-Request-Id"] == TRACE
