"""The Host header, from which the sandbox makes every address that it gives: one that is no host is a 400 at the door.

Whatever name leads here will do: a sandbox has as many addresses as its machine. Only /admin, which has no
authentication, wants a name that is known: a web page could lead its own name here (DNS rebinding) and would then be of
the same origin.
"""

import ipaddress
import re
from collections.abc import Collection

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?", re.ASCII)
LAST_PORT = 65_535
ADMIN = "/admin"


@web.middleware
async def wanted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """400 for a request whose Host nobody could go to."""
    found = HOST.fullmatch(request.host)
    if found is None or int(found[2] or 0) > LAST_PORT:
        return web.Response(text="the Host header is no host with a port", status=400)
    return await handler(request)


def guarding_admin(names: Collection[str]) -> Middleware:
    """403 for /admin under a host that is neither loopback's name, nor an address, nor one of `names`."""
    allowed = {name.lower().rstrip(".") for name in names}

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(ADMIN):
            found = HOST.fullmatch(request.host)
            name = found[1].lower().rstrip(".") if found else ""
            if not (_is_local(name) or name in allowed):
                text = f"/admin is not served under the host {name}; start the sandbox with --admin-host {name}\n"
                return web.Response(text=text, status=403)
        return await handler(request)

    return guarded


def _is_local(name: str) -> bool:
    """Whether no page can have this name for its own: loopback's names (RFC 6761 §6.3), and addresses."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
