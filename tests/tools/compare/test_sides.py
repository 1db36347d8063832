"""Tests of one side over a socket: responses, failures, concurrency, and destinations of API keys."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from support import cases
from support.comparison_server import request_from_target as request
from support.served import serve

from proxy.tools.compare import sides
from proxy.tools.compare.sides import base_url
from proxy.traffic.recordings import SideResponse

KEY = "c4n4ry-of-the-old-side"


@pytest.fixture
def side_of() -> Any:
    """A side that sends without waiting: `slept` has the pauses."""

    @asynccontextmanager
    async def made(handler: Any, slept: Any = None, rate: float = 0.0) -> Any:
        async def sleep(seconds: Any) -> None:
            if slept is not None:
                slept.append(seconds)

        async with serve(handler) as url, sides.open_session() as session:
            yield sides.HttpSide(f"{url}/v3", {"erp": KEY}.get, session, rate, sleep)

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
        response = await side.fetch(request('/v3/parts/match?queries=[{"mpn":"a+b c%26d"}]', client="erp"))
    assert (response.status, response.body) == (404, b'{"message": "x"}')
    assert response.parts == 7
    assert response.failure is None
    (received,) = handler.seen
    assert received.path == "/v3/parts/match"
    assert received.query["queries"] == '[{"mpn":"a b c&d"}]'
    assert received.query["apikey"] == KEY
    assert received.headers["User-Agent"].startswith("v3bridge-compare/")


HTML = b"<!DOCTYPE html><html>Please sign in"


@pytest.mark.parametrize(
    "response, failure, parts",
    [
        (of(200, HTML, "text/html"), "sent HTML instead of JSON (HTTP 200)", None),
        (of(504, HTML), "sent HTML instead of JSON (HTTP 504)", None),
        (of(502, b"bad gateway", "text/plain"), "failed (HTTP 502)", None),
        (of(503, b'{"message": "two\\nlines"}'), "failed (HTTP 503): two lines", None),
        (of(403, b'{"message": "no key"}'), "refuses the key of erp (HTTP 403): no key", None),
        (of(302, Location="https://elsewhere.example/login"), "redirects to another address (HTTP 302)", 0),
        (of(200, b"x" * 2000), "sent a response of more than 1000 bytes", None),
    ],
)
async def test_invalid_response_is_a_failure(
    side_of: Any, response: Any, failure: str, parts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "BYTES_MAX", 1000)
    async with side_of(answering(response)) as side:
        found = await side.fetch(request("/v3/brands/search", client="erp"))
    assert (sides.failure(found, "erp"), found.parts) == (failure, parts)


def test_long_reason_is_truncated_between_words() -> None:
    body = json.dumps({"message": f"{'word ' * 37}key-that-stands-at-the-end-of-what-is-shown"}).encode()
    assert str(sides.failure(SideResponse(429, body), "erp")).endswith("word word …")


@pytest.mark.parametrize(
    "responses, status, waits",
    [
        ([of(429, Retry_After="3"), of(429), of(429, Retry_After="5"), of()], 200, [3, 3, 5]),
        ([of(429)], 429, [2, 2, 2]),
        ([of(429, b'{"message": "nothing is left"}', Retry_After="86400")], 429, []),  # of a month
        ([of(429, b'{"message": "used up"}', Retry_After="1", X_Parts_Cost="3"), of()], 429, []),  # billed
        ([of(503, b"{}")], 503, []),  # may be billed
    ],
)
async def test_what_costs_nothing_is_sent_again_after_its_delay(
    side_of: Any, responses: list[Any], status: int, waits: list[int]
) -> None:
    slept: list[float] = []
    handler = answering(*responses)
    async with side_of(handler, slept) as side:
        response = await side.fetch(request("/v3/brands/search"))
    assert (response.status, len(handler.seen)) == (status, 1 + len(waits))
    assert [round(each) for each in slept] == waits
    assert "apikey" not in handler.seen[0].query  # the client has none


async def test_timeout_is_a_failure(side_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "SECONDS", 0.2)
    released = asyncio.Event()

    async def handler(request: Any) -> Any:
        await released.wait()
        return web.Response()

    async with side_of(handler) as side:
        response = await side.fetch(request("/v3/brands/search"))
        released.set()
    assert response.failure == "gives no complete response within 60 s"


@pytest.mark.parametrize(
    "sent, failure",
    [
        (b"", "closed the connection without a response"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "sent bytes that are not HTTP"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"results": [', "sent a truncated response"),
    ],
)
async def test_invalid_http_is_a_failure(side_of: Any, sent: bytes, failure: str) -> None:
    async def handler(request: Any) -> Any:
        request.transport.write(sent)
        request.transport.close()
        return web.Response()

    async with side_of(handler) as side:
        assert (await side.fetch(request("/v3/brands/search"))).failure == failure


async def test_refused_connection_is_a_free_failure() -> None:
    async with serve(answering(of())) as gone:
        pass
    async with sides.open_session() as session:
        response = await sides.HttpSide(f"{gone}/v3", lambda _: KEY, session).fetch(request("/v3/brands/search"))
    assert (response.failure, response.parts) == ("cannot be reached: Connection refused", 0)


async def test_concurrency_is_limited(side_of: Any) -> None:
    under_way, most, all_in = 0, 0, asyncio.Event()

    async def handler(request: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == sides.AT_ONCE:
            all_in.set()
        await all_in.wait()
        await asyncio.sleep(0)
        under_way -= 1
        return web.json_response({})

    async with side_of(handler) as side:
        responses = await asyncio.gather(*(side.fetch(request("/v3/brands/search")) for n in range(12)))
    assert most == sides.AT_ONCE
    assert {response.status for response in responses} == {200}


@cases.parametrize("text,why")
def test_invalid_address_error_has_no_secrets(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.split(",", maxsplit=1)[0].replace("(", r"\(")) as raised:
        base_url(text)
    assert "secret" not in str(raised.value)


async def test_requests_are_evenly_spaced(side_of: Any) -> None:
    slept: list[float] = []
    async with side_of(answering(of()), slept, rate=4) as side:
        await asyncio.gather(*(side.fetch(request("/v3/brands/search")) for _ in range(4)))
    assert [round(seconds, 1) for seconds in slept] == pytest.approx([0.25, 0.5, 0.75], abs=0.1)
