"""HTTP server of the service. No response or log line repeats a request line (contract v3-rest.md §6).

aiohttp's own response to a malformed request repeats the request line, API key included. Here it gets a v3 error that
names the possible mistakes only.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, cast

import structlog
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http import HttpProcessingError

from proxy import errors
from proxy.v3 import encoding, parameters
from proxy.web import operators, responses
from proxy.web.connections import Connection, Connections, Limits
from proxy.web.routing import Handler, Request

log = structlog.get_logger()

MAX_FIELD = 16_384  # bytes of a header field
READ_BUFFER = 16_384  # bytes of a body that wait for its handler, beyond which a connection is not read
RETRY_SECONDS = 1  # Retry-After of a connection beyond the limit
IDLE_SECONDS = 90_000.0  # aiohttp's limit, longer than that of `Limits`
FAILURE_SECONDS = 1.0  # without accepting, after an error of the system
ACCEPT_TURNS = 5  # of the event loop, after which an accepted connection is known
AT_ONCE = 0.001  # seconds; aiohttp takes 0 for no limit
MALFORMED = "UNKNOWN"  # the method that aiohttp gives to bytes that are not a request
ADVICE = (
    "the request is not valid HTTP: percent-encode blanks and non-ASCII characters of a URL; a request line may not be "
    f"longer than {parameters.REQUEST_LINE} bytes, and a header not longer than {MAX_FIELD}"
)


class Listener:
    """The HTTP server at `url`."""

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self.url = ""
        self._handler = handler
        self.connections = Connections(limits)
        self._draining = False
        self._server = web.Server(
            cast(Any, self._handle),
            request_factory=self._request,
            # it would write request lines, and with them API keys
            access_log=None,
            keepalive_timeout=IDLE_SECONDS,
            max_line_size=parameters.REQUEST_LINE,
            max_field_size=MAX_FIELD,
            read_bufsize=READ_BUFFER,
        )

    async def accept(self, listening: socket.socket) -> None:
        """Accept connections until this is cancelled, one by one: asyncio's own server accepts all that wait, also
        where other processes listen on the same socket."""
        loop, connect = asyncio.get_running_loop(), lambda: Connection(self.connections, self._server())
        with listening:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(listening)
                    await asyncio.shield(loop.connect_accepted_socket(connect, accepted))
                except OSError as error:  # such as no file descriptors left
                    log.warning("connection not accepted", exc_info=error)
                    await asyncio.sleep(FAILURE_SECONDS)

    async def stop(self) -> None:
        """Finish the requests under way, and those that arrive in the first `drain_seconds` on open connections; close
        all connections after `stop_seconds`. A cancellation stops the waiting.

        Idle connections stay open at first: a request may be on its way on one, and closing it would lose it.
        """
        limits, now = self.connections.limits, asyncio.get_running_loop().time()
        self._draining = True
        try:
            for _ in range(ACCEPT_TURNS):
                await asyncio.sleep(0)
            await self.connections.wait_closed(now + min(limits.drain_seconds, limits.stop_seconds))
            for connection in list(self.connections.open):
                if connection.is_idle():
                    connection.abort()
            await self.connections.wait_closed(now + limits.stop_seconds)
        finally:
            await self._server.shutdown(AT_ONCE)

    async def _handle(self, request: Request) -> web.StreamResponse:
        if request.transport is None:  # the client has left
            return web.Response()
        connection = cast(Connection, request.transport.get_protocol())
        connection.begin_request()
        error: errors.BridgeError | None = None
        # Such a request can hide another one from a proxy in front (request smuggling, RFC 9112 §6.1).
        if request.version < HttpVersion11 and hdrs.TRANSFER_ENCODING in request.headers:
            error = errors.BadRequest("HTTP/1.0 has no Transfer-Encoding")
        elif connection.over_limit and request.path not in operators.PATHS:
            error = errors.TooManyConnections("too many connections are open", retry_after=RETRY_SECONDS)
        try:
            response = await self._handler(request) if error is None else responses.error_response(error, request)
        finally:
            connection.end_request()
        # The rest of a body that nobody has read is no next request.
        if self._draining or error is not None or not request.content.is_eof():
            response.force_close()
        return response

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Request:
        """Make a request, as aiohttp does. Bytes that are not a request get their response here, before aiohttp's."""
        request = Request(message, payload, protocol, writer, task, asyncio.get_running_loop())
        transport = request.transport
        if message.method == MALFORMED and transport is not None:
            log.warning("malformed request refused", client=request.remote)  # also the beginning of TLS
            protocol.transport = None  # aiohttp's response has nowhere to go
            protocol.close()
            transport.write(_MALFORMED_RESPONSE)
            with suppress(OSError):  # the client may have left a moment ago
                transport.write_eof()  # not closed yet: a client that is still sending would not see the response
        return request


@asynccontextmanager
async def listening(handler: Handler, sockets: Sequence[socket.socket], limits: Limits) -> AsyncIterator[Listener]:
    """Serve on listening sockets while the block runs; yields the listener."""
    logging.getLogger("aiohttp.server").addFilter(_says_more)
    listener = Listener(handler, limits)
    async with AsyncExitStack() as stack:
        for each in sockets:
            stack.enter_context(each)
        stack.push_async_callback(listener.stop)
        stack.callback(asyncio.create_task(listener.connections.watch(), name="limits of connections").cancel)
        for each in sockets:
            each.setblocking(False)
            stack.callback(asyncio.create_task(listener.accept(each), name="accepting connections").cancel)
        host, port = sockets[0].getsockname()[:2]
        listener.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        yield listener


def _says_more(record: logging.LogRecord) -> bool:
    """Return whether a log line of aiohttp says more than the response to a malformed request, or body."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | web.RequestPayloadError))


_ADVICE = encoding.error_body(errors.BadRequest(ADVICE), encoding.ResponseFormat())
_MALFORMED_RESPONSE = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
    % (len(_ADVICE), _ADVICE)
)
