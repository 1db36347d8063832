"""Programs in web pages of other origins: which addresses they may ask (Fetch standard, "CORS protocol").

Any origin may, without credentials: nothing there goes by a cookie, so that a page learns no more than any other
program. The service is asked for tokens from pages (contract graphql.md, N-603) by applications that have named no
origin. What goes by a cookie, the pages and their forms, stays shut.
"""

from collections.abc import Iterable

from aiohttp import web
from aiohttp.typedefs import Handler

EXPOSED = "Date, Retry-After, WWW-Authenticate"
# Seconds that a browser may go by the answer to a preflight.
REMEMBERED = 3600


def open_to_all(app: web.Application, paths: Iterable[str]) -> None:
    """Pages may read what comes from these paths, and send what has to be asked for before."""
    opened = frozenset(paths)

    @web.middleware
    async def preflights(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or asked is None or request.path not in opened:
            return await handler(request)
        return _allowed(request.headers.get("Access-Control-Request-Headers", ""), asked)

    async def tell(request: web.Request, response: web.StreamResponse) -> None:
        # A signal, not the middleware: a fault may have sent the answer when its handler returns.
        if request.path in opened:
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Access-Control-Expose-Headers"] = EXPOSED

    app.middlewares.append(preflights)
    app.on_response_prepare.append(tell)


def _allowed(names: str, method: str) -> web.Response:
    """Yes to whatever is asked; that the address takes no such method it says by itself."""
    headers = {
        "Access-Control-Allow-Methods": method,
        "Access-Control-Max-Age": str(REMEMBERED),
        "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
    }
    # Named each, because `*` does not stand for Authorization.
    return web.Response(status=204, headers=headers | ({"Access-Control-Allow-Headers": names} if names else {}))
