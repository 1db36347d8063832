"""How a v3 reply looks on the wire: JSON, pretty JSON, JSONP, gzip (contract v3-rest.md §2, §5, §6)."""

import json
import re
from typing import Any

from aiohttp import web
from multidict import istr

from proxy import errors
from proxy.gateway.quota import Standing
from proxy.gateway.receipt import Receipt
from proxy.kit import encoding
from proxy.web.v3.parameters import Style

ALLOWED = "GET, HEAD, OPTIONS"
# An istr is not folded at every use.
X_CACHE, X_COST, X_USED = istr("X-Cache"), istr("X-Parts-Cost"), istr("X-Parts-Used")
X_LIMIT, X_RESET = istr("X-Parts-Limit"), istr("X-Parts-Reset")
GZIP_FROM = 512  # bytes; below, the header costs more than it saves


def encode(body: Any, style: Style) -> bytes:
    """The JSON of a reply."""
    return encoding.pretty(body) if style.pretty_print else encoding.encode(body)


def ok(body: bytes, style: Style, request: web.Request) -> web.Response:
    """A 200."""
    return _respond(body, 200, style, request)


def account(response: web.Response, receipt: Receipt, standing: Standing) -> web.Response:
    """The same with what it came to, and how the client stands, for who reads headers: in parts, and seconds to the
    reset."""
    headers = response.headers
    if receipt.source is not None:
        headers[X_CACHE] = receipt.source
    headers[X_COST] = str(receipt.cost)
    headers[X_USED] = str(standing.used)
    if standing.limit is not None:
        headers[X_LIMIT] = str(standing.limit)
    if standing.reset is not None:
        headers[X_RESET] = str(standing.reset)
    return response


def failed(error: errors.BridgeError, style: Style, request: web.Request) -> web.Response:
    """An error in v3's shape, two spaces deep as the recorded one. JSONP pages see it as a 200 if they ask to."""
    response = _respond(error_body(error, style), 200 if style.suppress_status_codes else error.status, style, request)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.status == 405:
        response.headers["Allow"] = ALLOWED
    return response


def error_body(error: errors.BridgeError, style: Style) -> bytes:
    """A ClientErrorResponse or ServerErrorResponse."""
    body = {"__class__": error.v3_class, "message": error.message}
    return json.dumps(body, indent=4 if style.pretty_print else 2).encode()


def _respond(body: bytes, status: int, style: Style, request: web.Request) -> web.Response:
    if style.callback:
        # The comment keeps the body from being read as anything but a script; U+2028 ends a line in old engines.
        safe = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        body = b"/**/" + style.callback.encode() + b"(" + safe + b");"
    response = web.Response(
        body=body,
        status=status,
        content_type="application/javascript" if style.callback else "application/json",
        charset="utf-8" if style.callback else None,  # a page in another encoding would read it as its own
        headers={"X-Content-Type-Options": "nosniff"} if style.callback else None,
    )
    squeeze(response, len(body), request)
    return response


def squeeze(response: web.Response, size: int, request: web.Request) -> None:
    """Have a body of so many bytes sent as gzip, where that is worth it and the client takes it."""
    if size >= GZIP_FROM and _takes_gzip(request.headers.get("Accept-Encoding", "")):
        response.enable_compression(web.ContentCoding.gzip)
        response.headers["Vary"] = "Accept-Encoding"


def _takes_gzip(accepted: str) -> bool:
    """Whether Accept-Encoding names gzip, and not to refuse it (RFC 9110 §12.5.3)."""
    if "gzip" not in accepted:
        return False
    return re.search(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", accepted) is None
