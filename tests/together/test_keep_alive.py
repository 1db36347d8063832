"""Tests of several requests on one connection: each response is complete and independent of the others."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, lowercase_names, target

KEPT = {"cache": {"seconds": 300, "stale_seconds": 3600}}
ASKED = target({"mpn": "SN74S74N"})
OF_EACH = {"connection", "date", "x-request-id"}  # what no two replies share


async def together(environment: ProxyEnvironment, *requests: str) -> list[RawResponse]:
    """The replies to requests that are sent at once, in their order. Ends where the proxy closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", environment.port)
    try:
        writer.write("".join(requests).encode())
        return [await one(reader) for _ in requests]
    finally:
        writer.close()


async def one(reader: asyncio.StreamReader) -> RawResponse:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head[:-4].split("\r\n")
    headers = lowercase_names(line.split(": ", 1) for line in lines)
    return RawResponse(int(first.split()[1]), headers, await reader.readexactly(int(headers["content-length"])))


def get(asked: str, *headers: str) -> str:
    return "".join(f"{line}\r\n" for line in (f"GET {asked} HTTP/1.1", "Host: a", *headers, ""))


def shared(reply: RawResponse) -> dict[str, str]:
    return {name: value for name, value in reply.headers.items() if name not in OF_EACH}


def results(body: bytes) -> Any:
    return json.loads(body)["results"]


@pytest.mark.parametrize(
    "asked, status",
    [
        (ASKED, 200),
        (ASKED + "&callback=app.show", 200),
        (ASKED.replace("match", "matches"), 404),
        (target({"mpn": "SN74S74N"}, key="another"), 403),
        ("/v3/parts/match?apikey=another&suppress_status_codes=true", 200),
        ("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas&limit=2", 200),
    ],
)
async def test_response_head_is_the_same_with_and_without_keep_alive(
    start: StartEnvironment, asked: str, status: int
) -> None:
    async with start(**KEPT) as environment:
        await environment.get(asked)
        staying = (await together(environment, get(asked), get("/healthz")))[0]
        ending = (await together(environment, get(asked, "Connection: close")))[0]
    assert staying.status == ending.status == status
    assert shared(staying) == shared(ending) | {"content-length": staying.headers["content-length"]}
    assert (staying.headers.get("connection"), ending.headers["connection"]) == (None, "close")
    assert staying.headers["x-request-id"] != ending.headers["x-request-id"]
    assert staying.headers["date"].endswith(" GMT")


async def test_pipelined_requests_get_responses_in_order(start: StartEnvironment) -> None:
    numbers = ["SN74S74N", "BC547", "SN74S74N", "LM317", "SN74S74N", "SN74S74N"]
    async with start(**KEPT) as environment:
        replies = await together(
            environment, *(get(target({"mpn": number, "reference": number})) for number in numbers)
        )
    assert [results(reply.body)[0]["reference"] for reply in replies] == numbers
    assert [reply.headers["x-cache"] for reply in replies] == ["miss", "miss", "hit", "miss", "hit", "hit"]


async def test_cached_response_keeps_its_format(start: StartEnvironment) -> None:
    async with start(**KEPT) as environment:
        zipped = get(ASKED, "Accept-Encoding: gzip")
        replies = await together(environment, *[get(ASKED), zipped] * 4)
    plain, packed = replies[::2], replies[1::2]
    assert not any("content-encoding" in reply.headers for reply in plain)
    assert {reply.headers["content-encoding"] for reply in packed} == {"gzip"}
    assert {reply.headers["vary"] for reply in packed} == {"Accept-Encoding"}
    assert all(results(gzip.decompress(reply.body)) == results(plain[0].body) for reply in packed)
    assert len({reply.body for reply in plain[1:]}) == len({reply.body for reply in packed}) == 1
    assert [reply.headers["x-cache"] for reply in replies] == ["miss", *["hit"] * 7]


async def test_http_1_0_keep_alive_is_confirmed(start: StartEnvironment) -> None:
    request = get(ASKED, "Connection: keep-alive").replace("HTTP/1.1", "HTTP/1.0")
    async with start(**KEPT) as environment:
        replies = await together(environment, *[request] * 3)
    assert [reply.headers["connection"] for reply in replies] == ["keep-alive"] * 3
    assert len({json.dumps(results(reply.body)) for reply in replies}) == 1
