"""Limits of client connections: slow heads, idle and unread connections, too many of them."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acceptance import running
from aiohttp import web
from support import running_server
from together.environment import ProxyEnvironment, StartEnvironment, target

import nexar_sandbox
from proxy.web.connections import Limits

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
MATCH = b"GET /v3/parts/match?apikey=EXAMPLE_KEY HTTP/1.1"
BIG = b"x" * 8_000_000
SECONDS = 20


async def respond(request: web.BaseRequest) -> web.Response:
    if request.path == "/slow":
        await asyncio.sleep(0.3)
        return web.Response(text="slow")
    return web.Response(body=BIG if request.path == "/big" else b"hello")


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[int]:
    """A server of three paths with some limits; its port."""
    chosen = Limits(**{"header_seconds": 0.3, "idle_seconds": 30, "write_seconds": 0.5, **limits})
    async with running_server.running(respond, chosen) as url:
        yield int(url.rpartition(":")[2])


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(SECONDS):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


async def test_slow_request_head_closes_the_connection() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in HEALTH[:-2]:
            if writer.is_closing() or reader.at_eof():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)
        assert await until_closed(reader) == b""
        await close(writer)


async def test_request_head_in_pieces_is_accepted_within_the_time_limit() -> None:
    async with serving(header_seconds=1.0) as port:  # far more than a pause between two pieces, on a busy machine too
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            for piece in (HEALTH[:9], HEALTH[9:]):
                writer.write(piece)
                await asyncio.sleep(0.1)
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(1.3)  # longer than header_seconds: nothing of a head has come
        writer.write(HEALTH)
        assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        await close(writer)


async def test_client_that_reads_nothing_is_disconnected() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(1.5)
        assert len(await until_closed(reader)) < len(BIG)
        await close(writer)


async def test_client_that_reads_slowly_gets_everything() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
        writer.write(b"GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        received = 0
        while piece := await reader.read(200_000):
            received += len(piece)
            await asyncio.sleep(0.02)
        assert received > len(BIG)
        await close(writer)


async def test_unread_responses_are_bounded_over_all_connections() -> None:
    async with serving(unread_bytes=3 * len(BIG), write_seconds=60.0) as port:
        request = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"
        unread = [await asyncio.open_connection("127.0.0.1", port, limit=1024) for _ in range(8)]
        for _, writer in unread:
            writer.write(request)
        for reader, _ in unread:  # a response that begins later could be a whole one, as soon as others are closed
            with contextlib.suppress(ConnectionError):
                await reader.read(1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(len(BIG)) == BIG
        await close(writer)
        received = [len(await until_closed_or_whole(each)) for each, _ in unread]
        assert 1 <= sum(size >= len(BIG) for size in received) <= 4
        for _, each in unread:
            await close(each)


async def until_closed_or_whole(reader: asyncio.StreamReader) -> bytes:
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(SECONDS):
            while len(received) < len(BIG) and (piece := await reader.read(1_000_000)):
                received += piece
    return bytes(received)


async def test_chunks_in_http_1_0_and_paths_of_slashes_are_refused_at_once(environment: ProxyEnvironment) -> None:
    line = target({"mpn": "SN74S74N"}).encode()
    # With the last chunk, for which the proxy would wait ten seconds before it closes the connection.
    reply = await environment.raw(b"GET " + line + b" HTTP/1.0", b"Transfer-Encoding: chunked\r\n\r\n0")
    assert (reply.status, reply.json["message"]) == (400, "HTTP/1.0 has no Transfer-Encoding")
    for path in (b"/" * 60_000, b"/v3" + b"/" * 60_000, b"/v3/parts/" + b"x/" * 30_000):
        started = time.process_time()
        assert (await environment.raw(b"GET " + path + b" HTTP/1.1")).status == 404
        assert time.process_time() - started < 0.5


async def test_client_that_waits_for_a_100_before_its_body_gets_one(environment: ProxyEnvironment) -> None:
    body = b'{"query": "{ supSellers { name } }"}'
    head = [b"token: EXAMPLE_KEY", b"Content-Length: %d" % len(body), b"Connection: close"]
    first = [b"POST /graphql HTTP/1.1", b"Host: a", b"Expect: 100-Continue"]
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", environment.port)
        writer.write(b"\r\n".join([*first, *head, b"", b""]))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        await close(writer)
        reader, writer = await asyncio.open_connection("127.0.0.1", environment.port)
        writer.write(b"\r\n".join([*first, *head[1:], b"", b""]))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401")
        await close(writer)


async def test_the_longest_idle_connection_makes_room_and_no_busy_one() -> None:
    async with serving(connections=3) as port:
        first, second, busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in (second, first):
            writer.write(HEALTH)
            await reader.readuntil(b"hello")
        busy[1].write(b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        more = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        assert [await until_closed(reader) for reader, _ in (second, first)] == [b"", b""]
        assert (await until_closed(busy[0])).endswith(b"slow")
        more[0][1].write(HEALTH)
        await more[0][0].readuntil(b"hello")
        for _, writer in (first, second, busy, *more):
            await close(writer)


async def test_connection_limit_admits_health_checks(start: StartEnvironment) -> None:
    async with start(listen={"connections": 1}) as environment:
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=1000"))
        busy = asyncio.create_task(environment.raw(b"GET " + target({"mpn": "SN74S74N"}).encode() + b" HTTP/1.1"))
        await asyncio.sleep(0.3)
        match, health = await environment.raw(MATCH), await environment.raw(b"GET /healthz HTTP/1.1")
        assert (health.status, health.json) == (200, {"status": "ok"})
        assert (match.status, match.headers["retry-after"]) == (503, "1")
        assert match.json["message"] == "too many connections are open"
        assert (await busy).status == 200


def test_idle_connections_do_not_exhaust_open_files(
    processes: running.Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The open-file limit leaves few descriptors for client connections."""
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n 500\nexec {running.PROGRAM} "$@"\n')
    limited.chmod(0o755)
    monkeypatch.setattr(running, "PROGRAM", str(limited))
    service = processes.service(
        "upstream: {graphql_url: 'http://127.0.0.1:9/graphql', token_url: 'http://127.0.0.1:9/token'}\n"
        "store: 'memory:'\nlisten: {connections: 1000}\nlog: {format: json}\n"
        "applications: {demo: {client_id: a, client_secret: b, apikeys: [EXAMPLE_KEY]}}"
    )
    with contextlib.ExitStack() as idle:
        for _ in range(300):
            idle.enter_context(socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2]))))
        paths = ("/healthz", "/v3/parts/match?apikey=EXAMPLE_KEY")
        assert [service.get(path).status for path in paths] == [200, 400]
    assert service.stop() == 0
    events = [json.loads(line)["event"] for line in service.log.splitlines()]
    assert {"connection limit lowered", "connection limit reached"} <= set(events)
