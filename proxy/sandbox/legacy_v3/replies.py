"""How an answer of the old service looks on the wire: JSON, pretty JSON, JSONP, gzip (§2, §5, §6)."""

import json
import re
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from aiohttp import web

from proxy.sandbox.legacy_v3 import query_string, refusal

_CALLBACK = re.compile(r"[A-Za-z_$][\w$.\[\]]{0,127}", re.ASCII)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_GZIP_FROM = 512
_PAGE = "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"


class Style(NamedTuple):
    """How a caller wants its answers written."""

    pretty: bool = False
    callback: str | None = None
    always_ok: bool = False


def style(given: query_string.QueryString) -> Style:
    """The style that a request asks for."""
    callback = given.one("callback") or None
    if callback and not _CALLBACK.fullmatch(callback):
        raise refusal.bad("callback is not the name of a function")
    return Style(given.flag("pretty_print"), callback, given.flag("suppress_status_codes"))


def answered(body: dict[str, Any], wanted: Style, request: web.Request) -> web.Response:
    """What was asked for."""
    return _response(_written(body, 4 if wanted.pretty else 2), 200, wanted, request)


def refused(why: refusal.Refusal, wanted: Style, request: web.Request) -> web.Response:
    """An error, in the JSON of every other answer (§5)."""
    name = "ClientErrorResponse" if why.status < 500 else "ServerErrorResponse"
    body = _written({"__class__": name, "message": why.message}, 4 if wanted.pretty else 2)
    return _response(body, 200 if wanted.always_ok else why.status, wanted, request)


def page(status: int) -> web.Response:
    """What stands before the service says it in HTML."""
    return web.Response(
        text=_PAGE.format(f"{status} {HTTPStatus(status).phrase}"), status=status, content_type="text/html"
    )


def _written(body: dict[str, Any], indent: int) -> bytes:
    """Keys in alphabetical order, everything beyond ASCII escaped, `indent` spaces deep: 2, and 4 for pretty_print, as
    the bodies on record are."""
    if indent == 2:
        try:
            plain = orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
            return _BEYOND_ASCII.sub(_escaped, plain).encode("ascii")
        except TypeError:  # a reference may be a number, or half a character, that orjson does not write
            pass
    return json.dumps(body, indent=indent, sort_keys=True).encode()


def _escaped(character: re.Match[str]) -> str:
    return json.dumps(character[0])[1:-1]


def _response(body: bytes, status: int, wanted: Style, request: web.Request) -> web.Response:
    kind = "application/json"
    if wanted.callback:
        body, kind = b"%s(%s);" % (wanted.callback.encode(), body), "application/javascript"
    response = web.Response(body=body, status=status, content_type=kind)
    if len(body) >= _GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
    return response
