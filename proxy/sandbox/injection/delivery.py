"""How an answer goes out over HTTP: as it is, spoiled, in part, byte by byte, or not at all.

Used by exchanges.py. The bodies of 5xx and 429 are ours: the contract has none (contract graphql.md §3.2).
"""

import asyncio
import socket
import struct
from http import HTTPStatus

import orjson
from aiohttp import web

from proxy.sandbox import faults

# Kinds that act here; the rest is the services' own doing.
ON_THE_WIRE = (
    faults.Reset,
    faults.Trouble,
    faults.TooManyRequests,
    faults.Cut,
    faults.Malformed,
    faults.SlowLoris,
)

_PAGE = "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"
_TROUBLE = {
    "graphql": {"errors": [{"message": "Unexpected Execution Error"}], "data": None},
    "token": {"error": "server_error"},
}
_LINGER_NOT = struct.pack("ii", 1, 0)


def instead(fault: faults.Drawn, service: str) -> web.Response | None:
    """What is sent in place of the service's answer; None where the service is to be asked. The content for a reset
    is never sent."""
    if isinstance(fault, faults.Trouble):
        again = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        if fault.body == "json":
            body = orjson.dumps(_TROUBLE[service])
            return web.Response(body=body, status=fault.status, headers=again, content_type="application/json")
        return web.Response(text=_page(fault.status), status=fault.status, headers=again, content_type="text/html")
    if isinstance(fault, faults.TooManyRequests):
        return web.Response(text="Too many requests", status=429, headers={"Retry-After": str(fault.retry_after)})
    return web.Response() if isinstance(fault, faults.Reset) and fault.when == "before" else None


def spoiled(answer: web.Response, fault: faults.Malformed) -> web.Response:
    """The answer with another body, and the status of one that is well."""
    if fault.body == "html":
        return web.Response(text=_page(200), content_type="text/html")
    body = _body(answer)
    return web.Response(body=body[: len(body) // 2] if fault.body == "half" else b"", headers=_headers(answer))


async def send(request: web.Request, response: web.StreamResponse) -> bool:
    """Send all of it; whether the connection was there for it."""
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionError:
        return False
    return True


async def send_cut(request: web.Request, answer: web.Response, after: int) -> web.StreamResponse:
    """Promise the whole body, send the first `after` bytes (never all of them), and close the connection."""
    body = _body(answer)
    promised = _promised(answer, body)
    try:
        await promised.prepare(request)
        await promised.write(body[: min(after, len(body) - 1)])
    except ConnectionError:
        return promised
    if request.transport is not None:
        request.transport.close()
    return promised


async def send_slowly(request: web.Request, answer: web.Response, seconds: float) -> tuple[web.StreamResponse, bool]:
    """Send the body byte by byte, `seconds` apart; what was sent, and whether somebody was there to the end."""
    body = _body(answer)
    promised = _promised(answer, body)
    try:
        await promised.prepare(request)
        for position in range(len(body)):
            await asyncio.sleep(seconds)
            await promised.write(body[position : position + 1])
        await promised.write_eof()
    except ConnectionError:
        return promised, False
    return promised, True


def reset(request: web.Request) -> None:
    """End the connection with an RST: what was received and not read yet, and what was not sent, is gone."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()


def _promised(answer: web.Response, body: bytes) -> web.StreamResponse:
    promised = web.StreamResponse(status=answer.status, headers=_headers(answer))
    promised.content_length = len(body)
    return promised


def _headers(answer: web.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "Content-Length"}


def _body(answer: web.Response) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b""


def _page(status: int) -> str:
    """What a gateway shows."""
    return _PAGE.format(f"{status} {HTTPStatus(status).phrase}")
