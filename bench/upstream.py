"""The canned upstream: a token, and to every query the same bytes, as cheaply as a server can.

Run as `python -m bench.upstream`; prints its port. Written on asyncio's protocols so that it is never what is measured.
"""

import asyncio
import json

import jwt

from bench import canned


def _response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


TOKEN = jwt.encode({"exp": 4_000_000_000}, "a secret of the bench and long enough", algorithm="HS256")
TOKEN_ANSWER = _response(json.dumps({"access_token": TOKEN, "expires_in": 86_400, "token_type": "Bearer"}).encode())
ANSWER = _response(canned.body())


class Canned(asyncio.Protocol):
    """Counts whole requests by their Content-Length and answers each."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self._received) < end + 4 + length:
                return
            self._received = self._received[end + 4 + length :]
            self._transport.write(TOKEN_ANSWER if b"/connect/token" in head else ANSWER)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
