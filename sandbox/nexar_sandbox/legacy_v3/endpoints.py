"""HTTP endpoints of the legacy v3 service under both prefixes: errors and formats (JSON, JSONP, gzip)."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import web

from nexar_sandbox import journal, pages
from nexar_sandbox.legacy_v3 import query_string, service

PREFIXES = ("/v3", "/api/v3")
# Longer request targets were refused by the server in front (contract v3-rest.md §6).
MAX_TARGET = 8_192
_CLASSES = {"parts": "Part", "brands": "Brand", "categories": "Category", "sellers": "Seller"}

Resolver = Callable[[service.LegacyRequest, web.Request], dict[str, Any]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ResponseStyle(NamedTuple):
    pretty: bool = False
    callback: str | None = None
    always_ok: bool = False


class LegacyEndpoints:
    def __init__(self, served: service.LegacyService, request_journal: journal.RequestJournal) -> None:
        self._served, self._journal = served, request_journal

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register paths with and without a trailing slash; unknown paths get a 404 in JSON."""
        resolvers = self._resolvers()
        for prefix in PREFIXES:
            for path, resolve in resolvers.items():
                handler = self._over(path, resolve)
                router.add_get(prefix + path, handler)
                router.add_get(f"{prefix}{path}/", handler)
            router.add_route("*", prefix, self._over("", _nothing_there))
            router.add_route("*", prefix + "/{rest:.*}", self._over("", _nothing_there))
        router.add_route("*", "/api/{rest:.*}", self._over("", _nothing_there))

    def _resolvers(self) -> dict[str, Resolver]:
        served = self._served
        handlers: dict[str, Resolver] = {"/parts/match": lambda caller, _: served.match(caller)}
        for path, name in _CLASSES.items():
            handlers |= _of_class(served, f"/{path}", name)
        return {**handlers, "/seller/{uid}": handlers["/sellers/{uid}"]}

    def _over(self, path: str, resolve: Resolver) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            entry = self._journal.begin("legacy")
            entry.operation = path or None
            try:
                response = self._respond(request, resolve)
                entry.status = response.status
            finally:
                self._journal.finish(entry, is_complete=entry.status is not None)
            return response

        return handle

    def _respond(self, request: web.Request, resolve: Resolver) -> web.Response:
        if len(request.raw_path) > MAX_TARGET:
            return web.Response(text=pages.gateway_error(414), status=414, content_type="text/html")
        parameters, style = query_string.QueryString(request.raw_path), ResponseStyle()
        try:
            style = response_style(parameters)
            return _response(resolve(self._served.caller(parameters), request), 200, style, request)
        except query_string.LegacyError as error:
            name = "ClientErrorResponse" if error.status < 500 else "ServerErrorResponse"
            status = 200 if style.always_ok else error.status
            return _response({"__class__": name, "message": error.message}, status, style, request)


def _of_class(served: service.LegacyService, path: str, name: str) -> dict[str, Resolver]:
    return {
        f"{path}/search": lambda caller, _: served.search(caller, name),
        f"{path}/get_multi": lambda caller, _: served.get_multi(caller, name),
        f"{path}/{{uid}}": lambda caller, request: served.get_one(caller, name, request.match_info["uid"]),
    }


def _nothing_there(_caller: service.LegacyRequest, request: web.Request) -> dict[str, Any]:
    if request.method not in ("GET", "HEAD"):
        raise query_string.LegacyError(405, "Method not allowed")
    raise query_string.LegacyError(404, "Resource not found")


_CALLBACK = re.compile(r"\?|[A-Za-z_$][\w$.\[\]]{0,127}", re.ASCII)
_GZIP_FROM = 512


def response_style(parameters: query_string.QueryString) -> ResponseStyle:
    callback = parameters.one("callback") or None
    if callback and not _CALLBACK.fullmatch(callback):
        raise query_string.bad_request("callback is not the name of a function")
    return ResponseStyle(parameters.flag("pretty_print"), callback, parameters.flag("suppress_status_codes"))


def _response(content: dict[str, Any], status: int, style: ResponseStyle, request: web.Request) -> web.Response:
    """JSON as in recorded bodies: sorted keys, escaped non-ASCII, and an indent of 2, or 4 for pretty_print."""
    body = json.dumps(content, indent=4 if style.pretty else 2, sort_keys=True).encode()
    kind = "application/json"
    if style.callback:
        body, kind = b"%s(%s)" % (style.callback.encode(), body), "application/javascript"
    response = web.Response(body=body, status=status, content_type=kind)
    if len(body) >= _GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
    return response
