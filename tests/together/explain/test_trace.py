"""Tests of traces: steps, decisions and costs of one request in a gateway, with a sandbox behind it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, single_application

from nexar_sandbox import faults
from proxy import config
from proxy.explain import trace
from proxy.gateway import assembly
from proxy.gateway.applications import Client
from proxy.kit import clock
from proxy.telemetry import steps
from proxy.traffic.v3_request import V3Request

A, B = {"mpn": "SN74S74N", "limit": 2}, {"mpn": "1N4007"}
CACHED = {"seconds": 300}
OpenGateway = Callable[..., Awaitable[assembly.Gateway]]


@pytest.fixture
async def open_gateway(environment: ProxyEnvironment) -> AsyncIterator[OpenGateway]:
    """Open a gateway on the environment's sandbox, or on other addresses."""
    async with AsyncExitStack() as resources:

        async def opened(
            sandbox: Any = environment.sandbox, url: str | None = None, **changes: Any
        ) -> assembly.Gateway:
            account = sandbox.default_application
            own = {
                "client_id": config.ClientId(account.client_id),
                "client_secret": config.Secret(account.client_secret),
            }
            changes["application"] = own | changes.get("application", {})
            addresses = (url or sandbox.graphql_url, url or sandbox.token_url)
            settings = running_proxy.settings(*addresses, **{"cache": CACHED, **changes})
            return await assembly.build(settings, clock.SystemClock(), resources)

        yield opened


@pytest.fixture
async def gateway(open_gateway: OpenGateway) -> assembly.Gateway:
    return await open_gateway()


async def traced(gateway: assembly.Gateway, path: str, *query: tuple[str, str]) -> trace.Trace:
    return await trace.trace(gateway, V3Request(path, query), client_of(gateway))


def client_of(gateway: assembly.Gateway) -> Callable[[], Client]:
    return lambda: gateway.applications.client(running_proxy.KEY)


async def matched(gateway: assembly.Gateway, *queries: dict[str, Any]) -> trace.Trace:
    return await traced(gateway, "/parts/match", ("queries", json.dumps(queries)))


def outline(steps: Any) -> list[Any]:
    """Names of steps; a step with inner ones is a list of its name and those of the inner ones."""
    return [[step.name, *outline(step.steps)] if step.steps else step.name for step in steps]


def step(trace: trace.Trace, name: str) -> trace.TracedStep:
    return next(each for each in trace.walk() if each.name == name)


def failed(trace: trace.Trace) -> list[str]:
    return [each.name for each in trace.walk() if each.error is not None]


BEGIN = ["authenticate", "admit", "parse", "compile", "look up"]
SENT = ["send", "decode"]


async def test_a_miss_has_the_steps_of_the_pipeline(gateway: assembly.Gateway) -> None:
    first = await matched(gateway, A, B)
    token = ["access token", "token request"]
    execute = ["execute", "reserve", "batch", token, *SENT, "settle"]
    assert outline(first.steps) == [*BEGIN, "plan", execute, "translate", "store", "reply"]
    assert step(first, "authenticate").facts == {"application": "demo", "api_key": "1"}
    assert step(first, "execute").facts == {"operation": "supMultiMatch", "queries": 2}
    assert step(first, "send").facts["status"] == 200
    assert step(first, "access token").facts["source"] == "identity service"
    assert (first.upstream_requests, first.token_requests, first.cache) == (1, 1, "miss")
    assert [query.source for query in first.queries] == ["upstream", "upstream"]
    second = await matched(gateway, {"mpn": "SN74S74D"})
    assert step(second, "access token").facts["source"] == "memory"
    assert second.token_requests == 0


async def test_steps_follow_each_other_within_the_request(gateway: assembly.Gateway) -> None:
    whole = await matched(gateway, A)
    ends = [each.began_ms + (each.duration_ms or 0) for each in whole.steps]
    begins = [each.began_ms for each in whole.steps]
    assert all(end <= begin + 0.01 for end, begin in zip(ends, begins[1:], strict=False))
    assert ends[-1] <= whole.duration_ms + 0.01
    assert None not in [each.duration_ms for each in whole.walk()]


async def test_a_hit_needs_no_upstream(gateway: assembly.Gateway) -> None:
    await matched(gateway, A, B)
    hit = await matched(gateway, B, {"x": 1}, A)
    assert outline(hit.steps) == [*BEGIN, "reply"]
    assert [(query.position, query.query, query.source) for query in hit.queries] == [
        (0, "1N4007", "memory"),
        (2, "SN74S74N", "memory"),
    ]
    assert (hit.parts, hit.cache, hit.upstream_requests) == (0, "hit", 0)


async def test_of_a_request_that_overlaps_another_only_the_rest_is_executed(gateway: assembly.Gateway) -> None:
    await matched(gateway, A, B)
    second = await matched(gateway, A, {"mpn": "SN74S74D"})
    assert [query.source for query in second.queries] == ["memory", "upstream"]
    assert step(second, "execute").facts["queries"] == 1


async def test_results_of_another_gateway_come_from_the_shared_cache(open_gateway: OpenGateway, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/state.sqlite"
    first, second = await open_gateway(store=store), await open_gateway(store=store)
    await matched(first, A, B)
    assert first.cache.shared is not None
    await first.cache.shared.flush()
    shared = await matched(second, A, B)
    assert outline(shared.steps) == [*BEGIN, "look up shared", "reply"]
    assert [query.source for query in shared.queries] == ["shared cache", "shared cache"]


async def test_equal_queries_in_flight_are_coalesced(gateway: assembly.Gateway) -> None:
    first, second = await asyncio.gather(matched(gateway, A, B), matched(gateway, A, B))
    assert [query.source for query in first.queries] == ["upstream", "upstream"]
    assert [query.source for query in second.queries] == ["coalesced", "coalesced"]
    assert outline(second.steps) == [*BEGIN, "wait", "reply"]
    assert (first.upstream_requests, second.upstream_requests) == (1, 0)


async def test_parts_are_reserved_and_settled(environment: ProxyEnvironment, open_gateway: OpenGateway) -> None:
    gateway = await open_gateway(application={"parts": 100})
    whole = await matched(gateway, A, B)
    reserved, settled = step(whole, "reserve").facts, step(whole, "settle").facts
    assert reserved == {"parts": 5, "account": "demo/1", "used": 0, "limit": 100}
    assert settled == {"billed_parts": whole.parts, "account": "demo/1", "used": whole.parts, "limit": 100}
    assert whole.quota is not None
    assert (whole.quota.used, whole.quota.limit) == (whole.parts, 100)
    assert whole.parts == environment.billed_parts > 0


async def test_the_response_is_that_of_the_proxy(environment: ProxyEnvironment, gateway: assembly.Gateway) -> None:
    target = "/parts/match?queries=" + json.dumps([A, B])
    reply = await environment.get(f"/v3{target.replace(' ', '')}&apikey={running_proxy.KEY}")
    response = msgspec.json.decode((await matched(gateway, A, B)).response)
    assert {**response, "msec": 0} == {**reply.json, "msec": 0}


async def test_lists_are_fetched_once(gateway: assembly.Gateway) -> None:
    first = await traced(gateway, "/brands/search", ("q", "texas"))
    fetched = ["list", ["access token", "token request"], *SENT, "build list"]
    assert outline(first.steps) == ["authenticate", "admit", "parse", fetched, "search list", "reply"]
    second = await traced(gateway, "/brands/search", ("q", "texas"))
    assert outline(second.steps) == ["authenticate", "admit", "parse", "list", "search list", "reply"]
    assert step(second, "list").facts["source"] == "memory"
    assert (second.parts, second.cache, second.queries) == (0, None, ())


async def test_a_search_by_an_unlisted_name_fetches_the_list(gateway: assembly.Gateway) -> None:
    searched = await traced(gateway, "/parts/search", ("q", "diode"), ("filter[fields][brand.name][]", "Nobody"))
    assert [each.name for each in searched.steps][3:5] == ["list", "plan search"]
    assert step(searched, "list").facts == {"list": "Brand"}
    assert "execute" not in [each.name for each in searched.walk()]
    assert [query.source for query in searched.queries] == ["plan"]


# Errors: a trace ends where the request failed.


async def test_a_wrong_key_ends_a_trace_first(gateway: assembly.Gateway) -> None:
    refused = await trace.trace(gateway, V3Request("/parts/match"), lambda: gateway.applications.client("wrong"))
    assert (refused.status, failed(refused), refused.quota) == (403, ["authenticate"], None)
    assert outline(refused.steps) == ["authenticate"]


async def test_an_api_key_over_its_rate_limit_is_not_admitted(open_gateway: OpenGateway) -> None:
    gateway = await open_gateway(application={"rate": 1})
    await traced(gateway, "/brands/search")
    limited = await traced(gateway, "/brands/search")
    assert (limited.status, failed(limited)) == (429, ["admit"])
    assert limited.retry_after is not None


async def test_a_mistake_of_the_client_ends_in_parse(gateway: assembly.Gateway) -> None:
    mistaken = await traced(gateway, "/parts/match", ("suppress_status_codes", "true"))
    assert outline(mistaken.steps) == ["authenticate", "admit", "parse"]
    assert (mistaken.status, failed(mistaken), mistaken.upstream_requests) == (200, ["parse"], 0)
    assert mistaken.error is not None
    assert mistaken.error.status == 400
    assert msgspec.json.decode(mistaken.response)["message"] == mistaken.error.message


async def test_an_unknown_uid_ends_in_the_reply(gateway: assembly.Gateway) -> None:
    unknown = await traced(gateway, "/parts/0123456789abcdef")
    assert (unknown.status, failed(unknown), unknown.upstream_requests) == (404, ["reply"], 1)


async def test_an_exhausted_quota_ends_in_reserve(environment: ProxyEnvironment, open_gateway: OpenGateway) -> None:
    gateway = await open_gateway(application={"parts": 1})
    refused = await matched(gateway, A)
    assert (refused.status, failed(refused), refused.upstream_requests, refused.parts) == (429, ["reserve"], 0, 0)
    assert outline(refused.steps)[6:] == [["execute", "reserve"], "translate", "store"]
    assert [query.source for query in refused.queries] == ["failed"]
    assert environment.sent_variables == []


async def test_the_upstreams_part_limit_ends_in_decode(start: StartEnvironment, open_gateway: OpenGateway) -> None:
    async with start(sandbox={"applications": single_application(part_limit=0)}) as limited:
        gateway = await open_gateway(limited.sandbox)
        refused = await matched(gateway, A)
        assert refused.status == 429
        assert failed(refused) == ["decode"]
        assert step(refused, "release").facts["uncertain_parts"] == 0
        again = await matched(gateway, A)
    assert failed(again) == ["reserve"]
    assert (again.upstream_requests, again.status) == (0, 429)


async def test_a_failure_of_the_upstream_ends_in_send_and_leaves_parts_uncertain(
    environment: ProxyEnvironment, gateway: assembly.Gateway
) -> None:
    environment.sandbox.faults.replace((faults.ResetFault(when="after"),))
    lost = await matched(gateway, A)
    assert (lost.status, failed(lost)) == (503, ["send"])
    assert [query.source for query in lost.queries] == ["failed"]
    assert (lost.parts, lost.uncertain_parts, lost.quota and lost.quota.used) == (0, 2, 2)


async def test_an_open_circuit_breaker_ends_in_send_without_a_request(
    environment: ProxyEnvironment, open_gateway: OpenGateway
) -> None:
    gateway = await open_gateway(upstream={"breaker": config.BreakerSettings(failures=1)})
    environment.sandbox.faults.replace((faults.ServerErrorFault(),))
    await matched(gateway, A)
    sent = len(environment.sandbox.documents)
    refused = await matched(gateway, B)
    assert (refused.status, failed(refused)) == (503, ["send"])
    assert "is not asked for the moment" in (step(refused, "send").error or "")
    assert "status" not in step(refused, "send").facts
    assert len(environment.sandbox.documents) == sent


async def test_an_unreachable_identity_service_ends_in_its_request(
    open_gateway: OpenGateway, unreachable_url: str
) -> None:
    gateway = await open_gateway(url=f"{unreachable_url}/graphql")
    refused = await matched(gateway, A)
    assert refused.status == 503
    assert failed(refused) == ["token request"]
    assert (refused.token_requests, refused.upstream_requests) == (1, 0)


async def test_a_retry_is_a_step_of_its_own(environment: ProxyEnvironment, open_gateway: OpenGateway) -> None:
    gateway = await open_gateway(upstream={"retries": 1})
    environment.sandbox.faults.replace((faults.ServerErrorFault(count=1),))
    retried = await matched(gateway, A)
    assert retried.status == 200
    names = [each.name for each in step(retried, "execute").walk()]
    assert names.count("send") == 2
    assert "back off" in names


async def test_a_trace_holds_no_secret(environment: ProxyEnvironment, gateway: assembly.Gateway) -> None:
    environment.sandbox.faults.replace((faults.ResetFault(when="after"),))
    secrets = [running_proxy.KEY, environment.sandbox.default_application.client_secret]
    for query in ({}, {"password": running_proxy.KEY}):
        whole = await traced(gateway, "/parts/match", ("queries", json.dumps([A])), *query.items())
        encoded = msgspec.json.encode(whole).decode()
        assert [each for each in (*secrets, "eyJ", "127.0.0.1") if each in encoded] == []


async def test_nothing_is_recorded_after_a_trace(gateway: assembly.Gateway) -> None:
    await matched(gateway, A)
    assert not steps.is_recorded()


async def test_a_refused_token_is_replaced(environment: ProxyEnvironment, gateway: assembly.Gateway) -> None:
    environment.sandbox.faults.replace((faults.InvalidTokenFault(count=1),))
    replaced = await matched(gateway, A)
    assert (replaced.status, failed(replaced), replaced.token_requests) == (200, [], 2)
    names = [each.name for each in step(replaced, "execute").steps]
    assert names.index("invalidate token") == names.index("send") + 1
