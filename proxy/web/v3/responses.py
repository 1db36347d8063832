"""Rendering of v3 responses: JSON, JSONP, gzip, usage headers and errors (contract v3-rest.md §2, §5, §6)."""

import gzip as gzip_module
import json
import re
from typing import Any, NamedTuple

from aiohttp import web
from multidict import istr

from proxy import errors
from proxy.gateway.quota.reservations import QuotaStatus
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit.aiohttp_internals.response import PreparedResponse
from proxy.kit.json_encoder import JsonEncoder
from proxy.parsing.request_parameters import ResponseFormat

ALLOWED = "GET, HEAD, OPTIONS"
# An istr saves the case folding at every use.
X_CACHE, X_COST, X_USED = istr("X-Cache"), istr("X-Parts-Cost"), istr("X-Parts-Used")
X_LIMIT, X_RESET = istr("X-Parts-Limit"), istr("X-Parts-Reset")
ACCEPT_ENCODING = istr("Accept-Encoding")
GZIP_FROM = 512  # bytes; a shorter body hardly shrinks
GZIP_LEVEL = 4  # a third faster than 6, with a twentieth more bytes

JSON = {"Content-Type": "application/json"}
# Without a charset a browser decodes a script in the encoding of the page that includes it.
SCRIPT = {"Content-Type": "application/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff"}
GZIPPED = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}

_encode = JsonEncoder().encode


class EncodedBody(NamedTuple):
    """Body of a response as it is sent, and the headers that describe it."""

    body: bytes
    headers: dict[str, str]


def encode_json(body: Any, response_format: ResponseFormat) -> bytes:
    """Encode as JSON: compact, or as v3's pretty_print, with sorted keys and non-ASCII characters escaped.

    Two bodies recorded in 2018 and 2019 without pretty_print are json.dumps(indent=2, sort_keys=True). A JSON reader
    sees no difference, and it would cost: of three recorded bodies of 16 to 19 kB the plain size grows by 48 to 112 %,
    the gzip size by 13 to 27 %, and writing takes 0.5 to 0.7 ms instead of 0.01 ms, because cached items would have to
    be decoded and encoded again.
    """
    compact = _encode(body)
    return (
        json.dumps(json.loads(compact), sort_keys=True, indent=4).encode() if response_format.pretty_print else compact
    )


def encode_body(body: bytes, response_format: ResponseFormat, gzip: bool) -> EncodedBody:
    """Wrap JSON for JSONP if requested, and compress it if the client accepts `gzip`."""
    if response_format.callback:
        # The comment keeps a browser from sniffing another type; U+2028 ends a line in old JavaScript engines.
        safe = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        body = b"/**/" + response_format.callback.encode() + b"(" + safe + b");"
    return compress(EncodedBody(body, SCRIPT if response_format.callback else JSON), gzip)


def compress(whole: EncodedBody, gzip: bool) -> EncodedBody:
    """Compress a body with gzip, if the client accepts it and the body is long enough."""
    if not gzip or len(whole.body) < GZIP_FROM:
        return whole
    # mtime=0: equal bodies give equal bytes, whenever they are compressed.
    return EncodedBody(gzip_module.compress(whole.body, GZIP_LEVEL, mtime=0), whole.headers | GZIPPED)


def head(body: EncodedBody) -> str:
    """The beginning of the head of a 200: all fields that are the same in each response with this body."""
    return "".join(["HTTP/1.1 200 OK\r\n", *(f"{name}: {value}\r\n" for name, value in body.headers.items())])


def response(body: EncodedBody, status: int = 200) -> web.Response:
    """Response with an encoded body."""
    return PreparedResponse(body=body.body, status=status, headers=body.headers)


def add_usage_headers(response: web.Response, metadata: ResponseMetadata, status: QuotaStatus) -> web.Response:
    """Add the request's cache status and cost, and the client's quota: in parts, and seconds to its reset."""
    response.headers.update(usage_headers(metadata, status))
    return response


def usage_headers(metadata: ResponseMetadata, status: QuotaStatus) -> dict[str, str]:
    """The headers of `add_usage_headers`."""
    headers: dict[str, str] = {}
    if metadata.source is not None:
        headers[X_CACHE] = metadata.source
    headers[X_COST] = str(metadata.cost)
    headers[X_USED] = str(status.used)
    if status.limit is not None:
        headers[X_LIMIT] = str(status.limit)
    if status.reset is not None:
        headers[X_RESET] = str(status.reset)
    return headers


def error_response(error: errors.BridgeError, response_format: ResponseFormat, request: web.Request) -> web.Response:
    """Error response as v3's. suppress_status_codes makes it a 200, because JSONP pages cannot read errors."""
    status = 200 if response_format.suppress_status_codes else error.status
    body = encode_body(error_body(error, response_format), response_format, accepts_gzip(request))
    rendered = response(body, status)
    if error.retry_after is not None:
        rendered.headers["Retry-After"] = str(error.retry_after)
    if error.status == 405:
        rendered.headers["Allow"] = ALLOWED
    return rendered


def error_body(error: errors.BridgeError, response_format: ResponseFormat) -> bytes:
    """A ClientErrorResponse or ServerErrorResponse, indented by two spaces as the recorded ones."""
    body = {"__class__": error.v3_class, "message": error.message}
    return json.dumps(body, indent=4 if response_format.pretty_print else 2).encode()


def accepts_gzip(request: web.Request) -> bool:
    """Return whether Accept-Encoding names gzip with a quality above 0 (RFC 9110 §12.5.3)."""
    accepted = request.headers.get(ACCEPT_ENCODING, "")
    # The substring first: most clients name gzip without a quality, and need no regular expression.
    return "gzip" in accepted and re.search(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", accepted) is None
