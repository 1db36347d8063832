"""An aiohttp handler that returns a constant body: the upper bound of any aiohttp server.

Run as `python -m bench.constant BYTES`; prints its port.
"""

import asyncio
import sys

from aiohttp import web


async def main(size: int) -> None:
    body = b"x" * size

    async def constant(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/v3/parts/match", constant)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
