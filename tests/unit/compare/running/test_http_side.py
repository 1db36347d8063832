"""One side over a socket: answers, all sorts of trouble, how many calls at once, and where keys go."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from support.comparison_server import call_from_target as call
from support.comparison_server import serve

from proxy.compare.running import http_side
from proxy.kit import clock

KEY = "c4n4ry-of-the-old-side"


@pytest.fixture
def side_of() -> Any:
    """A side, asked without waiting: `slept` has the pauses."""

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


def answering(*replies: Any) -> Any:
    """A handler that gives these replies, the last one for ever, and notes requests."""
    told, seen = list(replies), []

    async def handler(request: Any) -> Any:
        seen.append(request)
        made = told.pop(0) if len(told) > 1 else told[0]
        return made() if callable(made) else made

    handler.seen = seen
    return handler


def of(status: int = 200, body: bytes = b'{"a": 1}', content_type: str = "application/json", **headers: Any) -> Any:
    return lambda: web.Response(
        status=status,
        body=body,
        content_type=content_type,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


async def test_an_answer_is_as_it_came(side_of: Any) -> None:
    handler = answering(of(404, b'{"message": "x"}', X_Parts_Cost="7"))
    async with side_of(handler) as side:
        reply = await side.ask(call('/v3/parts/match?queries=[{"mpn":"a+b c%26d"}]', client="erp"), "run-1")
    assert (reply.status, reply.body, reply.content_type) == (404, b'{"message": "x"}', "application/json")
    assert reply.parts == 7
    assert reply.trouble is None
    assert reply.seconds > 0
    (request,) = handler.seen
    assert request.path == "/v3/parts/match"
    assert request.query["queries"] == '[{"mpn":"a b c&d"}]'
    assert request.query["apikey"] == KEY
    assert request.headers["X-Request-Id"] == "run-1"
    assert request.headers["User-Agent"].startswith("v3bridge-compare/")


async def test_a_client_whose_key_is_not_known_sends_none(side_of: Any) -> None:
    handler = answering(of())
    async with side_of(handler) as side:
        await side.ask(call("/v3/brands/search?q=x", client="nobody"), "1")
    assert "apikey" not in handler.seen[0].query


HTML = b"<!DOCTYPE html><html>Please sign in"


@pytest.mark.parametrize(
    "reply,trouble,parts",
    [
        (of(200, HTML, "text/html"), "answers with HTML instead of JSON (HTTP 200)", 0),
        (of(200, HTML), "answers with HTML instead of JSON (HTTP 200)", 0),
        (of(504, HTML, "text/html"), "answers with HTML instead of JSON (HTTP 504)", None),
        (of(502, b"bad gateway", "text/plain"), "answers with HTTP 502 and no reason", None),
        (of(503, b"{}"), "is closed for the moment (HTTP 503)", None),
        (of(302, Location="https://elsewhere.example/login"), "redirects to another server", 0),
        (of(302), "redirects to nowhere", 0),
        (of(302, Location="/v3/brands/search"), "redirects in a circle", None),
        (of(200, b"x" * 2000), "sent an answer of more than 1000 bytes", None),
    ],
)
async def test_what_is_no_answer_is_trouble(side_of: Any, reply: Any, trouble: str, parts: int | None) -> None:
    async with side_of(answering(reply), bytes_max=1000) as side:
        found = await side.ask(call("/v3/brands/search", client="erp"), "1")
    assert (found.status, found.body, found.trouble, found.parts) == (0, b"", trouble, parts)


@pytest.mark.parametrize("status", [400, 403, 404, 500, 502])
async def test_an_error_that_v3_could_have_sent_is_an_answer(side_of: Any, status: int) -> None:
    async with side_of(answering(of(status, b'{"__class__": "ClientErrorResponse"}'))) as side:
        assert (await side.ask(call("/v3/brands/search"), "1")).status == status


async def test_redirects_are_followed_within_the_side(side_of: Any) -> None:
    handler = answering(of(301, Location="/v3/brands/abc?apikey=x"), of())
    async with side_of(handler) as side:
        reply = await side.ask(call("/v3/brands/xyz"), "1")
    assert reply.status == 200
    assert handler.seen[1].path == "/v3/brands/abc"


async def test_a_side_that_asks_for_fewer_calls_is_left_alone_and_asked_again(side_of: Any) -> None:
    slept = []
    handler = answering(of(429, Retry_After="3"), of(429), of(503, Retry_After="5"), of())
    async with side_of(handler, slept) as side:
        reply = await side.ask(call("/v3/brands/search"), "1")
    assert reply.status == 200
    assert [round(each) for each in slept if each in (3.0, 2.0, 5.0)] == [3, 2, 5]


async def test_a_side_that_never_has_time_is_trouble(side_of: Any) -> None:
    handler = answering(of(429))
    async with side_of(handler) as side:
        reply = await side.ask(call("/v3/brands/search"), "1")
    assert reply.trouble == "asks for fewer calls (HTTP 429)"
    assert reply.parts == 0
    assert len(handler.seen) == 4


async def test_a_side_whose_parts_are_used_up_until_next_month_is_not_waited_for(side_of: Any) -> None:
    handler = answering(of(429, b'{"message": "nothing is left"}', Retry_After="86400"))
    async with side_of(handler) as side:
        reply = await side.ask(call("/v3/brands/search"), "1")
    assert reply.trouble == "asks for fewer calls (HTTP 429): nothing is left"
    assert len(handler.seen) == 1


async def test_a_refusal_that_has_cost_parts_is_not_repeated(side_of: Any) -> None:
    handler = answering(of(429, b'{"message": "used up"}', Retry_After="1", X_Parts_Cost="3"), of())
    async with side_of(handler) as side:
        reply = await side.ask(call("/v3/brands/search"), "1")
    assert (len(handler.seen), reply.parts) == (1, None)
    assert reply.trouble == "asks for fewer calls (HTTP 429): used up"


async def test_a_503_that_may_have_been_billed_is_not_repeated(side_of: Any) -> None:
    handler = answering(of(503, b"{}"))
    async with side_of(handler) as side:
        await side.ask(call("/v3/brands/search"), "1")
    assert len(handler.seen) == 1


async def test_an_answer_that_takes_too_long_is_trouble(side_of: Any) -> None:
    released = asyncio.Event()

    async def handler(request: Any) -> Any:
        await released.wait()
        return web.Response()

    async with side_of(handler, seconds=0.2) as side:
        reply = await side.ask(call("/v3/brands/search"), "1")
        released.set()
    assert reply.trouble == "gives no whole answer within 0.2 s"


async def test_an_answer_that_is_cut_is_trouble(side_of: Any) -> None:
    async def handler(request: Any) -> Any:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"results": [')
        request.transport.abort()
        return response

    async with side_of(handler) as side:
        reply = await side.ask(call("/v3/brands/search"), "1")
    assert reply.trouble == "sent an answer that is cut"


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


async def asked(base: Any) -> Any:
    limits = http_side.SideLimits()
    async with http_side.open_session(limits) as session:
        side = http_side.HttpSide(base, limits, lambda _: KEY, session, clock=clock.SystemClock())
        return await side.ask(call("/v3/brands/search"), "1")


@pytest.mark.parametrize(
    "answer,trouble",
    [
        (b"", "broke the connection off without an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "sent something that is no HTTP"),
    ],
)
async def test_what_is_no_http_is_trouble(raw_server: Any, answer: bytes, trouble: str) -> None:
    assert (await asked(await raw_server(answer))).trouble == trouble


async def test_nobody_at_home_is_trouble_that_cost_nothing() -> None:
    async with serve(answering(of())) as gone:
        pass
    reply = await asked(f"{gone}/v3")
    assert reply.trouble == "cannot be reached: Connection refused"
    assert reply.parts == 0


async def test_no_more_calls_are_under_way_than_are_allowed(side_of: Any) -> None:
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
        replies = await asyncio.gather(*(side.ask(call("/v3/brands/search"), str(n)) for n in range(12)))
    assert most == 3
    assert {reply.status for reply in replies} == {200}


async def test_no_trouble_names_the_key(side_of: Any, raw_server: Any) -> None:
    replies = [await asked(await raw_server(b"\x00\x01\r\n\r\n"))]
    async with side_of(answering(of(302, Location=f"https://x/?apikey={KEY}"))) as side:
        replies.append(await side.ask(call("/v3/brands/search", client="erp"), "1"))
    assert all(reply.trouble for reply in replies)
    assert KEY not in json.dumps([reply.trouble for reply in replies])
