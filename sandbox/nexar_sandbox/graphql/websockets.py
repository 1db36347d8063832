"""GraphQL over WebSocket: the protocol graphql-transport-ws, which subscriptions need and other operations may use
(https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).

The token is in the payload of `connection_init`, as `Authorization` or `token`, or in the headers of the request, as
with HTTP. It is checked for each operation, so that one that has expired meanwhile is rejected.
"""

import asyncio
import contextlib
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from nexar_sandbox import exchanges
from nexar_sandbox.graphql import errors, requests, service
from nexar_sandbox.identity import forms

PROTOCOL = "graphql-transport-ws"
# Seconds until `connection_init`, and bytes of a message; our choice.
INIT_TIMEOUT_SECONDS = 10.0
MAX_MESSAGE = 2**20
BAD_REQUEST, UNAUTHORIZED, INIT_TIMEOUT, DUPLICATE_ID, INIT_TWICE = 4400, 4401, 4408, 4409, 4429
NO_PROTOCOL = 4406
GOING_AWAY = 1001
# Bytes of the reason in a close frame.
MAX_REASON = 123


class CloseError(Exception):
    """The client violated the protocol: the socket is closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


def is_upgrade(request: web.Request) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


class WebSocketTransport:
    def __init__(self, queries: service.QueryService, exchange_middleware: exchanges.ExchangeMiddleware) -> None:
        self._queries, self._exchange_middleware = queries, exchange_middleware
        self._sockets: set[web.WebSocketResponse] = set()

    async def close(self, _app: web.Application) -> None:
        # A copy: a socket that is closed leaves the set.
        for socket in tuple(self._sockets):
            await socket.close(code=GOING_AWAY, message=b"The service stops")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(PROTOCOL,), max_msg_size=MAX_MESSAGE)
        await socket.prepare(request)
        self._sockets.add(socket)
        connection = _Connection(self._queries, self._exchange_middleware, socket, request)
        try:
            await connection.run()
        except ConnectionError:
            return socket
        except CloseError as broken:
            # Cut between characters to the maximum of a close frame (RFC 6455 §5.5).
            reason = broken.reason.encode()[:MAX_REASON].decode(errors="ignore").encode()
            await socket.close(code=broken.code, message=reason)
        finally:
            self._sockets.discard(socket)
            await connection.cancel()
        return socket


class _Connection:
    """One socket with its operations, which run concurrently, each in a task."""

    def __init__(
        self,
        queries: service.QueryService,
        exchange_middleware: exchanges.ExchangeMiddleware,
        socket: web.WebSocketResponse,
        request: web.Request,
    ) -> None:
        self._queries, self._exchange_middleware, self._socket = queries, exchange_middleware, socket
        self._request, self._token = request, forms.access_token(request.headers)
        self._running: dict[str, asyncio.Task[None]] = {}
        # Includes tasks whose operation has finished but which are still sending the last message.
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_open = False

    async def run(self) -> None:
        """Handle messages until the client closes. Raises CloseError."""
        if self._socket.ws_protocol != PROTOCOL:
            raise CloseError(NO_PROTOCOL, "Subprotocol not acceptable")
        try:
            async with asyncio.timeout(INIT_TIMEOUT_SECONDS) as deadline:
                async for message in self._socket:
                    await self._handle(_read(message))
                    if self._is_open:
                        deadline.reschedule(None)
        except TimeoutError:
            raise CloseError(INIT_TIMEOUT, "Connection initialization timeout") from None

    async def cancel(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "ping":
                await self._send({"type": "pong"})
            case "pong":
                pass
            case "connection_init":
                await self._init(message)
            case "subscribe":
                self._subscribe(message)
            case "complete" if self._is_open:
                task = self._running.pop(str(message.get("id")), None)
                if task is not None:
                    task.cancel()
            case unknown:
                raise CloseError(BAD_REQUEST, f"The message type {unknown[:50]!r} is not expected here")

    async def _init(self, message: dict[str, Any]) -> None:
        if self._is_open:
            raise CloseError(INIT_TWICE, "Too many initialization requests")
        payload = message.get("payload")
        # Names of headers have no case, but keys of a JSON object do.
        pairs = payload.items() if isinstance(payload, dict) else ()
        headers = {name.lower(): value for name, value in pairs if isinstance(value, str)}
        given = {"Authorization": headers.get("authorization", ""), "token": headers.get("token")}
        self._token = forms.access_token(given) or self._token
        self._is_open = True
        await self._send({"type": "connection_ack"})

    def _subscribe(self, message: dict[str, Any]) -> None:
        if not self._is_open:
            raise CloseError(UNAUTHORIZED, "Unauthorized")
        id_ = message.get("id")
        if not isinstance(id_, str) or not id_:
            raise CloseError(BAD_REQUEST, "A subscribe message must have an id")
        if id_ in self._running:
            raise CloseError(DUPLICATE_ID, f"Subscriber for {id_[:50]} already exists")
        try:
            graphql_request = requests.parse_object(message.get("payload"))
        except errors.RequestError as error:
            raise CloseError(BAD_REQUEST, error.errors[0]["message"]) from None
        task = asyncio.create_task(self._run(id_, graphql_request), name="GraphQL operation on a socket")
        self._running[id_] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, id_: str, graphql_request: requests.GraphQLRequest) -> None:
        last: dict[str, Any] = {"id": id_, "type": "complete"}
        with contextlib.suppress(ConnectionError):
            with self._exchange_middleware.record("graphql", self._request) as exchange:
                responses = self._queries.stream(graphql_request, self._token, exchange)
                async with contextlib.aclosing(responses):
                    async for response in responses:
                        exchange.entry.status = response.status
                        if "data" not in response.body:
                            last = {"id": id_, "type": "error", "payload": response.body["errors"]}
                            break
                        await self._send({"id": id_, "type": "next", "payload": response.body})
            # The id can be used again as soon as the client has received the last message.
            self._running.pop(id_, None)
            await self._send(last)

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send_str(orjson.dumps(message).decode())


def _read(message: Any) -> dict[str, Any]:
    """Parse a message. Raises CloseError for an invalid one."""
    try:
        content = orjson.loads(message.data if message.type is WSMsgType.TEXT else b"")
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise CloseError(BAD_REQUEST, "A message must be a JSON object with a type")
    return content
