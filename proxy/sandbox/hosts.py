"""The Host header, from which the sandbox makes every address that it gives: one that is no host is a 400 at the door.

Whatever name leads here will do: a sandbox has as many addresses as its machine.
"""

import re

from aiohttp import web
from aiohttp.typedefs import Handler

HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?", re.ASCII)
LAST_PORT = 65_535


@web.middleware
async def wanted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """400 for a request whose Host nobody could go to."""
    found = HOST.fullmatch(request.host)
    if found is None or int(found[2] or 0) > LAST_PORT:
        return web.Response(text="the Host header is no host with a port", status=400)
    return await handler(request)
