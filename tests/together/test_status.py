"""`/status` on the operators' port: what it holds, and who may read it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from support import running_proxy, scripted_upstream
from together.environment import RawResponse, raw, target

from proxy import config
from proxy.kit import clock
from proxy.web import middleware, server, status
from proxy.web.service import SERVICE

TOKEN = "the-token-of-operators"
BEARER = f"Authorization: Bearer {TOKEN}".encode()
GOOD: dict[str, Any] = {"data": {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}]}}


class Operators:
    """Client of the operators' port, and of v3; `service` is the service behind both."""

    def __init__(self, port: int, v3_port: int, service: web.Application) -> None:
        self.port = port
        self.v3_port = v3_port
        self.service = service

    async def get(self, path: str, *headers: bytes) -> RawResponse:
        return await raw(self.port, f"GET {path} HTTP/1.1".encode(), *headers)

    async def status(self) -> Any:
        response = await self.get("/status")
        assert response.status == 200, response.body
        return response.json

    async def ask(self, key: str = running_proxy.KEY, *headers: bytes) -> int:
        path = target({"mpn": "X"}, key=key)
        return (await raw(self.v3_port, f"GET {path} HTTP/1.1".encode(), *headers)).status


@asynccontextmanager
async def running(
    upstream: scripted_upstream.ScriptedUpstream,
    admin: Mapping[str, Any] | None = None,
    time: clock.Clock | None = None,
    **changes: Any,
) -> AsyncIterator[Operators]:
    settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, **changes)
    settings = msgspec.structs.replace(settings, admin=config.AdminSettings(**(admin or {})))
    async with running_proxy.serving(settings, time) as (service, proxy):
        app = status.create(service[SERVICE], settings.admin.host if settings.admin else "")
        async with server.running(app, "127.0.0.1", 0) as url:
            yield Operators(int(url.rpartition(":")[2]), int(proxy.url.rpartition(":")[2]), service)


@pytest.fixture
async def upstream() -> AsyncIterator[scripted_upstream.ScriptedUpstream]:
    async with scripted_upstream.running() as started:
        started.respond_with(GOOD)
        yield started


async def test_status_has_usage_token_and_readiness(upstream: scripted_upstream.ScriptedUpstream) -> None:
    time = clock.ManualClock()
    async with running(upstream, time=time, application={"parts": 1000}) as operators:
        assert await operators.ask() == 200
        time.advance(60)
        shown = await operators.status()
    assert (shown["ready"], shown["reasons"], shown["store_failure"]) == (True, [], None)
    assert [(row["application"], row["key"], row["limit"]) for row in shown["usage"]] == [
        ("demo", None, 1000),
        ("demo", "1", None),
    ]
    assert shown["tokens"] == [{"application": "demo", "age_seconds": 60.0, "refusal": None}]
    assert shown["breakers"] == {"graphql": "closed", "identity": "closed"}
    assert (shown["uptime_seconds"], shown["failures"], shown["unknown_keys"]) == (60.0, [], [])


async def test_clients_and_unknown_keys_are_those_of_the_store(upstream: scripted_upstream.ScriptedUpstream) -> None:
    async with running(upstream, time=clock.ManualClock()) as operators:
        await operators.ask(running_proxy.KEY, b"User-Agent: erp/1")
        assert await operators.ask("A_KEY_OF_NOBODY", b"User-Agent: bom/2 A_KEY_OF_NOBODY") == 403
        gateway = operators.service[SERVICE].gateway
        seen, counts = gateway.callers.take()
        await gateway.store.add_callers("1", seen, counts, unknown=gateway.callers.take_unknown())
        shown = await operators.status()
    assert [(each["application"], each["key"], each["user_agent"]) for each in shown["clients"]][:1] == [
        ("demo", "1", "erp/1")
    ]
    (unknown,) = shown["unknown_keys"]
    assert unknown["key"] == f"sha256:{config.digest('A_KEY_OF_NOBODY').reveal()}"
    assert (unknown["requests"], unknown["last_seen"]) == (1, "2023-11-14T22:13:20Z")
    assert "A_KEY_OF_NOBODY" not in json.dumps(shown)
    assert shown["failures"] == []  # anybody can send any number of wrong keys


async def test_last_failures_are_kept(upstream: scripted_upstream.ScriptedUpstream) -> None:
    upstream.respond_with(scripted_upstream.ScriptedResponse(b"broken", 500))
    async with running(upstream, time=clock.ManualClock()) as operators:
        ids = [f"X-Request-Id: failing-{number}".encode() for number in range(middleware.FAILURES_MAX + 1)]
        codes = [await operators.ask(running_proxy.KEY, header) for header in ids]
        failures = (await operators.status())["failures"]
    assert len(failures) == middleware.FAILURES_MAX
    assert [failures[0]["request"], failures[-1]["request"]] == [f"failing-{middleware.FAILURES_MAX}", "failing-1"]
    expected = {"application": "demo", "key": "1", "status": codes[-1], "route": "/v3/parts/match", "method": "GET"}
    assert failures[0].items() >= expected.items()
    assert running_proxy.KEY not in json.dumps(failures)


async def test_service_that_is_not_ready_says_why(upstream: scripted_upstream.ScriptedUpstream) -> None:
    upstream.respond_with(scripted_upstream.ScriptedResponse(b"<html>", 404, "text/html"))
    async with running(upstream) as operators:
        shown, ready = await asyncio.gather(operators.status(), operators.get("/readyz"))
    assert not shown["ready"]
    assert [each["check"] for each in shown["reasons"]] == ["graphql"]
    assert ready.status == 503


@pytest.mark.parametrize(
    "admin, headers, code, message",
    [
        ({}, (), 200, ""),
        ({"host": "0.0.0.0"}, (), 401, "set admin.token: 0.0.0.0 is not a loopback address"),
        ({"host": "0.0.0.0"}, (BEARER,), 401, "set admin.token"),
        ({"token": config.Secret(TOKEN)}, (), 401, "Authorization: Bearer"),
        ({"token": config.Secret(TOKEN)}, (BEARER + b"x",), 401, "Authorization: Bearer"),
        ({"token": config.Secret(TOKEN)}, (BEARER,), 200, ""),
        ({"token": config.Secret(TOKEN), "host": "0.0.0.0"}, (BEARER,), 200, ""),
    ],
)
async def test_token_is_needed_unless_the_port_is_on_loopback(
    upstream: scripted_upstream.ScriptedUpstream,
    admin: dict[str, Any],
    headers: tuple[bytes, ...],
    code: int,
    message: str,
) -> None:
    async with running(upstream, admin) as operators:
        response = await operators.get("/status", *headers)
        assert response.status == code
        assert message in response.json.get("message", "")
        assert (await operators.get("/healthz")).status == 200
        assert (await operators.get("/metrics")).status == 200


async def test_name_that_a_web_page_chose_for_loopback_is_refused(
    upstream: scripted_upstream.ScriptedUpstream,
) -> None:
    async with running(upstream) as operators, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{operators.port}/status"
        for host, code in (("attacker.example", 401), ("localhost:8088", 200), ("[::1]", 200)):
            async with session.get(url, headers={"Host": host}) as response:
                assert response.status == code


async def test_operators_port_serves_nothing_else(upstream: scripted_upstream.ScriptedUpstream) -> None:
    async with running(upstream) as operators:
        codes = [(await operators.get(path)).status for path in ("/", "/v3/parts/match", "/keys", "/" * 20_000)]
    assert codes == [404, 404, 404, 404]
