"""HTTP server of the service. No response or log line repeats a request line (contract v3-rest.md §6).

aiohttp's own response to a malformed request repeats the request line, API key included. Here it gets a v3 error that
names the kind of mistake only.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from proxy import config, errors
from proxy.kit import ports
from proxy.kit.aiohttp_internals.server import HandlerRunner, is_line_too_long, is_tls_handshake
from proxy.kit.aiohttp_internals.shared_socket import ConnectionCounts, SharedSocketSite
from proxy.v3 import bounds, encoding
from proxy.v3.parsing.request_parameters import ResponseFormat
from proxy.web import early_refusals
from proxy.web.connections import ConnectionLimiter, ConnectionLimits, LimitedConnection

log = structlog.get_logger()

MAX_FIELD = 16_384  # bytes of a header field
READ_BUFFER = 16_384  # bytes of a body that wait for its handler, beyond which a connection is not read
PLAIN = "this port speaks plain HTTP: send http:// URLs to it, or put a TLS server in front (docs/how-to/deploy.md)"
ACCEPT_TURNS = 5  # of the event loop, after which an accepted connection waits for its request

DEFAULT_LIMITS = ConnectionLimits()


class _V3Connection(LimitedConnection):
    """Connection handler that answers malformed requests with v3 errors."""

    def malformed_request(self, request: web.BaseRequest, status: int, error: BaseException | None) -> web.Response:
        if is_tls_handshake(error):
            log.warning("TLS handshake refused", client=request.remote)
            return _error_response(errors.BadRequest(f"the client began TLS; {PLAIN}"))
        log.warning("malformed request refused", exc_info=error)
        if is_line_too_long(error):
            return _error_response(
                errors.BadRequest(
                    f"the request line is longer than {bounds.REQUEST_LINE} bytes, "
                    f"or a header is longer than {MAX_FIELD}"
                )
            )
        if status < 500:
            return _error_response(
                errors.BadRequest(
                    "the request is not valid HTTP; percent-encode blanks and non-ASCII characters of a URL"
                )
            )
        return _error_response(errors.ServerError("Internal error"))


def _error_response(error: errors.BridgeError) -> web.Response:
    body = encoding.error_body(error, ResponseFormat())
    return web.Response(body=body, status=error.status, content_type="application/json")


class Listener:
    """The HTTP server at `url`. It goes on with its connections where another application replaces the first one."""

    def __init__(
        self, runner: HandlerRunner, limiter: ConnectionLimiter, drain_seconds: float, stop_seconds: float
    ) -> None:
        self.url = ""
        self.runner = runner
        self.limiter = limiter
        self.drain_seconds = drain_seconds
        self.stop_seconds = stop_seconds

    def replace(self, app: web.Application, listen: config.ListenSettings, limits: ConnectionLimits) -> None:
        """Serve with another application, which has been started, and other limits, from the next request on."""
        self.runner.replace(app, partial(early_refusals.dispatcher, app))
        self.limiter.limits = limits
        self.drain_seconds = listen.drain_seconds
        self.stop_seconds = listen.stop_seconds


@asynccontextmanager
async def running(app: web.Application, host: str, port: int, **settings: Any) -> AsyncIterator[str]:
    """Serve while the block runs; yields the base URL. The settings are those of `listening`."""
    async with listening(app, host, port, **settings) as listener:
        yield listener.url


@asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    *,
    sockets: Sequence[socket.socket] = (),
    counts: ConnectionCounts | None = None,
    stop_seconds: float = 10.0,
    drain_seconds: float = 0.0,
    shared: bool = False,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    **settings: Any,
) -> AsyncIterator[Listener]:
    """Serve while the block runs; yields the listener. Port 0 picks a free port. Raises OSError if the port is taken.

    At the end open connections have `drain_seconds` for a request that is on its way, and requests under way
    `stop_seconds` in all to finish. A `shared` port has other listeners (SO_REUSEPORT). `sockets` listen already, and
    are used instead of host and port; `counts` are those of all processes of the service that accept from them.
    """
    limiter = ConnectionLimiter(limits, asyncio.get_running_loop())
    runner = HandlerRunner(
        app,
        partial(_V3Connection, limiter=limiter),
        partial(early_refusals.dispatcher, app),
        # it would write request lines, and with them API keys
        access_log=None,
        max_line_size=bounds.REQUEST_LINE,
        max_field_size=MAX_FIELD,
        read_bufsize=READ_BUFFER,
        # The command line handles signals.
        handle_signals=False,
        **settings,
    )
    listener = Listener(runner, limiter, drain_seconds, stop_seconds)
    await runner.setup()
    try:
        for opened in sockets or ports.listen(host, port, shared=shared):
            await SharedSocketSite(runner, opened, counts, limiter.open_connections).start()
        name = f"[{host}]" if ":" in host else host
        listener.url = f"http://{name}:{runner.addresses[0][1]}"
        yield listener
    finally:
        await _stop(listener)


async def _stop(listener: Listener) -> None:
    """Accept no more connections, and finish those that are open. A cancellation stops the waiting; everything is
    closed all the same.

    A connection that is closed before it waits for its request stays open until the shutdown timeout: hence the turns.
    """
    runner, clock = listener.runner, asyncio.get_running_loop().time
    end = clock() + listener.stop_seconds
    try:
        # Closes this process' descriptor only: others that have the socket go on accepting from its queue.
        for site in list(runner.sites):
            await site.stop()
        # Connections that the kernel has accepted already get as far as waiting for their request.
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        await listener.limiter.drain(min(listener.drain_seconds, listener.stop_seconds))
        runner.wait_for_requests(end - clock())
        await runner.cleanup()
    except asyncio.CancelledError:
        runner.wait_for_requests(0)
        await runner.cleanup()
        raise
