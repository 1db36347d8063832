"""Rendering of v3 responses: JSON, JSONP, gzip, usage headers and errors (contract v3-rest.md §2, §5, §6)."""

import math
import re

from aiohttp import web
from multidict import istr

from proxy import errors
from proxy.gateway.core import ResponseMetadata
from proxy.model import QuotaStatus
from proxy.v3.encoding import EncodedBody, encode_body, error_body
from proxy.v3.parsing.request_parameters import ResponseFormat
from proxy.v4 import wrapper

ALLOWED = "GET, HEAD, OPTIONS"
# An istr saves the case folding at every use.
AGE = istr("Age")
X_CACHE, X_COST, X_USED = istr("X-Cache"), istr("X-Parts-Cost"), istr("X-Parts-Used")
X_LIMIT, X_RESET = istr("X-Parts-Limit"), istr("X-Parts-Reset")
ACCEPT_ENCODING = istr("Accept-Encoding")


def response(body: EncodedBody, status: int = 200) -> web.Response:
    return web.Response(body=body.body, status=status, headers=body.headers)


def usage_headers(metadata: ResponseMetadata, status: QuotaStatus, age: float = -math.inf) -> dict[str, str]:
    """Return the request's cache status and cost, the client's quota, in parts and seconds to its reset, and the `age`
    of the oldest result in seconds (-inf: there is none)."""
    headers: dict[str, str] = {}
    if metadata.source is not None:
        headers[X_CACHE] = metadata.source
    if age >= 0:
        headers[AGE] = str(int(age))
    headers[X_COST] = str(metadata.cost)
    headers[X_USED] = str(status.used)
    if status.limit is not None:
        headers[X_LIMIT] = str(status.limit)
    if status.reset is not None:
        headers[X_RESET] = str(status.reset)
    return headers


def error_response(
    error: errors.BridgeError, response_format: ResponseFormat, request: web.BaseRequest
) -> web.Response:
    """Error response as v3's. suppress_status_codes makes it a 200, because JSONP pages cannot read errors."""
    status = 200 if response_format.suppress_status_codes else error.status
    rendered_error = error_body(error, response_format, has_class=not request.path.startswith(wrapper.PREFIX))
    body = encode_body(rendered_error, response_format, accepts_gzip(request))
    rendered = response(body, status)
    if error.retry_after is not None:
        rendered.headers["Retry-After"] = str(error.retry_after)
    if error.status == 405:
        rendered.headers["Allow"] = ALLOWED
    return rendered


def accepts_gzip(request: web.BaseRequest) -> bool:
    """Return whether Accept-Encoding names gzip with a quality above 0 (RFC 9110 §12.5.3)."""
    accepted = request.headers.get(ACCEPT_ENCODING, "").lower()
    # The substring first: most clients name gzip without a quality, and need no regular expression.
    return "gzip" in accepted and re.search(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", accepted) is None
