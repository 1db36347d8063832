"""Old v3 service for shadowing: it responds, stalls, or aborts every connection.

Run as `python -m bench.old_service answering|stalled|crashing`; prints its port. Its response differs
from that of the service, so that every comparison is repeated: the most expensive case.
"""

import asyncio
import json
import sys
from typing import cast

from bench import canned
from bench.upstream import response

BODY = json.dumps({"__class__": "PartsMatchResponse", "results": json.loads(canned.body(1))}).encode()


class OldServiceConnection(asyncio.Protocol):
    """Connection that responds to each complete request, depending on the mode."""

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own

    def data_received(self, data: bytes) -> None:
        if self._mode == "crashing":
            self._transport.abort()
        elif self._mode == "answering" and data.endswith(b"\r\n\r\n"):
            self._transport.write(response(BODY))


async def main(mode: str) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: OldServiceConnection(mode), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1]))
