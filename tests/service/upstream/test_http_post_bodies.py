"""Tests of response bodies in every form that HTTP allows, received whole and in pieces, over real sockets."""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from types import SimpleNamespace

import aiohttp
import pytest
from service.upstream.test_http_post import OK, Raw, request

from proxy import errors
from proxy.upstream import http_post

OpenSession = Callable[..., aiohttp.ClientSession]

TEXT = b"a body of thirty-two characters." * 3
PACKED = gzip.compress(TEXT)


def response(*fields: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode() + body


def chunks(body: bytes, size: int, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    coded = b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return coded + b"0\r\n" + trailer + b"\r\n"


CHUNKED = "Transfer-Encoding: chunked"
GZIP = "Content-Encoding: gzip"
BODIES = {
    "with a length": (response(f"Content-Length: {len(TEXT)}", body=TEXT), TEXT),
    "empty": (response("Content-Length: 0"), b""),
    "fields in other cases": (response(f"CONTENT-LENGTH:{len(TEXT)} ", body=TEXT), TEXT),
    "in one chunk": (response(CHUNKED, body=chunks(TEXT, 999)), TEXT),
    "in chunks": (response(CHUNKED, body=chunks(TEXT, 7)), TEXT),
    "in chunks with extensions": (response(CHUNKED, body=chunks(TEXT, 30, extension=b";a=b")), TEXT),
    "in chunks with a trailer": (response(CHUNKED, body=chunks(TEXT, 30, trailer=b"X-Sum: 1\r\nX-More: 2\r\n")), TEXT),
    "no chunks": (response(CHUNKED, body=chunks(b"", 1)), b""),
    "compressed": (response(GZIP, f"Content-Length: {len(PACKED)}", body=PACKED), TEXT),
    "compressed in chunks": (response(CHUNKED, GZIP, body=chunks(PACKED, 11)), TEXT),
    "compressed otherwise": (
        response("Content-Encoding: deflate", CHUNKED, body=chunks(zlib.compress(TEXT), 11)),
        TEXT,
    ),
    "with repeated fields": (
        response("Set-Cookie: a=1", f"Content-Length: {len(TEXT)}", "Set-Cookie: b=2", body=TEXT),
        TEXT,
    ),
}


class Pieces(Raw):
    """A server that sends its responses in pieces of some bytes."""

    def __init__(self, size: int, *connections: list[bytes]) -> None:
        super().__init__(*connections)
        self.size = size

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whole = bytearray()

        async def drain() -> None:
            while whole:
                writer.write(whole[: self.size])
                del whole[: self.size]
                await asyncio.sleep(0)

        await super()._serve(reader, SimpleNamespace(write=whole.extend, drain=drain))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 13, 10_000])
@pytest.mark.parametrize("name", BODIES)
async def test_body_is_whole_and_its_connection_reused(open_session: OpenSession, name: str, size: int) -> None:
    answer, body = BODIES[name]
    raw = Pieces(size, [answer, OK, answer])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url))).body == body
        assert (await http_post.post(session, request(url))).body == b"ok"
        assert (await http_post.post(session, request(url))).body == body


async def test_status_and_retry_after_are_passed_on(open_session: OpenSession) -> None:
    raw = Raw([response("Retry-After:  120", "Content-Length: 2", body=b"no", status="503 Later")])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url)))[:3] == (503, b"no", "120")


async def test_connection_that_will_be_closed_is_not_reused(open_session: OpenSession) -> None:
    raw = Raw([response("Connection: close", "Content-Length: 2", body=b"ok"), b""], [OK])
    async with raw.running() as url, open_session() as session:
        for _ in range(2):
            assert (await http_post.post(session, request(url))).body == b"ok"


@pytest.mark.parametrize(
    "answer",
    [
        response("Content-Length: 2", body=b"ok, and more than that"),
        response(CHUNKED, body=chunks(b"ok", 9) + b"more"),
        response(CHUNKED, body=b"five\r\nab"),
        response(CHUNKED, body=b"2\r\nabc\r\n0\r\n\r\n"),
        response(CHUNKED, body=b"-1\r\nab"),
        response(CHUNKED, body=b"1" * 20_000),
        response(CHUNKED, GZIP, body=chunks(b"not compressed", 99)),
    ],
)
async def test_invalid_body_is_unreadable_and_may_be_billed(open_session: OpenSession, answer: bytes) -> None:
    raw = Raw([answer], [OK])
    async with raw.running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreadable, match="the service sent") as found:
            await http_post.post(session, request(url))
        assert found.value.may_be_billed
        assert (await http_post.post(session, request(url))).body == b"ok"


async def test_chunks_beyond_the_bound_are_refused(open_session: OpenSession) -> None:
    raw = Raw([response(CHUNKED, GZIP, body=chunks(gzip.compress(bytes(5_000)), 9))])
    async with raw.running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreadable, match="more than 4999 bytes"):
            await http_post.post(session, request(url)._replace(max_bytes=4_999))
