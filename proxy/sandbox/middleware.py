"""HTTP middlewares: validation of the Host header, access to /admin, cross-origin requests.

URLs in responses are made from the Host header, so it must be valid. /admin has no authentication and therefore accepts
only known host names: a web page could otherwise reach it by DNS rebinding.
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
    """Respond with 400 to an invalid Host header."""
    host = HOST.fullmatch(request.host)
    if host is None or int(host[2] or 0) > LAST_PORT:
        return web.Response(text="the Host header is not a host with an optional port", status=400)
    return await handler(request)


def restrict_admin(names: Collection[str]) -> Middleware:
    """Respond with 403 to /admin unless the host is a loopback name, an IP address or one of `names`."""
    allowed_hosts = {name.lower().rstrip(".") for name in names}

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(ADMIN):
            host = HOST.fullmatch(request.host)
            name = host[1].lower().rstrip(".") if host else ""
            if not (_is_local(name) or name in allowed_hosts):
                text = f"/admin is not served under the host {name}; start the sandbox with --admin-host {name}\n"
                return web.Response(text=text, status=403)
        return await handler(request)

    return guarded


def _is_local(name: str) -> bool:
    """Return true if the name cannot be rebound: loopback names (RFC 6761 §6.3) and IP addresses."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


EXPOSED_HEADERS = "Date, Retry-After, WWW-Authenticate"
# Seconds that browsers may cache a preflight response.
PREFLIGHT_SECONDS = 3600


def allow_cross_origin(app: web.Application, paths: Iterable[str]) -> None:
    """Allow cross-origin requests without credentials to these paths, preflights included."""
    open_paths = frozenset(paths)

    @web.middleware
    async def preflights(request: web.Request, handler: Handler) -> web.StreamResponse:
        requested_method = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or requested_method is None or request.path not in open_paths:
            return await handler(request)
        return _preflight_response(request.headers.get("Access-Control-Request-Headers", ""), requested_method)

    async def tell(request: web.Request, response: web.StreamResponse) -> None:
        # A signal, because a fault may have sent the response before the handler returns.
        if request.path in open_paths:
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS

    app.middlewares.append(preflights)
    app.on_response_prepare.append(tell)


def _preflight_response(names: str, method: str) -> web.Response:
    """Allow any method and headers; the endpoint itself refuses wrong methods."""
    headers = {
        "Access-Control-Allow-Methods": method,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
    }
    # Listed by name, because `*` does not include Authorization.
    return web.Response(status=204, headers=headers | ({"Access-Control-Allow-Headers": names} if names else {}))
