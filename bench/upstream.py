"""Canned upstream: a token, and for every part number its own parts, at the least possible cost.

Run as `python -m bench.upstream MS PARTS`, with a delay in milliseconds and the parts that a number matches, 0 for one
to four; prints its port. Written on asyncio protocols, so that the upstream is never the bottleneck. `GET /count`
returns requests and parts since it was called last, and the optional fields of the last request that selected parts.
"""

import asyncio
import json
import sys
from typing import Any, cast

import msgspec

from bench import canned

FOUND = 250  # parts that a search for a word finds


def response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


TOKEN = response(b'{"access_token":"bench","expires_in":604800,"token_type":"Bearer"}')


class CannedUpstream:
    """Answers to operations; `parts` as described above."""

    def __init__(self, seconds: float, parts: int) -> None:
        self.seconds = seconds
        self._parts = parts
        self._requests = self._billed = 0
        self._fields: frozenset[str] = frozenset()

    def count(self) -> bytes:
        """Return the counts, and reset them."""
        counts = {"requests": self._requests, "parts": self._billed, "fields": sorted(self._fields)}
        self._requests = self._billed = 0
        return json.dumps(counts).encode()

    def answer(self, body: bytes) -> bytes:
        """Return the response to an operation."""
        variables = msgspec.json.decode(body).get("variables") or {}
        fields = canned.selected(body.partition(b'"variables"')[0])
        self._requests += 1
        if "queries" in variables:
            data = b'{"supMultiMatch":[%s]}' % b",".join(self._match(query, fields) for query in variables["queries"])
        elif "ids" in variables:
            parts = (self._parts_of(int(uid[:12], 16), [int(uid[12:], 16)], fields) for uid in variables["ids"])
            data = b'{"supParts":[%s]}' % b",".join(parts)
        elif "q" in variables:
            data = self._search(variables, fields)
        else:  # a list, of the readiness probe or of specs
            data = b'{"%s":[]}' % (b"supAttributes" if b"supAttributes" in body else b"supCategories")
        return response(b'{"data":%s}' % data)

    def _match(self, query: dict[str, Any], fields: frozenset[str]) -> bytes:
        number = int(query["mpn"][2:])
        hits, start = self._hits(number), query["start"]
        page = self._parts_of(number, range(start, min(start + query["limit"], hits)), fields)
        return b'{"error":null,"hits":%d,"parts":[%s]}' % (hits, page)

    def _search(self, variables: dict[str, Any], fields: frozenset[str]) -> bytes:
        """Return what a number matches, or a word such as word12 finds."""
        q, start, end = variables["q"], variables["start"], variables["start"] + variables["limit"]
        if q.startswith("word"):
            name, hits = b"supSearch", FOUND
            found = [(int(q[4:]) * 83 + place * 7, 0) for place in range(start, end)]
        else:
            name, hits = b"supSearchMpn", self._hits(int(q[2:]))
            found = [(int(q[2:]), place) for place in range(start, min(end, hits))]
        parts = (self._parts_of(number, [place], fields) for number, place in found)
        results = b",".join(b'{"akaMpn":null,"description":"","part":%s}' % part for part in parts)
        return b'{"%s":{"hits":%d,"results":[%s]}}' % (name, hits, results)

    def _hits(self, number: int) -> int:
        return self._parts or 1 + (number % 3 == 0) + (number % 5 == 0) + (number % 7 == 0)

    def _parts_of(self, number: int, places: "range | list[int]", fields: frozenset[str]) -> bytes:
        self._billed += len(places)
        self._fields = fields
        return b",".join(canned.parts(number, places, fields))


class Connection(asyncio.Protocol):
    """Connection that counts complete requests by Content-Length, and responds to each after a delay."""

    def __init__(self, upstream: CannedUpstream) -> None:
        self._upstream = upstream
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self._received) < end + 4 + length:
                return
            body = self._received[end + 4 : end + 4 + length]
            self._received = self._received[end + 4 + length :]
            if b"/connect/token" in head:
                self._transport.write(TOKEN)
            elif head.startswith(b"get /count"):
                self._transport.write(response(self._upstream.count()))
            else:
                answer = self._upstream.answer(body)
                asyncio.get_running_loop().call_later(self._upstream.seconds, self._transport.write, answer)


async def main(milliseconds: float, parts: int) -> None:
    """Serve until the process ends."""
    upstream = CannedUpstream(milliseconds / 1000, parts)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(upstream), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), int(sys.argv[2])))
