"""POSTs to one address, over the connections of aiohttp's pool: what its session does, without what nobody asks for.

A session readies every request for cookies, redirects, kinds of payload and tracing, which took a sixth of a v3
request's time. Pool, TLS, time limits and the parser of answers are aiohttp's here too. Used by wire.py, whose tests
hold both ways to the same behaviour. What has a proxy on its way goes through the session.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp import client_proto, http_exceptions
from yarl import URL

from proxy.upstream import bounded
from proxy.upstream.session import Attempt


class Exchanges:
    """Posts to `url`. Raises what a session raises, and follows no redirect."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        """`session` stays its owner's, who closes it."""
        if session.connector is None:
            raise ValueError("the session is closed")
        self.timeout = session.timeout
        self.connector = session.connector
        address = URL(url)
        self._target = aiohttp.ClientRequest("POST", address, loop=asyncio.get_running_loop())
        common = {"Host": self._target.headers["Host"], "Accept-Encoding": "gzip, deflate", **session.headers}
        self._head = f"POST {address.raw_path_qs} HTTP/1.1\r\n" + _lines(common)

    async def post(
        self, body: bytes, headers: Mapping[str, str], total: float | None, attempt: Attempt, most: int
    ) -> tuple[int, bytes, str | None]:
        """Status, whole body, and Retry-After, within `total` seconds. The attempt learns that a head has come.

        Raises bounded.TooLargeError for a body of more than `most` bytes.
        """
        head = f"{self._head}{_lines(headers)}Content-Length: {len(body)}\r\n\r\n"
        connection: aiohttp.connector.Connection | None = None
        try:
            async with asyncio.timeout(total):
                connection = await self._connect()
                message, payload = await _answer(connection, head.encode() + body, self.timeout.sock_read)
                attempt.answered, attempt.content = True, payload
                read = await bounded.read(payload, most, message.headers.get("Content-Length"))
                found = message.code, read, message.headers.get("Retry-After")
        except BaseException:
            if connection is not None:
                connection.close()  # it may hold more of this answer
            raise
        connection.release()
        return found

    async def _connect(self) -> aiohttp.connector.Connection:
        try:
            return await self.connector.connect(self._target, [], self.timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error


async def _answer(
    connection: aiohttp.connector.Connection, request: bytes, silence: float | None
) -> tuple[aiohttp.http.RawResponseMessage, aiohttp.StreamReader]:
    """The head of the answer, and its body to come. `silence` is the longest that the other side may be still."""
    protocol = _protocol(connection)
    protocol.set_response_params(read_until_eof=True, read_timeout=silence)
    protocol.transport.write(request)  # type: ignore[union-attr] # it is not closing
    protocol.start_timeout()
    try:
        message, payload = await protocol.read()
        while message.code < 200 and message.code != 101:  # the real one is yet to come
            message, payload = await protocol.read()
    except http_exceptions.HttpProcessingError as error:
        raise aiohttp.ClientPayloadError("something that is not HTTP") from error
    return message, payload


def _protocol(connection: aiohttp.connector.Connection) -> client_proto.ResponseHandler:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection has been closed")
    return protocol


def _lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises ValueError for a value that would begin another."""
    for value in headers.values():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError("a header holds a line break")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
