"""Cache hits answered from received bytes: the same response, counts and log line as through the handler, and only for
bytes that are certainly an equal request."""

import asyncio
import gzip
import io
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, lowercase_names, target

import nexar_sandbox
from proxy import config

ASKED = target({"mpn": "SN74S74N"})
CACHED = {"cache": {"seconds": 300, "stale_seconds": 3600}}
OF_EACH = {"date", "x-request-id"}  # header fields that differ in each response
WARM = 3  # requests until equal bytes are answered unparsed: a miss, a hit, and one from the encoded response


class SocketClient:
    """A connection that sends requests as they are given."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def get(self, *fields: str, asked: str = ASKED) -> RawResponse:
        self.send(asked, *fields)
        return await self.response()

    def send(self, asked: str = ASKED, *fields: str) -> None:
        self.writer.write(head(asked, *fields))

    async def response(self) -> RawResponse:
        async with asyncio.timeout(20):
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].decode().split("\r\n")
            headers = lowercase_names(line.split(": ", 1) for line in lines)
            body = await self._reader.readexactly(int(headers["content-length"]))
        return RawResponse(int(first.split()[1]), headers, body)

    async def rest(self) -> bytes:
        async with asyncio.timeout(20):
            return await self._reader.read()


def head(asked: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {asked} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


@asynccontextmanager
async def connected(environment: ProxyEnvironment) -> AsyncIterator[SocketClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", environment.port)
    yield SocketClient(reader, writer)
    writer.close()


def request_lines(log_output: io.StringIO) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    return [line for line in lines if line["event"] == "request completed"]


def without(names: set[str], fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


@pytest.mark.parametrize("fields", [(), ("Accept-Encoding: gzip", "User-Agent: BOM/1")])
async def test_response_log_line_and_counts_are_those_of_the_handler(
    start: StartEnvironment, unparsed: list[bytes], log_output: io.StringIO, fields: tuple[str, ...]
) -> None:
    async with start(**CACHED, application={"parts": 100}) as environment, connected(environment) as client:
        replies = [await client.get(*fields) for _ in range(WARM + 2)]
        metrics = (await environment.get("/metrics")).body.decode()
    usual, early = replies[WARM - 1], replies[WARM:]
    assert len(unparsed) == len(early)
    assert [list(reply.headers) for reply in early] == [list(usual.headers)] * 2
    assert [without(OF_EACH, reply.headers) for reply in early] == [without(OF_EACH, usual.headers)] * 2
    assert [reply.body for reply in early] == [usual.body] * 2
    assert len({reply.headers["x-request-id"] for reply in replies}) == len(replies)
    lines = [line for line in request_lines(log_output) if line["route"] == "/v3/parts/match"]
    assert [line["request"] for line in lines] == [reply.headers["x-request-id"] for reply in replies]
    assert without({"timestamp", "request", "ms"}, lines[-1]) == without({"timestamp", "request", "ms"}, lines[2])
    assert list(lines[-1]) == list(lines[2])
    assert 'v3bridge_queries_total{source="hit"} 4.0' in metrics
    assert 'v3bridge_requests_total{route="/v3/parts/match",status="200"} 5.0' in metrics
    assert 'v3bridge_request_duration_seconds_count{route="/v3/parts/match"} 5.0' in metrics


async def test_connections_share_what_is_known_of_a_request(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED) as environment:
        for _ in range(WARM + 2):
            async with connected(environment) as client:
                assert (await client.get()).status == 200
    assert unparsed == [head(ASKED)] * 2


async def test_plain_and_compressed_responses_are_not_confused(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        for _ in range(WARM + 1):
            plain, packed = await client.get(), await client.get("Accept-Encoding: gzip")
            assert json.loads(plain.body)["results"] == json.loads(gzip.decompress(packed.body))["results"]
    assert len(unparsed) > 1


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    "fields, request_id",
    [
        (("X-Request-Id: mine-{}",), "mine-{}"),
        (("x-request-id:mine-{}", "Accept: */*"), "mine-{}"),
        (("X-Request-Id: first-{}", "X-Request-Id: second-{}"), "first-{}"),
        ((f"traceparent: 00-{TRACE}-b7ad6b716920{{:04}}-01",), TRACE),
        ((f"traceparent: 00-{TRACE}-b7ad6b716920{{:04}}-01", "X-Request-Id: mine-{}"), "mine-{}"),
    ],
)
async def test_hits_with_ids_of_their_own_have_them_in_response_and_log(
    start: StartEnvironment,
    unparsed: list[bytes],
    log_output: io.StringIO,
    fields: tuple[str, ...],
    request_id: str,
) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        replies = [await client.get(*(field.format(n) for field in fields)) for n in range(WARM + 2)]
    expected = [request_id.format(n) for n in range(WARM + 2)]
    assert [reply.headers["x-request-id"] for reply in replies] == expected
    assert [line["request"] for line in request_lines(log_output)] == expected
    assert len(unparsed) == 2


@pytest.mark.parametrize("value", ["EXAMPLE_KEY", "EXAMPLE", "not a word", "ä", ""])
async def test_id_that_is_no_id_or_an_api_key_is_replaced_in_hits(
    start: StartEnvironment, log_output: io.StringIO, value: str
) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        replies = [await client.get(f"X-Request-Id: {value}") for _ in range(WARM + 2)]
    assert {reply.status for reply in replies} == {200}
    assert all(re.fullmatch("[0-9a-f]{16}", reply.headers["x-request-id"]) for reply in replies)
    assert "EXAMPLE" not in log_output.getvalue()


async def test_request_with_an_upgrade_is_parsed(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED) as environment:
        for _ in range(WARM + 1):
            async with connected(environment) as client:
                reply = await client.get("Upgrade: h2c")
    assert reply.status == 200
    assert unparsed == []


async def test_body_that_looks_like_a_cached_request_is_no_request(
    start: StartEnvironment, unparsed: list[bytes]
) -> None:
    """Otherwise a client could make the service send more responses than a proxy in front expects."""
    async with start(**CACHED) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        hidden = head(ASKED)
        client.writer.write(
            b"POST /v3/parts/match HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (2 * len(hidden))
        )
        assert (await client.response()).status == 405
        for _ in range(2):
            client.writer.write(hidden)
            await client.writer.drain()
            await asyncio.sleep(0.05)
        assert unparsed == []
        client.send("/healthz")
        assert (await client.response()).body == b'{"status": "ok"}'
        assert (await client.get()).headers["x-cache"] == "hit"


async def test_second_part_of_a_head_that_looks_like_a_cached_request_is_no_request(
    start: StartEnvironment, unparsed: list[bytes]
) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        client.writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Note: ")
        await client.writer.drain()
        await asyncio.sleep(0.05)
        client.send()
        assert (await client.response()).status != 404
    assert unparsed == []


async def test_pipelined_requests_are_answered_completely_and_in_order(start: StartEnvironment) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        client.writer.write(head("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas") + head(ASKED) * 2)
        client.writer.write(head(ASKED))
        replies = [await client.response() for _ in range(4)]
    assert ["x-cache" in reply.headers for reply in replies] == [False, True, True, True]


async def test_expired_entry_is_not_served(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        environment.time.advance(301)
        assert [(await client.get()).headers["x-cache"] for _ in range(2)] == ["miss", "hit"]
        assert (environment.billed_parts, unparsed) == (6, [])


async def test_rate_limit_counts_every_hit(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED, application={"rate": 4}) as environment, connected(environment) as client:
        assert [(await client.get()).status for _ in range(6)] == [200] * 4 + [429] * 2
    assert unparsed == []


async def test_throttled_address_gets_no_hits_of_others(start: StartEnvironment) -> None:
    proxies = (config.Network("127.0.0.0/8"),)
    chosen = {"failed_auth_per_minute": 2, "trusted_proxies": proxies}
    async with start(**CACHED, listen=chosen) as environment, connected(environment) as client:
        for _ in range(WARM + 1):
            assert (await client.get("X-Forwarded-For: 192.0.2.1")).status == 200
        for wrong in ("wrong-1", "wrong-2"):
            reply = await client.get("X-Forwarded-For: 192.0.2.9", asked=target({"mpn": "1N4007"}, key=wrong))
            assert reply.status == 403
        assert (await client.get("X-Forwarded-For: 192.0.2.9")).status == 429
        assert (await client.get("X-Forwarded-For: 192.0.2.1")).status == 200


async def test_log_line_has_the_forwarded_address(
    start: StartEnvironment, unparsed: list[bytes], log_output: io.StringIO
) -> None:
    chosen = {"trusted_proxies": (config.Network("127.0.0.0/8"),)}
    async with start(**CACHED, listen=chosen) as environment, connected(environment) as client:
        for _ in range(WARM + 1):
            for address in ("192.0.2.1", "192.0.2.2"):
                await client.get(f"X-Forwarded-For: {address}")
    assert len(unparsed) >= 2
    assert [line["address"] for line in request_lines(log_output)] == ["192.0.2.1", "192.0.2.2"] * (WARM + 1)


async def test_connection_beyond_the_limit_gets_503(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED, listen={"connections": 1}) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=500"))
        client.send(target({"mpn": "1N4007"}))  # a busy connection is not replaced
        await asyncio.sleep(0.1)
        async with connected(environment) as beyond:
            assert (await beyond.get()).status == 503
        assert (await client.response()).status == 200
    assert unparsed == []


async def test_unparsed_hits_restart_the_idle_timeout(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED, listen={"idle_seconds": 0.4}) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        for _ in range(6):
            await asyncio.sleep(0.15)
            assert (await client.get()).status == 200
        assert len(unparsed) == 6
        assert await client.rest() == b""  # then the connection is closed as any idle one


async def test_half_closed_client_gets_its_hit(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        client.send()
        client.writer.write_eof()
        assert (await client.response()).headers["x-cache"] == "hit"
        assert await client.rest() == b""
    assert len(unparsed) == 1


async def test_client_that_does_not_read_is_disconnected(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(**CACHED, listen={"write_seconds": 0.3}) as environment, connected(environment) as client:
        for _ in range(WARM):
            await client.get()
        async with asyncio.timeout(20):
            while not client.writer.is_closing():
                client.send()
                await asyncio.sleep(0.001)
    assert unparsed


async def test_ignored_parameters_are_logged_with_every_hit(start: StartEnvironment, log_output: io.StringIO) -> None:
    asked = target({"mpn": "SN74S74N", "flavor": "red"})
    async with start(**CACHED) as environment, connected(environment) as client:
        replies = [await client.get(asked=asked) for _ in range(WARM + 2)]
    assert len({reply.headers["x-v3-unsupported"] for reply in replies}) == 1
    assert log_output.getvalue().count("parameters ignored") == len(replies)


@pytest.mark.parametrize("change", [lambda raw: raw.replace(b"1.1", b"1.0"), lambda raw: raw.replace(b"GET", b"HEAD")])
async def test_other_versions_and_methods_are_parsed(
    start: StartEnvironment, unparsed: list[bytes], change: Callable[[bytes], bytes]
) -> None:
    async with start(**CACHED) as environment:
        for _ in range(WARM + 2):
            async with connected(environment) as client:
                client.writer.write(change(head(ASKED, "Connection: close")))
                assert b" 200 OK\r\n" in await client.rest()
    assert unparsed == []
