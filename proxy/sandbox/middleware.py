"""The Host header, from which the sandbox makes every address that it gives: one that is no host is a 400 at the door.

Whatever name leads here will do: a sandbox has as many addresses as its machine. Only /admin, which has no
authentication, wants a name that is known: a web page could lead its own name here (DNS rebinding) and would then be of
the same origin.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?", re.ASCII)
LAST_PORT = 65_535
ADMIN = "/admin"


@web.middleware
async def require_valid_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """400 for a request whose Host nobody could go to."""
    found = HOST.fullmatch(request.host)
    if found is None or int(found[2] or 0) > LAST_PORT:
        return web.Response(text="the Host header is no host with a port", status=400)
    return await handler(request)


def restrict_admin(names: Collection[str]) -> Middleware:
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


EXPOSED_HEADERS = "Date, Retry-After, WWW-Authenticate"
# Seconds that a browser may go by the answer to a preflight.
PREFLIGHT_SECONDS = 3600


def allow_cross_origin(app: web.Application, paths: Iterable[str]) -> None:
    """Pages may read what comes from these paths, and send what has to be asked for before."""
    opened = frozenset(paths)

    @web.middleware
    async def preflights(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or asked is None or request.path not in opened:
            return await handler(request)
        return _preflight_response(request.headers.get("Access-Control-Request-Headers", ""), asked)

    async def tell(request: web.Request, response: web.StreamResponse) -> None:
        # A signal, not the middleware: a fault may have sent the answer when its handler returns.
        if request.path in opened:
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS

    app.middlewares.append(preflights)
    app.on_response_prepare.append(tell)


def _preflight_response(names: str, method: str) -> web.Response:
    """Yes to whatever is asked; that the address takes no such method it says by itself."""
    headers = {
        "Access-Control-Allow-Methods": method,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
    }
    # Named each, because `*` does not stand for Authorization.
    return web.Response(status=204, headers=headers | ({"Access-Control-Allow-Headers": names} if names else {}))
