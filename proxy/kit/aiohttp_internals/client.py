"""HTTP POST over a session's connection pool, without the session's processing of a request.

An aiohttp session prepares every request for cookies, redirects, payload types and tracing, which took a sixth of a v3
request's time. Connection pool, TLS, time limits and response parser are aiohttp's here, too. The tests of
`upstream/http_post.py` run against both clients. Requests through an HTTP proxy need the session.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp import client_proto, http_exceptions
from yarl import URL

from proxy.kit.aiohttp_internals.connector import Attempt


class TooLargeError(Exception):
    """The response has more bytes than allowed. The connection must be closed: the rest of the body is unread."""


class PoolClient:
    """POSTs to `url`. Raises the exceptions of a session, and follows no redirect."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        """Use `session`, which the caller closes."""
        if session.connector is None:
            raise ValueError("the session is closed")
        self.timeout = session.timeout
        self.connector = session.connector
        address = URL(url)
        self._target = aiohttp.ClientRequest("POST", address, loop=asyncio.get_running_loop())
        common = {"Host": self._target.headers["Host"], "Accept-Encoding": "gzip, deflate", **session.headers}
        self._head = f"POST {address.raw_path_qs} HTTP/1.1\r\n" + _header_lines(common)

    async def post(
        self, body: bytes, headers: Mapping[str, str], total: float | None, attempt: Attempt, max_bytes: int
    ) -> tuple[int, bytes, str | None]:
        """Return status, whole body, and Retry-After, within `total` seconds. Sets `attempt.answered` and `.content`.

        Raises TooLargeError for a body of more than `max_bytes` bytes.
        """
        head = f"{self._head}{_header_lines(headers)}Content-Length: {len(body)}\r\n\r\n"
        connection: aiohttp.connector.Connection | None = None
        try:
            async with asyncio.timeout(total):
                connection = await self._connect()
                message, payload = await _exchange(connection, head.encode() + body, self.timeout.sock_read)
                attempt.answered, attempt.content = True, payload
                content = await read_bounded(payload, max_bytes, message.headers.get("Content-Length"))
                response = message.code, content, message.headers.get("Retry-After")
        except BaseException:
            if connection is not None:
                connection.close()  # the rest of this response may still arrive on it
            raise
        connection.release()
        return response

    async def _connect(self) -> aiohttp.connector.Connection:
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


async def _exchange(
    connection: aiohttp.connector.Connection, request: bytes, read_timeout: float | None
) -> tuple[aiohttp.http.RawResponseMessage, aiohttp.StreamReader]:
    """Send a request; return the response head and the body to be read. `read_timeout`: seconds without a byte."""
    protocol = _open_protocol(connection)
    protocol.set_response_params(read_until_eof=True, read_timeout=read_timeout)
    protocol.transport.write(request)  # type: ignore[union-attr] # _open_protocol has checked it
    protocol.start_timeout()
    try:
        message, payload = await protocol.read()
        while message.code < 200 and message.code != 101:  # an interim response (RFC 9110 §15.2)
            message, payload = await protocol.read()
    except http_exceptions.HttpProcessingError as error:
        raise aiohttp.ClientPayloadError("something that is not HTTP") from error
    return message, payload


def _open_protocol(connection: aiohttp.connector.Connection) -> client_proto.ResponseHandler:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection has been closed")
    return protocol


def _header_lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises ValueError for a value with a line break: it would inject another header."""
    for value in headers.values():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError("a header holds a line break")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
