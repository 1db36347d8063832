"""HTTP server of the service, and its listening sockets: its own, or those of a service manager, and reports to that.

Each worker has a socket of its own on the port (SO_REUSEPORT), which the parent keeps open: the kernel spreads
connections over them, and those in the queue of a worker that has died wait for its successor. From a socket of the
service manager all workers accept; systemd, podman, s6 and others speak sd_listen_fds(3) and sd_notify(3).

No response or log line repeats a request line (contract v3-rest.md §6), as aiohttp's own to a malformed request does,
API key included.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import Any, NamedTuple, cast

import structlog
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http import HttpProcessingError

from proxy import errors
from proxy.v3 import encoding
from proxy.web import messages, operators
from proxy.web.connections import Connection, Connections, Limits
from proxy.web.messages import Handler, Request

log = structlog.get_logger()

MAX_FIELD = 16_384  # bytes of a header field
READ_BUFFER = 16_384  # bytes of a body that wait for its handler, beyond which a connection is not read
IDLE_SECONDS = 90_000.0  # aiohttp's limit, longer than that of `Limits`
FAILURE_SECONDS = 1.0  # without accepting, after an error of the system
ACCEPT_TURNS = 5  # of the event loop, after which an accepted connection is known
CLOSED_SECONDS = 0.02  # between two looks whether all connections are closed
AT_ONCE = 0.001  # seconds; aiohttp takes 0 for no limit
ADVICE = (
    "the request is not valid HTTP: send a method such as GET, and percent-encode blanks and non-ASCII characters of a "
    f"URL; a request line may not be longer than {encoding.REQUEST_LINE} bytes, a header not longer than {MAX_FIELD}"
)
FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START: passed sockets follow standard error
BACKLOG = 1024  # connections that wait to be accepted
OPERATORS_OPTIONS = "admin.port in the configuration, or --admin-port"

Sockets = tuple[socket.socket, ...]


class WorkerSockets(NamedTuple):
    """Listening sockets of one worker, for clients and for operators."""

    public: Sockets
    operators: Sockets = ()


def listen(host: str, port: int, *, shared: bool = False) -> Sockets:
    """Return listening sockets for all addresses of a host; port 0 is a free one. Raises OSError."""
    opened: list[socket.socket] = []
    with ExitStack() as stack:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, (name, _, *rest) in found:
            try:
                server = socket.create_server((name, port, *rest), family=family, backlog=BACKLOG, reuse_port=shared)
            except OSError as error:
                error.strerror = str(error.strerror).partition(" (while")[0]  # without the address, which callers name
                raise
            opened.append(stack.enter_context(server))
            port = server.getsockname()[1]
        stack.pop_all()
    return tuple(opened)


def open_port(host: str, port: int, workers: int = 1, *, for_operators: bool = False) -> list[Sockets]:
    """Return sockets for each worker, of all addresses of a host; port 0 is a free one. Raises ConfigError."""
    opened: list[Sockets] = []
    try:
        for each in listen(host, port):  # another program may share its port, so that binding below would succeed
            each.close()
        for _ in range(workers):
            opened.append(listen(host, port, shared=workers > 1))
            port = opened[0][0].getsockname()[1]
    except OSError as error:
        service, options = ("the operators' port ", OPERATORS_OPTIONS) if for_operators else ("", "--host or --port")
        raise errors.ConfigError(
            f"{service}cannot listen on {host}:{port}: {error.strerror}; choose another with {options}"
        ) from error
    return opened


def take(environ: MutableMapping[str, str]) -> Sockets:
    """Return the public sockets that a service manager has passed, and remove their variables. Raises ConfigError."""
    pid, count, *_ = (environ.pop(f"LISTEN_{name}", "") for name in ("PID", "FDS", "FDNAMES", "PIDFDID"))
    # Left over from a parent process: the descriptors of these numbers are something else here.
    if pid != str(os.getpid()) or not count.isdecimal():
        return ()
    passed: list[socket.socket] = []
    for descriptor in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count)):
        with suppress(OSError):  # it is not open, or no socket
            os.set_inheritable(descriptor, False)
            opened = socket.socket(fileno=descriptor)
            if opened.family != socket.AF_UNIX and opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                passed.append(opened)
                continue
            opened.close()
        raise errors.ConfigError(
            f"socket activation: file descriptor {descriptor} is no listening TCP socket: its unit needs ListenStream= "
            "with an address and a port, and Accept=no (deploy/v3bridge.socket has an example)"
        )
    return tuple(passed)


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def notify(manager: str, *assignments: str) -> bool:
    """Report to the service manager at NOTIFY_SOCKET, if there is one (sd_notify(3)). Return whether it listens."""
    if not manager.startswith(("/", "@")):  # others, such as vsock of virtual machines, are not supported
        return True
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            connection.setblocking(False)
            connection.connect(manager.replace("@", "\0", 1) if manager.startswith("@") else manager)
            connection.send("\n".join(assignments).encode())
    except OSError:
        return False
    return True


class Listener:
    """The HTTP server at `url`."""

    url = ""
    _draining = False

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self._handler, self.connections = handler, Connections(limits)
        self._server = web.Server(
            cast(Any, self._handle),
            request_factory=self._request,
            # it would write request lines, and with them API keys
            access_log=None,
            keepalive_timeout=IDLE_SECONDS,
            max_line_size=encoding.REQUEST_LINE,
            max_field_size=MAX_FIELD,
            read_bufsize=READ_BUFFER,
        )

    async def accept(self, listening: socket.socket) -> None:
        """Accept connections one by one: asyncio's own server accepts all that wait, also those for other processes."""
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
        """Finish the requests under way, and those that arrive within `drain_seconds`: one may be on its way on an idle
        connection. Close all after `stop_seconds`. A cancellation stops the waiting."""
        connections, loop = self.connections, asyncio.get_running_loop()
        limits, now = connections.limits, loop.time()
        self._draining = True
        try:
            for _ in range(ACCEPT_TURNS):
                await asyncio.sleep(0)
            for seconds in (min(limits.drain_seconds, limits.stop_seconds), limits.stop_seconds):
                while connections.open and loop.time() < now + seconds:  # noqa: ASYNC110 - it ends a process
                    await asyncio.sleep(CLOSED_SECONDS)
                for connection in list(connections.open):
                    if connection.is_idle():
                        connection.abort()
        finally:
            await self._server.shutdown(AT_ONCE)

    async def _handle(self, request: Request) -> web.StreamResponse:
        if request.transport is None:  # the client has left
            return web.Response()
        connection = cast(Connection, request.transport.get_protocol())
        connection.in_head, connection.in_request = False, True
        if connection.over_limit:
            connection.over_limit = len(self.connections.open) > self.connections.limits.connections
        error: errors.BridgeError | None = None
        if request.version < HttpVersion11 and hdrs.TRANSFER_ENCODING in request.headers:
            # It can hide another one from a proxy in front (request smuggling, RFC 9112 §6.1).
            error = errors.BadRequest("HTTP/1.0 has no Transfer-Encoding")
        elif connection.over_limit and request.path not in operators.PATHS:
            error = errors.TooManyConnections("too many connections are open", retry_after=messages.RETRY_SECONDS)
        try:
            response = await self._handler(request) if error is None else messages.error_response(error, request)
        finally:
            connection.in_request, connection.since = False, asyncio.get_running_loop().time()
        # The rest of a body that nobody has read is no next request.
        if self._draining or error is not None or not request.content.is_eof():
            response.force_close()
        return response

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Request:
        """Make a request, as aiohttp does. Bytes that are not a request get their response here, before aiohttp's."""
        request = Request(message, payload, protocol, writer, task, asyncio.get_running_loop())
        transport = request.transport
        if message.method == "UNKNOWN" and transport is not None:  # what aiohttp calls bytes that are no request
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
        listener.url = f"http://{shown(*sockets[0].getsockname()[:2])}"
        yield listener


def _says_more(record: logging.LogRecord) -> bool:
    """Return whether a log line of aiohttp says more than the response to a malformed request, or body."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | web.RequestPayloadError))


_ADVICE = encoding.error_body(errors.BadRequest(ADVICE), encoding.ResponseFormat())
_MALFORMED_RESPONSE = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
    % (len(_ADVICE), _ADVICE)
)
