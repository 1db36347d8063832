"""Tests of one side over a socket: responses, failures, concurrency, and destinations of API keys."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from support import cases
from support.comparison_server import request_from_target as request
from support.comparison_server import serve

from proxy.kit import clock
from proxy.traffic import http_side
from proxy.traffic.http_side import RequestPacer, base_url

KEY = "c4n4ry-of-the-old-side"


@pytest.fixture
def side_of() -> Any:
    """A side that sends without waiting: `slept` has the pauses."""

    @asynccontextmanager
    async def made(handler: Any, slept: Any = None, **limits: Any) -> Any:
        chosen = http_side.SideLimits(**{"seconds": 30.0, **limits})

        async def sleep(seconds: Any) -> None:
            if slept is not None:
                slept.append(seconds)

        async with serve(handler) as url, http_side.open_session(chosen) as session:
            yield http_side.HttpSide(
                f"{url}/v3", chosen, {"erp": KEY}.get, session, clock=clock.SystemClock(), sleep=sleep
            )

    return made


def answering(*responses: Any) -> Any:
    """A handler that gives these responses, the last one for ever, and notes requests."""
    told, seen = list(responses), []

    async def handler(request: Any) -> Any:
        seen.append(request)
        made = told.pop(0) if len(told) > 1 else told[0]
        return made() if callable(made) else made

    handler.seen = seen  # type: ignore[attr-defined]
    return handler


def of(status: int = 200, body: bytes = b'{"a": 1}', content_type: str = "application/json", **headers: Any) -> Any:
    return lambda: web.Response(
        status=status,
        body=body,
        content_type=content_type,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


async def test_response_is_unchanged(side_of: Any) -> None:
    handler = answering(of(404, b'{"message": "x"}', X_Parts_Cost="7"))
    async with side_of(handler) as side:
        response = await side.fetch(request('/v3/parts/match?queries=[{"mpn":"a+b c%26d"}]', client="erp"), "run-1")
    assert (response.status, response.body, response.content_type) == (404, b'{"message": "x"}', "application/json")
    assert response.parts == 7
    assert response.failure is None
    assert response.seconds > 0
    (received,) = handler.seen
    assert received.path == "/v3/parts/match"
    assert received.query["queries"] == '[{"mpn":"a b c&d"}]'
    assert received.query["apikey"] == KEY
    assert received.headers["X-Request-Id"] == "run-1"
    assert received.headers["User-Agent"].startswith("v3bridge-compare/")


async def test_client_with_unknown_key_sends_none(side_of: Any) -> None:
    handler = answering(of())
    async with side_of(handler) as side:
        await side.fetch(request("/v3/brands/search?q=x", client="nobody"), "1")
    assert "apikey" not in handler.seen[0].query


HTML = b"<!DOCTYPE html><html>Please sign in"


@pytest.mark.parametrize(
    "response,failure,parts",
    [
        (of(200, HTML, "text/html"), "sent HTML instead of JSON (HTTP 200)", 0),
        (of(200, HTML), "sent HTML instead of JSON (HTTP 200)", 0),
        (of(504, HTML, "text/html"), "sent HTML instead of JSON (HTTP 504)", None),
        (of(502, b"bad gateway", "text/plain"), "sent HTTP 502 without a reason", None),
        (of(503, b"{}"), "is unavailable (HTTP 503)", None),
        (of(302, Location="https://elsewhere.example/login"), "redirects to another server", 0),
        (of(302), "redirects to nowhere", 0),
        (of(302, Location="/v3/brands/search"), "redirects in a loop", None),
        (of(200, b"x" * 2000), "sent a response of more than 1000 bytes", None),
    ],
)
async def test_invalid_response_is_a_failure(side_of: Any, response: Any, failure: str, parts: int | None) -> None:
    async with side_of(answering(response), bytes_max=1000) as side:
        found = await side.fetch(request("/v3/brands/search", client="erp"), "1")
    assert (found.status, found.body, found.failure, found.parts) == (0, b"", failure, parts)


@pytest.mark.parametrize("status", [400, 403, 404, 500, 502])
async def test_v3_error_is_a_response(side_of: Any, status: int) -> None:
    async with side_of(answering(of(status, b'{"__class__": "ClientErrorResponse"}'))) as side:
        assert (await side.fetch(request("/v3/brands/search"), "1")).status == status


async def test_redirects_are_followed_on_the_same_host(side_of: Any) -> None:
    handler = answering(of(301, Location="/v3/brands/abc?apikey=x"), of())
    async with side_of(handler) as side:
        response = await side.fetch(request("/v3/brands/xyz"), "1")
    assert response.status == 200
    assert handler.seen[1].path == "/v3/brands/abc"


async def test_rate_limited_request_is_retried_after_the_delay(side_of: Any) -> None:
    slept: list[float] = []
    handler = answering(of(429, Retry_After="3"), of(429), of(503, Retry_After="5"), of())
    async with side_of(handler, slept) as side:
        response = await side.fetch(request("/v3/brands/search"), "1")
    assert response.status == 200
    assert [round(each) for each in slept if each in (3.0, 2.0, 5.0)] == [3, 2, 5]


async def test_persistent_rate_limit_is_a_failure(side_of: Any) -> None:
    handler = answering(of(429))
    async with side_of(handler) as side:
        response = await side.fetch(request("/v3/brands/search"), "1")
    assert response.failure == "limits the request rate (HTTP 429)"
    assert response.parts == 0
    assert len(handler.seen) == 4


async def test_exhausted_monthly_quota_is_not_awaited(side_of: Any) -> None:
    handler = answering(of(429, b'{"message": "nothing is left"}', Retry_After="86400"))
    async with side_of(handler) as side:
        response = await side.fetch(request("/v3/brands/search"), "1")
    assert response.failure == "limits the request rate (HTTP 429): nothing is left"
    assert len(handler.seen) == 1


async def test_billed_refusal_is_not_retried(side_of: Any) -> None:
    handler = answering(of(429, b'{"message": "used up"}', Retry_After="1", X_Parts_Cost="3"), of())
    async with side_of(handler) as side:
        response = await side.fetch(request("/v3/brands/search"), "1")
    assert (len(handler.seen), response.parts) == (1, None)
    assert response.failure == "limits the request rate (HTTP 429): used up"


async def test_possibly_billed_503_is_not_retried(side_of: Any) -> None:
    handler = answering(of(503, b"{}"))
    async with side_of(handler) as side:
        await side.fetch(request("/v3/brands/search"), "1")
    assert len(handler.seen) == 1


async def test_timeout_is_a_failure(side_of: Any) -> None:
    released = asyncio.Event()

    async def handler(request: Any) -> Any:
        await released.wait()
        return web.Response()

    async with side_of(handler, seconds=0.2) as side:
        response = await side.fetch(request("/v3/brands/search"), "1")
        released.set()
    assert response.failure == "gives no complete response within 0.2 s"


async def test_truncated_response_is_a_failure(side_of: Any) -> None:
    async def handler(request: Any) -> Any:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"results": [')
        request.transport.abort()
        return response

    async with side_of(handler) as side:
        response = await side.fetch(request("/v3/brands/search"), "1")
    assert response.failure == "sent a truncated response"


@pytest.fixture
async def raw_server() -> Any:
    """Answers any request with bytes."""
    servers = []

    async def start(answer: bytes) -> str:
        async def talk(reader: Any, writer: Any) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v3"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


async def response_of(base: Any) -> Any:
    limits = http_side.SideLimits()
    async with http_side.open_session(limits) as session:
        side = http_side.HttpSide(base, limits, lambda _: KEY, session, clock=clock.SystemClock())
        return await side.fetch(request("/v3/brands/search"), "1")


@pytest.mark.parametrize(
    "answer,failure",
    [
        (b"", "closed the connection without a response"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "sent bytes that are not HTTP"),
    ],
)
async def test_invalid_http_is_a_failure(raw_server: Any, answer: bytes, failure: str) -> None:
    assert (await response_of(await raw_server(answer))).failure == failure


async def test_refused_connection_is_a_free_failure() -> None:
    async with serve(answering(of())) as gone:
        pass
    response = await response_of(f"{gone}/v3")
    assert response.failure == "cannot be reached: Connection refused"
    assert response.parts == 0


async def test_concurrency_is_limited(side_of: Any) -> None:
    under_way, most, all_in = 0, 0, asyncio.Event()

    async def handler(request: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            all_in.set()
        await all_in.wait()
        await asyncio.sleep(0)
        under_way -= 1
        return web.json_response({})

    async with side_of(handler, at_once=3) as side:
        responses = await asyncio.gather(*(side.fetch(request("/v3/brands/search"), str(n)) for n in range(12)))
    assert most == 3
    assert {response.status for response in responses} == {200}


async def test_failures_hold_no_api_key(side_of: Any, raw_server: Any) -> None:
    responses = [await response_of(await raw_server(b"\x00\x01\r\n\r\n"))]
    async with side_of(answering(of(302, Location=f"https://x/?apikey={KEY}"))) as side:
        responses.append(await side.fetch(request("/v3/brands/search", client="erp"), "1"))
    assert all(response.failure for response in responses)
    assert KEY not in json.dumps([response.failure for response in responses])


@cases.parametrize("text,why")
def test_invalid_address_error_has_no_secrets(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.split(",", maxsplit=1)[0].replace("(", r"\(")) as raised:
        base_url(text)
    assert "secret" not in str(raised.value)


def waiting(time: Any) -> Any:
    async def sleep(seconds: Any) -> None:
        time.advance(seconds)

    return sleep


async def test_requests_are_evenly_spaced() -> None:
    time = clock.ManualClock(0.0)
    pace, began = RequestPacer(4, time, waiting(time)), []
    for _ in range(5):
        await pace.turn()
        began.append(time.monotonic())
    assert began == [0.0, 0.25, 0.5, 0.75, 1.0]


async def test_concurrent_requests_get_distinct_times() -> None:
    time, slept = clock.ManualClock(0.0), []

    async def sleep(seconds: Any) -> None:
        slept.append(seconds)

    pace = RequestPacer(2, time, sleep)
    await asyncio.gather(*(pace.turn() for _ in range(4)))
    assert slept == [0.5, 1.0, 1.5]
