"""An old v3 service as a shadow meets it: it answers, stalls, or breaks every connection off.

Run as `python -m bench.old_service answering|stalled|crashing`; prints its port. What it answers is a reply to another
question, so that every comparison finds differences and asks again: the most that a comparison costs.
"""

import asyncio
import json
import sys

from bench import canned
from bench.upstream import response

BODY = json.dumps({"__class__": "PartsMatchResponse", "results": json.loads(canned.body(1))}).encode()


class Old(asyncio.Protocol):
    """Answers each request that ends, if it answers at all."""

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._mode == "crashing":
            self._transport.abort()
        elif self._mode == "answering" and data.endswith(b"\r\n\r\n"):
            self._transport.write(response(BODY))


async def main(mode: str) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Old(mode), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1]))
