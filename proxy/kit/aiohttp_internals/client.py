"""HTTP POST over a session's connection pool, without the session's processing of a request.

An aiohttp session prepares every request for cookies, redirects, payload types and tracing, which took a sixth of a v3
request's time. Connection pool and TLS are aiohttp's here, too; usual responses are parsed by receiver.py. The tests of
`upstream/http_post.py` run against both clients. Requests through an HTTP proxy need the session.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp import http_exceptions
from yarl import URL

from proxy.kit.aiohttp_internals.connector import Attempt, AttemptConnector, StreamProgress
from proxy.kit.aiohttp_internals.receiver import (
    ReceiveLimits,
    ReceivingHandler,
    ResponseReceiver,
    TooLargeError,
    WholeResponse,
)


class PoolClient:
    """POSTs to `url`. Raises the exceptions of a session, and follows no redirect."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        """Use `session`, which the caller closes."""
        if not isinstance(session.connector, AttemptConnector):
            raise TypeError("the session is closed, or has connections of another kind")
        self.timeout = session.timeout
        self.connector = session.connector
        address = URL(url)
        self._target = aiohttp.ClientRequest("POST", address, loop=asyncio.get_running_loop())
        self._key = self._target.connection_key
        common = {"Host": self._target.headers["Host"], "Accept-Encoding": "gzip, deflate", **session.headers}
        self._head = f"POST {address.raw_path_qs} HTTP/1.1\r\n" + _header_lines(common)

    async def post(
        self, body: bytes, headers: Mapping[str, str], total: float | None, attempt: Attempt, max_bytes: int
    ) -> WholeResponse:
        """Return the response, within `total` seconds; `attempt.progress` tells how much of it has come.

        Raises TooLargeError for a body of more than `max_bytes` bytes.
        """
        head = f"{self._head}{_header_lines(headers)}Content-Length: {len(body)}\r\n\r\n"
        connection: aiohttp.connector.Connection | None = None
        loop = asyncio.get_running_loop()
        limits = ReceiveLimits(None if total is None else loop.time() + total, self.timeout.sock_read, max_bytes)
        try:
            connection = await self._connect(limits.end)
            handler = connection.protocol
            assert isinstance(handler, ReceivingHandler)  # noqa: S101 - the connector makes no other
            attempt.progress = receiver = ResponseReceiver(handler, limits, loop)
            response = await receiver.send(head.encode() + body)
            if response is None:
                async with asyncio.timeout_at(limits.end):
                    response = await _read(handler, attempt, max_bytes)
        except BaseException:
            if connection is not None:
                connection.close()  # the rest of this response may still arrive on it
            raise
        connection.release()
        return response

    async def _connect(self, end: float | None) -> aiohttp.connector.Connection:
        if self.connector.has_idle(self._key):  # at once, so that it needs no time limit
            return await self.connector.connect(self._target, [], self.timeout)
        async with asyncio.timeout_at(end):
            try:
                return await self.connector.connect(self._target, [], self.timeout)
            except TimeoutError as error:
                raise aiohttp.ConnectionTimeoutError("no connection in time") from error


async def read_bounded(content: aiohttp.StreamReader, max_bytes: int, content_length: str | None) -> bytes:
    """Read a whole body of at most `max_bytes` bytes, decompressed. Raises TooLargeError.

    Without the bound the upstream would decide how much memory a response takes. aiohttp bounds the decompressed size
    of one piece.
    """
    if content_length is not None and content_length.isdigit() and int(content_length) > max_bytes:
        raise TooLargeError
    pieces = [await content.readany()]
    size = len(pieces[0])
    try:
        while size <= max_bytes and (piece := await content.readany()):
            pieces.append(piece)
            size += len(piece)
            del piece
    except BaseException:
        pieces.clear()  # the traceback references this frame, and with it the pieces, until garbage collection
        raise
    if size > max_bytes:
        pieces.clear()
        raise TooLargeError
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _read(handler: ReceivingHandler, attempt: Attempt, max_bytes: int) -> WholeResponse:
    """Return the response that aiohttp parses."""
    try:
        message, payload = await handler.read()
        while message.code < 200 and message.code != 101:  # an interim response (RFC 9110 §15.2)
            message, payload = await handler.read()
    except http_exceptions.HttpProcessingError as error:
        raise aiohttp.ClientPayloadError("something that is not HTTP") from error
    attempt.progress = StreamProgress(payload)
    content = await read_bounded(payload, max_bytes, message.headers.get("Content-Length"))
    return WholeResponse(message.code, content, message.headers.get("Retry-After"))


def _header_lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises ValueError for a value with a line break: it would inject another header."""
    for value in headers.values():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError("a header holds a line break")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
