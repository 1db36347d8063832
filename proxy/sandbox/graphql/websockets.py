"""GraphQL over a WebSocket: the protocol graphql-transport-ws, which subscriptions need and other operations may use
(https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).

The token comes in the payload of `connection_init`, as `Authorization` or `token`, or in the headers of the request, as
with HTTP. It is looked at with each operation, so that one that has expired meanwhile is refused.
"""

import asyncio
import contextlib
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from proxy.sandbox.graphql import errors, requests, service
from proxy.sandbox.injection import exchanges

PROTOCOL = "graphql-transport-ws"
# Seconds until `connection_init`, and bytes of a message; ours.
PATIENCE = 10.0
MAX_MESSAGE = 2**20
BAD_REQUEST, UNAUTHORIZED, INIT_TIMEOUT, TAKEN, INIT_TWICE = 4400, 4401, 4408, 4409, 4429
NO_PROTOCOL = 4406
GOING_AWAY = 1001
# Bytes of the reason in a close frame.
LONGEST_REASON = 123


class CloseError(Exception):
    """The caller has broken the protocol: the socket is closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


def is_upgrade(request: web.Request) -> bool:
    """Whether a GET wants a socket."""
    return request.headers.get("Upgrade", "").lower() == "websocket"


class WebSocketTransport:
    """The handler."""

    def __init__(self, queries: service.QueryService, watch: exchanges.ExchangeMiddleware) -> None:
        self._queries, self._watch = queries, watch
        self._open: set[web.WebSocketResponse] = set()

    async def close(self, _app: web.Application) -> None:
        """End all of them: the service stops."""
        for socket in tuple(self._open):
            await socket.close(code=GOING_AWAY, message=b"The service stops")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One socket, until either side closes it."""
        socket = web.WebSocketResponse(protocols=(PROTOCOL,), max_msg_size=MAX_MESSAGE)
        await socket.prepare(request)
        self._open.add(socket)
        talk = _Talk(self._queries, self._watch, socket, request)
        try:
            await talk.go()
        except ConnectionError:
            return socket
        except CloseError as broken:
            await socket.close(code=broken.code, message=_short(broken.reason))
        finally:
            self._open.discard(socket)
            await talk.end()
        return socket


class _Talk:
    """One socket's conversation: its operations run side by side, each in a task."""

    def __init__(
        self,
        queries: service.QueryService,
        watch: exchanges.ExchangeMiddleware,
        socket: web.WebSocketResponse,
        request: web.Request,
    ) -> None:
        self._queries, self._watch, self._socket = queries, watch, socket
        self._request, self._token = request, access_token(request.headers)
        self._running: dict[str, asyncio.Task[None]] = {}
        # All of them, also those that are saying their last word.
        self._tasks: set[asyncio.Task[None]] = set()

    async def go(self) -> None:
        """Listen, until the caller closes. Raises CloseError."""
        if self._socket.ws_protocol != PROTOCOL:
            raise CloseError(NO_PROTOCOL, "Subprotocol not acceptable")
        try:
            async with asyncio.timeout(PATIENCE):
                begun = await self._begin()
        except TimeoutError:
            raise CloseError(INIT_TIMEOUT, "Connection initialisation timeout") from None
        if begun:
            async for message in self._socket:
                await self._heed(_read(message))

    async def end(self) -> None:
        """Stop what is running."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self) -> bool:
        """Wait for `connection_init`, before which there may be pings; whether it came before the caller closed."""
        async for message in self._socket:
            said = _read(message)
            match said["type"]:
                case "connection_init":
                    await self._init(said)
                    return True
                case "ping" | "pong":
                    await self._heed(said)
                case "subscribe":
                    raise CloseError(UNAUTHORIZED, "Unauthorized")
                case _:
                    raise CloseError(BAD_REQUEST, "The first message must be connection_init")
        return False

    async def _init(self, message: dict[str, Any]) -> None:
        payload = message.get("payload")
        if isinstance(payload, dict):
            texts = {name: value for name, value in payload.items() if isinstance(value, str)}
            self._token = (
                access_token(texts)
                or access_token({name.title(): value for name, value in texts.items()})
                or self._token
            )
        await self._send({"type": "connection_ack"})

    async def _heed(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "ping":
                await self._send({"type": "pong"})
            case "pong":
                pass
            case "subscribe":
                self._subscribe(message)
            case "complete":
                await self._stop(message)
            case "connection_init":
                raise CloseError(INIT_TWICE, "Too many initialisation requests")
            case unknown:
                raise CloseError(BAD_REQUEST, f"There is no message type {unknown[:50]!r}")

    def _subscribe(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        if not isinstance(id_, str) or not id_:
            raise CloseError(BAD_REQUEST, "A subscribe message must have an id")
        if id_ in self._running:
            raise CloseError(TAKEN, f"Subscriber for {id_[:50]} already exists")
        try:
            asked = requests.parse_body(orjson.dumps(message.get("payload")))
        except errors.RequestError as refused:
            raise CloseError(BAD_REQUEST, refused.errors[0]["message"]) from None
        task = asyncio.create_task(self._run(id_, asked), name="GraphQL operation on a socket")
        self._running[id_] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self, message: dict[str, Any]) -> None:
        task = self._running.pop(str(message.get("id")), None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self, id_: str, asked: requests.GraphQLRequest) -> None:
        """Send what comes of an operation, until it is over."""
        try:
            with self._watch.record("graphql", self._request) as exchange:
                answers = self._queries.stream(asked, self._token, exchange)
                async with contextlib.aclosing(answers):
                    async for answer in answers:
                        exchange.entry.status = answer.status
                        if "data" not in answer.body:
                            await self._finish({"id": id_, "type": "error", "payload": answer.body["errors"]})
                            return
                        await self._send({"id": id_, "type": "next", "payload": answer.body})
            await self._finish({"id": id_, "type": "complete"})
        except ConnectionError:
            return
        finally:
            if self._running.get(id_) is asyncio.current_task():
                del self._running[id_]

    async def _finish(self, message: dict[str, Any]) -> None:
        """The last message of an operation. Its id is free when the caller reads that, not some time after."""
        self._running.pop(message["id"], None)
        await self._send(message)

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send_str(orjson.dumps(message).decode())


def _short(reason: str) -> bytes:
    """As much as a close frame holds (RFC 6455 §5.5), cut between characters."""
    return reason.encode()[:LONGEST_REASON].decode(errors="ignore").encode()


def access_token(headers: Any) -> str | None:
    """From `Authorization: Bearer` or from `token`, which some clients of the service use."""
    kind, _, value = headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return str(value).strip()
    found = headers.get("token")
    return None if found is None else str(found)


def _read(message: Any) -> dict[str, Any]:
    """Raises CloseError for what is no message of the protocol."""
    try:
        content = orjson.loads(message.data if message.type is WSMsgType.TEXT else b"")
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise CloseError(BAD_REQUEST, "A message must be a JSON object with a type")
    return content
