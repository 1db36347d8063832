"""An aiohttp handler that passes GraphQL documents on: the floor of GraphQL requests.

Run as `python -m bench.pass_through GRAPHQL_URL`; prints its port. It has one constant token, and keeps nothing.
"""

import asyncio
import sys
from typing import Any

from aiohttp import web

from bench.floor import KEYS, serve


async def execute(request: Any) -> Any:
    if request.query.get("apikey") not in KEYS:
        return web.json_response({"errors": [{"message": "Forbidden request"}]}, status=401)
    payload = await request.read()
    headers = {"Authorization": "Bearer x", "Content-Type": "application/json"}
    async with request.app["session"].post(request.app["url"], data=payload, headers=headers) as answer:
        return web.Response(body=await answer.read(), content_type="application/json")


async def main(url: str) -> None:
    application = web.Application()
    application.router.add_post("/graphql", execute)
    await serve(application, url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
