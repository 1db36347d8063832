"""POSTs to one address, over the connections of aiohttp's pool: what its session does, without what nobody asks for.

A session readies every request for cookies, redirects, kinds of payload and tracing, which took a sixth of a v3
request's time. Pool, TLS, time limits and the parser of answers are aiohttp's here too. Tests hold both ways to the
same behaviour. What has a proxy on its way goes through the session.
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import client_proto, http_exceptions
from yarl import URL


class Exchanges:
    """`post` as aiohttp's session has it, for `url` only."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        """`session` stays its owner's, who closes it."""
        if session.connector is None:
            raise ValueError("the session is closed")
        self.timeout = session.timeout
        self._connector = session.connector
        address = URL(url)
        self._target = aiohttp.ClientRequest("POST", address, loop=asyncio.get_running_loop())
        common = {"Host": self._target.headers["Host"], "Accept-Encoding": "gzip, deflate", **session.headers}
        self._head = f"POST {address.raw_path_qs} HTTP/1.1\r\n" + _lines(common)

    def post(
        self,
        url: str,  # noqa: ARG002 - it is known
        *,
        data: bytes,
        headers: Mapping[str, str],
        allow_redirects: bool,  # noqa: ARG002 - none is followed
        timeout: aiohttp.ClientTimeout,
    ) -> "Exchange":
        """One request. Raises what a session raises, but for redirects, of which it follows none."""
        head = f"{self._head}{_lines(headers)}Content-Length: {len(data)}\r\n\r\n"
        return Exchange(self._connector, self._target, head.encode() + data, timeout)


class Exchange:
    """A request under way, and its answer: what there is of ClientResponse is as there."""

    __slots__ = (
        "_connection",
        "_connector",
        "_limit",
        "_limits",
        "_payload",
        "_target",
        "_written",
        "headers",
        "status",
    )

    def __init__(
        self,
        connector: aiohttp.BaseConnector,
        target: aiohttp.ClientRequest,
        written: bytes,
        limits: aiohttp.ClientTimeout,
    ) -> None:
        self._connector = connector
        self._target = target
        self._written = written
        self._limits = limits
        self._limit = asyncio.timeout(limits.total)
        self._connection: aiohttp.connector.Connection | None = None

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        try:
            await self._begin()
        except BaseException as error:
            self._end(broken=True)
            await self._limit.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(broken=error is not None)
        await self._limit.__aexit__(kind, error, trace)

    async def read(self) -> bytes:
        """The whole body."""
        return await self._payload.read()

    async def _begin(self) -> None:
        protocol = await self._connected()
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection has been closed")
        protocol.set_response_params(read_until_eof=True, read_timeout=self._limits.sock_read)
        transport.write(self._written)
        protocol.start_timeout()
        try:
            message, self._payload = await protocol.read()
            while message.code < 200 and message.code != 101:  # the real one is yet to come
                message, self._payload = await protocol.read()
        except http_exceptions.HttpProcessingError as error:
            raise aiohttp.ClientPayloadError("something that is not HTTP") from error
        self.status, self.headers = message.code, message.headers

    async def _connected(self) -> client_proto.ResponseHandler:
        try:
            self._connection = await self._connector.connect(self._target, [], self._limits)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error
        protocol = self._connection.protocol
        if protocol is None:
            raise aiohttp.ClientConnectionResetError("the connection has been closed")
        return protocol

    def _end(self, *, broken: bool) -> None:
        """Give the connection back: to the next request, or to nobody where it may hold more of this answer."""
        if self._connection is not None:
            (self._connection.close if broken else self._connection.release)()
            self._connection = None


def _lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises ValueError for a value that would begin another."""
    for value in headers.values():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError("a header holds a line break")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
