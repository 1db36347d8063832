"""aiohttp's server with our own connection handler, for which aiohttp has no setting."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aiohttp import http_exceptions, web, web_app
from aiohttp.web_protocol import RequestHandler

IMMEDIATELY = 0.001  # seconds of a shutdown timeout; aiohttp takes 0 for no limit
TLS = "HTTPS traffic"  # in aiohttp's error message for a request that begins like a TLS handshake

Handler = Callable[[Any], Awaitable[web.StreamResponse]]


class ConnectionHandler(RequestHandler):
    """aiohttp's handler of one connection, with its state made public and a hook for malformed requests."""

    __slots__ = ("_responses",)

    def __init__(self, manager: object, **settings: Any) -> None:
        super().__init__(manager, **settings)  # type: ignore[arg-type] # aiohttp names its own Server class only
        self._responses = 0

    @property
    def event_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def request_count(self) -> int:
        return self._request_count

    @property
    def has_queued_requests(self) -> bool:
        return bool(self._messages)

    def is_idle(self) -> bool:
        """Whether every request that came has its whole response."""
        return self._responses == self._request_count

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Between accepting and this, another application may have replaced the one that `__init__` found.
        server = self._manager
        assert server is not None  # noqa: S101 - until the connection is lost
        self._request_handler, self._request_factory = server.request_handler, server.request_factory
        super().connection_made(transport)

    def malformed_request(self, request: web.BaseRequest, status: int, error: BaseException | None) -> web.Response:
        """Return the response to bytes that are not a request; its connection is closed."""
        raise NotImplementedError

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it repeats the request line, which may hold an API key
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the response had already begun")
        response = self.malformed_request(request, status, exc)
        response.force_close()
        return response

    def announces_close(self) -> bool:
        """Return whether the next response is to be the last one of the connection, and to say so."""
        return False

    # Called for every response: a coroutine of its own would cost more than all of this.
    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        if self.announces_close():
            resp.force_close()
        return super().finish_response(request, resp, start_time)

    async def _handle_request(self, *request: Any) -> tuple[web.StreamResponse, bool]:
        # aiohttp waits for the next request only in a later turn of the event loop, and under load the request comes
        # first: its own state would not tell that this connection is idle.
        try:
            return await super()._handle_request(*request)
        finally:
            self._responses += 1


class HandlerRunner(web.AppRunner):
    """Runs an application with connection handlers of `make_handler`. `dispatch` wraps the handler of all requests."""

    def __init__(
        self,
        app: web.Application,
        make_handler: Callable[..., RequestHandler],
        dispatch: Callable[[Handler], Handler],
        **settings: Any,
    ) -> None:
        super().__init__(app, **settings)
        self._make_handler = make_handler
        self._dispatch = dispatch

    def wait_for_requests(self, seconds: float) -> None:
        """Let the next `cleanup` wait so long for requests under way; 0 cancels them at once."""
        self._shutdown_timeout = max(seconds, IMMEDIATELY)

    def replace(self, app: web.Application, dispatch: Callable[[Handler], Handler]) -> None:
        """Serve with another application, which has been started, from the next request on, also on connections that
        are open. Requests under way end in the application that they began in; the caller closes that."""
        usual = app._make_handler(loop=asyncio.get_running_loop(), **self._kwargs)
        server = self._server
        assert server is not None and usual.request_factory is not None  # noqa: S101, PT018 - it has been set up
        self._app, self._dispatch = app, dispatch
        # Set in every connection, because a look-up for each request would cost all of them for what is rare.
        handler = dispatch(usual.request_handler)
        server.request_handler, server.request_factory = handler, usual.request_factory
        for connection in server.connections:
            if connection._request_handler is not None:  # None once the connection is lost
                connection._request_handler, connection._request_factory = handler, usual.request_factory

    async def _make_server(self) -> web.Server:
        usual = await super()._make_server()
        return _HandlerServer(
            self._dispatch(usual.request_handler),
            self._make_handler,
            request_factory=usual.request_factory,
            handler_cancellation=usual.handler_cancellation,
            loop=usual._loop,
            **usual._kwargs,
        )


async def start(app: web.Application) -> None:
    """Start an application that will replace another one, as a runner starts its first."""
    app._set_loop(asyncio.get_running_loop())
    app.on_startup.freeze()
    await app.startup()
    app.freeze()


async def close(app: web.Application) -> None:
    """Close an application that has been replaced, when it has no requests any more."""
    await app.shutdown()
    await app.cleanup()
    # aiohttp keeps the middlewares of its last 1024 handlers, and with them their applications.
    web_app._cached_build_middleware.cache_clear()


class _HandlerServer(web.Server):
    """Makes a connection handler for each connection."""

    def __init__(self, handler: Handler, make_handler: Callable[..., RequestHandler], **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._make_handler = make_handler

    def __call__(self) -> RequestHandler:
        return self._make_handler(self, loop=self._loop, **self._kwargs)


def close_after_response(request: web.BaseRequest) -> None:
    request.protocol.close()


def is_tls_handshake(error: BaseException | None) -> bool:
    """Return whether a malformed request is the beginning of a TLS handshake."""
    return isinstance(error, http_exceptions.BadHttpMethod) and TLS in error.message


def is_line_too_long(error: BaseException | None) -> bool:
    """Return whether the request line or a header of a malformed request exceeds its limit."""
    return isinstance(error, http_exceptions.LineTooLong)
