"""How a v3 reply looks on the wire: JSON, pretty JSON, JSONP, gzip (contract v3-rest.md §2, §5, §6)."""

import json
import re
from gzip import compress
from typing import Any, NamedTuple

from aiohttp import web
from multidict import istr

from proxy import errors
from proxy.gateway.quota.reservations import QuotaStatus
from proxy.gateway.receipt import Receipt
from proxy.kit import encoding
from proxy.web.ready import Ready
from proxy.web.v3.parameters import Style

ALLOWED = "GET, HEAD, OPTIONS"
# An istr is not folded at every use.
X_CACHE, X_COST, X_USED = istr("X-Cache"), istr("X-Parts-Cost"), istr("X-Parts-Used")
X_LIMIT, X_RESET = istr("X-Parts-Limit"), istr("X-Parts-Reset")
ACCEPT_ENCODING = istr("Accept-Encoding")
GZIP_FROM = 512  # bytes; below, the header costs more than it saves
GZIP_LEVEL = 4  # a third quicker than 6, for a twentieth more bytes

JSON = {"Content-Type": "application/json"}
# A page in another encoding would read a script as its own.
SCRIPT = {"Content-Type": "application/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff"}
GZIPPED = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}


class Written(NamedTuple):
    """A reply's body as it goes over the wire, and the headers that say how to read it."""

    body: bytes
    headers: dict[str, str]


def encode(body: Any, style: Style) -> bytes:
    """The JSON of a reply: compact, or as pretty_print had it.

    Two bodies recorded in 2018 and 2019 without pretty_print are json.dumps(indent=2, sort_keys=True). A JSON reader
    sees no difference, and it would cost: of three recorded bodies of 16 to 19 kB the plain size grows by 48 to 112 %,
    the gzip size by 13 to 27 %, and writing takes 0.5 to 0.7 ms instead of 0.01 ms, because kept items would have to be
    read and written again.
    """
    return encoding.pretty(body) if style.pretty_print else encoding.encode(body)


def written(body: bytes, style: Style, gzip: bool) -> Written:
    """JSON as it is sent to a client, who takes gzip or not."""
    if style.callback:
        # The comment keeps the body from being read as anything but a script; U+2028 ends a line in old engines.
        safe = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        body = b"/**/" + style.callback.encode() + b"(" + safe + b");"
    return squeezed(Written(body, SCRIPT if style.callback else JSON), gzip)


def squeezed(whole: Written, gzip: bool) -> Written:
    """The same as gzip, where the client takes it and it is worth it."""
    if not gzip or len(whole.body) < GZIP_FROM:
        return whole
    return Written(compress(whole.body, GZIP_LEVEL, mtime=0), whole.headers | GZIPPED)


def sent(reply: Written, status: int = 200) -> web.Response:
    """A response of it."""
    return Ready(body=reply.body, status=status, headers=reply.headers)


def account(response: web.Response, receipt: Receipt, standing: QuotaStatus) -> web.Response:
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
    status = 200 if style.suppress_status_codes else error.status
    response = sent(written(error_body(error, style), style, takes_gzip(request)), status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.status == 405:
        response.headers["Allow"] = ALLOWED
    return response


def error_body(error: errors.BridgeError, style: Style) -> bytes:
    """A ClientErrorResponse or ServerErrorResponse."""
    body = {"__class__": error.v3_class, "message": error.message}
    return json.dumps(body, indent=4 if style.pretty_print else 2).encode()


def takes_gzip(request: web.Request) -> bool:
    """Whether Accept-Encoding names gzip, and not to refuse it (RFC 9110 §12.5.3)."""
    accepted = request.headers.get(ACCEPT_ENCODING, "")
    return "gzip" in accepted and re.search(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", accepted) is None
