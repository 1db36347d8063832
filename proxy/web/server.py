"""Listening: aiohttp's server, set up so that no request line can leak (contract v3-rest.md §6, LineTooLong below).

aiohttp answers what it cannot parse by itself, with a text that repeats the request line, apikey included. Here such a
request gets a v3 error that says only what kind of mistake it is, and the log gets its type.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiohttp import http_exceptions, web
from aiohttp.web_protocol import RequestHandler

from proxy import errors
from proxy.web import fast_path
from proxy.web.connections import Census, LimitedHandler, Limits, Refuse
from proxy.web.v3 import responses
from proxy.web.v3.parameters import ResponseFormat

log = structlog.get_logger()

MAX_LINE = 69_632  # bytes of a request line: 66 KiB of query and a path; aiohttp's default of 8 190 is 60 BOM lines
MAX_FIELD = 16_384  # bytes of a header field
PLAIN = (
    "this port speaks plain HTTP: send http:// URLs to it, or put a TLS server in front (docs/how-to/point-clients.md)"
)
TLS = "HTTPS traffic"  # what aiohttp says of a request that begins like a TLS handshake
AT_ONCE = 0.001  # seconds; aiohttp takes 0 for no limit
TURNS = 5  # of the loop, until a connection that was just accepted waits for its request


USUAL = Limits()


class _Handler(LimitedHandler):
    """aiohttp's connection handler with v3's answer to what is no HTTP request."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it repeats the request
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the reply had already begun")
        if isinstance(exc, http_exceptions.BadHttpMethod) and TLS in exc.message:
            log.warning("TLS handshake refused", client=request.remote)
            return self._closing(errors.BadRequest(f"the client began TLS; {PLAIN}"))
        log.warning("malformed request refused", exc_info=exc)
        if isinstance(exc, http_exceptions.LineTooLong):
            error = errors.BadRequest(
                f"the request line is longer than {MAX_LINE} bytes, or a header is longer than {MAX_FIELD}"
            )
        elif status < 500:
            error = errors.BadRequest("the request is not valid HTTP")
        else:
            return self._closing(errors.ServerError("Internal error"))
        return self._closing(error)

    @staticmethod
    def _closing(error: errors.BridgeError) -> web.Response:
        response = web.Response(
            body=responses.error_body(error, ResponseFormat()), status=error.status, content_type="application/json"
        )
        response.force_close()
        return response


class _Server(web.Server):
    """Makes our handlers for connections."""

    def __init__(self, handler: Any, *, limits: Limits, refuse: Refuse | None, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._census = Census(limits, self._loop, refuse)

    def __call__(self) -> RequestHandler:
        return _Handler(self, loop=self._loop, census=self._census, **self._kwargs)


class _Runner(web.AppRunner):
    """Runs an application behind our server; aiohttp offers no argument for it."""

    def __init__(self, app: web.Application, limits: Limits, **settings: Any) -> None:
        super().__init__(app, **settings)
        self._limits = limits

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(
            fast_path.handler(self.app, made.request_handler),
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            limits=self._limits,
            refuse=self.app.get(fast_path.QUICK),
            **made._kwargs,
        )


@asynccontextmanager
async def running(
    app: web.Application,
    host: str,
    port: int,
    *,
    stop_seconds: float = 10.0,
    shared: bool = False,
    limits: Limits = USUAL,
    **settings: Any,
) -> AsyncIterator[str]:
    """Serve while the block runs; gives the base URL. Port 0 takes a free one. Raises OSError where it is taken.

    At the end requests under way have `stop_seconds` to finish. A `shared` port has other listeners (SO_REUSEPORT).
    """
    runner = _Runner(
        app,
        limits,
        access_log=None,
        max_line_size=MAX_LINE,
        max_field_size=MAX_FIELD,
        handle_signals=False,
        shutdown_timeout=max(stop_seconds, AT_ONCE),
        **settings,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, reuse_port=shared or None)
        await site.start()
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{runner.addresses[0][1]}"
    finally:
        await _end(runner)


async def _end(runner: _Runner) -> None:
    """Finish what is under way. Who is cancelled in the meantime cuts it off, and still closes what was opened.

    A connection that is closed before it waits for its request would be left open and waited for until the time is up.
    """
    try:
        for site in list(runner.sites):
            await site.stop()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await runner.cleanup()
    except asyncio.CancelledError:
        runner._shutdown_timeout = AT_ONCE
        await runner.cleanup()
        raise
