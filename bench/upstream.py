"""Canned upstream: a token, and for every query the same parts with its part number, at the least possible cost.

Run as `python -m bench.upstream [MS [PARTS]]`, with a delay in milliseconds and the number of parts in each result;
prints its port. Written on asyncio protocols, so that the upstream is never the bottleneck. `GET /count` returns the
requests and parts so far, and resets them.
"""

import asyncio
import functools
import json
import sys
import time
from typing import Any, cast

import jwt
import orjson

from bench import canned


def response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@functools.cache
def _sheet_response(queries: int) -> bytes:
    return response(canned.sheet_body(queries))


TOKEN_SECONDS = 7 * 86_400  # a clock that is moved on by a day does not make it expire
TOKEN = jwt.encode(
    {"exp": int(time.time()) + TOKEN_SECONDS}, "a secret of the bench and long enough", algorithm="HS256"
)
TOKEN_RESPONSE = response(
    json.dumps({"access_token": TOKEN, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}).encode()
)


class CannedUpstream(asyncio.Protocol):
    """Connection that counts complete requests by Content-Length and responds to each after `seconds`, with `parts` in
    the result of each query.

    `counts`: requests and parts, shared by all connections.
    """

    def __init__(self, seconds: float, parts: int, counts: list[int]) -> None:
        self._seconds = seconds
        self._parts = parts
        self._counts = counts

    def respond(self, variables: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        """Return the number of parts of a response, and its bytes: supMultiMatch, or searches, alone or under
        aliases."""
        parts, whole = self._parts, b"totalAvail" in body
        if "queries" in variables:
            numbers = [query["mpn"] for query in variables["queries"]]
            return parts * len(numbers), response(canned.match_body(numbers, parts, whole))
        if "q" in variables:
            return parts, response(canned.search_body([variables["q"]], ["supSearchMpn"], parts, whole))
        numbers = [variables[f"q{n}"] for n in range(sum(name[0] == "q" for name in variables))]
        names = [f"a{n}" for n in range(len(numbers))]
        return parts * len(numbers), response(canned.search_body(numbers, names, parts, whole))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self._received) < end + 4 + length:
                return
            body = self._received[end + 4 : end + 4 + length]
            self._received = self._received[end + 4 + length :]
            self._send_response(head, body)

    def _send_response(self, head: bytes, body: bytes) -> None:
        if b"/connect/token" in head:
            self._transport.write(TOKEN_RESPONSE)
        elif head.startswith(b"get /count"):
            self._transport.write(response(json.dumps(self._counts).encode()))
            self._counts[:] = 0, 0
        else:
            variables = orjson.loads(body).get("variables") or {}  # the readiness probe has none
            if b"convertedPrice" in body:  # only spreadsheets have prices converted
                queries = len(variables["queries"])
                parts, reply = self._parts * queries, _sheet_response(queries)
            else:
                parts, reply = self.respond(variables, body)
            self._counts[0] += 1
            self._counts[1] += parts
            if self._seconds:
                asyncio.get_running_loop().call_later(self._seconds, self._transport.write, reply)
            else:
                self._transport.write(reply)


async def main(
    milliseconds: float = 0.0, parts: float = 3, *, connection: type[CannedUpstream] = CannedUpstream
) -> None:
    """Serve until the process ends."""
    counts = [0, 0]
    server = await asyncio.get_running_loop().create_server(
        lambda: connection(milliseconds / 1000, int(parts), counts), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*map(float, sys.argv[1:])))
