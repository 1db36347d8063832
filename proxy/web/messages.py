"""HTTP messages. Requests with what becomes known of them on their way, their bodies, and routes of a port; responses:
a fast one with status 200, usage headers, and v3's errors (contract v3-rest.md §5, §6).
"""

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http import SERVER_SOFTWARE
from multidict import istr

from proxy import errors, v4
from proxy.gateway import Client, Gateway, ResponseMetadata
from proxy.v3.encoding import EncodedBody, Parameters, ResponseFormat, encode_body, error_body

READ = (hdrs.METH_GET, hdrs.METH_HEAD)
LAST = "/{uid}"  # of a route that serves any last segment

BODY_BYTES = 1_048_576  # of a body, decompressed
FORM_BYTES, FORM_FIELDS = 16_384, 20
BODY_SECONDS = 20.0  # in which a body is sent
UNREAD_BYTES = 33_554_432  # of all bodies that are under way
RETRY_SECONDS = 1  # after bodies or connections were too many
CONTINUE = "100-continue"  # a client that waits until its body is wanted
# Compared and not parsed, and decoded as nothing else: some codecs that a sender can name take minutes.
_FORM = re.compile(r'application/x-www-form-urlencoded *(; *charset="?utf-?8"?)? *', re.IGNORECASE)
ALLOWED = "GET, HEAD, OPTIONS"
AGE, X_CACHE, X_COST = "Age", "X-Cache", "X-Parts-Cost"
X_USED, X_LIMIT, X_RESET = "X-Parts-Used", "X-Parts-Limit", "X-Parts-Reset"
ACCEPT_ENCODING, TOKEN = istr("Accept-Encoding"), istr("token")

_date = lru_cache(maxsize=1)(partial(formatdate, usegmt=True))  # of a second: many responses have the same


class ClientAddress(NamedTuple):
    """Address of a client, and the `group` that limits count: the address, or the /64 network of an IPv6 one."""

    address: str
    group: str


class Request(web.BaseRequest):
    """Request, and what becomes known of it for its log line and its response: `route` is its path as it was
    registered, without text of a client; `added` are headers of any response, also that of the error `failure`, which
    `render` makes where it is not v3's."""

    id: str
    origin: ClientAddress
    added: dict[str, str]
    route = "unknown"  # in logs and metrics of every path that is not served
    client: Client | None = None
    metadata: ResponseMetadata | None = None
    render: Callable[[errors.BridgeError, "Request"], web.Response] | None = None
    failure: errors.BridgeError | None = None


class RequestBodies:
    """Bodies of requests: each has a bound and BODY_SECONDS, and those that are under way have one bound together."""

    _unread = 0  # bytes of bodies that are under way

    async def read(self, request: web.BaseRequest, bytes_max: int = BODY_BYTES) -> bytes:
        """Return a body. Raises ContentTooLarge, RequestTimeout, BadRequest if it is broken, TooManyConnections."""
        too_long = f"the body is longer than {bytes_max} bytes"
        if (request.content_length or 0) > bytes_max:
            raise errors.ContentTooLarge(too_long)
        if request.headers.get(hdrs.EXPECT, "").lower() == CONTINUE:
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # nothing of the response has been sent
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in request.content.iter_any():
                    body += piece
                    self._unread += len(piece)
                    if len(body) > bytes_max:
                        raise errors.ContentTooLarge(too_long)
                    if self._unread > UNREAD_BYTES:
                        raise errors.TooManyConnections("too many bodies are being sent", retry_after=RETRY_SECONDS)
        except TimeoutError:
            raise errors.RequestTimeout(f"the body was not sent within {BODY_SECONDS:.0f} seconds") from None
        except (ConnectionError, web.RequestPayloadError) as error:
            raise errors.BadRequest("the body is broken, or ended early") from error
        finally:
            self._unread -= len(body)
        return bytes(body)

    async def form(self, request: web.BaseRequest) -> dict[str, str]:
        """Return the fields of a form. Raises UnsupportedMediaType unless it is plain UTF-8, and what `read` raises."""
        sent = request.headers.getall(hdrs.CONTENT_TYPE, ())
        if hdrs.CONTENT_ENCODING in request.headers or not all(map(_FORM.fullmatch, sent)):
            needed = "a form is sent as application/x-www-form-urlencoded, in UTF-8 and not compressed"
            raise errors.UnsupportedMediaType(needed)
        body = await self.read(request, FORM_BYTES)
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS))
        except ValueError as error:
            raise errors.BadRequest(f"the form has more than {FORM_FIELDS} fields, or is not in UTF-8") from error


Handler = Callable[[Request], Awaitable[web.StreamResponse]]


class Routes(dict[str, dict[str, Handler]]):
    """Handlers by path, with or without a trailing slash, and method; two look-ups find one, however long a path is."""

    def add(self, path: str, handler: Handler, *methods: str) -> None:
        """Let a handler serve some methods of a path, which may end in `/{uid}`; without methods, all."""
        self.setdefault(path, {}).update(dict.fromkeys(methods or (hdrs.METH_ANY,), handler))

    def find(self, request: Request) -> Handler | None:
        """Return the handler of a request, which learns its route, or None. Raises MethodNotAllowed."""
        path = request.rel_url.path_safe.removesuffix("/")
        if path not in self:
            parent, _, last = path.rpartition("/")
            path = f"{parent}{LAST}" if last else ""
        handlers = self.get(path)
        if handlers is None:
            return None
        request.route = path
        handler = handlers.get(request.method) or handlers.get(hdrs.METH_ANY)
        if handler is None:
            raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
        return handler


class PlainResponse(web.StreamResponse):
    """Response with status 200 to a GET in HTTP/1.1, without all that aiohttp's does for others. Names and values of
    headers have no text of clients, and no line breaks."""

    # Plain values instead of properties.
    status: Any = 200
    keep_alive: Any = True
    headers: Any = None

    def __init__(self, body: EncodedBody) -> None:  # aiohttp's is not called
        self.headers, self._content = dict(body.headers), body.body

    def force_close(self) -> None:
        self.keep_alive = False

    async def prepare(self, request: web.BaseRequest) -> None:
        self.keep_alive = self.keep_alive and request.keep_alive
        self._request = request

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002 - of aiohttp
        fields = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        closing = "" if self.keep_alive else "Connection: close\r\n"
        size, date = len(self._content), _date(int(time.time()))
        last = f"Content-Length: {size}\r\nDate: {date}\r\nServer: {SERVER_SOFTWARE}\r\n{closing}\r\n"
        head = f"HTTP/1.1 200 OK\r\n{fields}{last}"
        await self._request.writer.write_eof(head.encode() + self._content)


def response(request: Request, body: EncodedBody) -> web.StreamResponse:
    """Return a response with status 200."""
    if request.method == hdrs.METH_GET and request.version == HttpVersion11:
        return PlainResponse(body)
    return web.Response(body=body.body, headers=body.headers)


def usage_headers(
    gateway: Gateway, client: Client, metadata: ResponseMetadata, error: errors.BridgeError | None = None
) -> dict[str, str]:
    """Return cache status, cost and age of a response, and the client's quota, in parts and seconds to its reset."""
    status = gateway.quota_status(client)
    age = int(gateway.clock.monotonic() - metadata.stored) if error is None and metadata.stored < math.inf else None
    # Where the plan has no parts the end of the period brings none.
    is_never_reset = isinstance(error, errors.QuotaExhausted) and error.retry_after is None
    named = {X_CACHE: metadata.source, AGE: age, X_COST: metadata.cost, X_USED: status.used, X_LIMIT: status.limit}
    named[X_RESET] = None if is_never_reset else status.reset
    return {name: str(value) for name, value in named.items() if value is not None}


def error_response(error: errors.BridgeError, request: Request) -> web.Response:
    """Return an error as v3's. suppress_status_codes makes it a 200, because JSONP pages cannot read errors."""
    try:
        response_format = ResponseFormat.of(Parameters(request.raw_path))
    except errors.BridgeError:
        # The format itself may be the mistake, such as an invalid callback.
        response_format = ResponseFormat()
    status = 200 if response_format.suppress_status_codes else error.status
    rendered_error = error_body(error, response_format, has_class=not request.path.startswith(v4.PREFIX))
    body = encode_body(rendered_error, response_format, accepts_gzip(request))
    rendered = web.Response(body=body.body, status=status, headers=body.headers)
    if error.status == 405:
        rendered.headers[hdrs.ALLOW] = ALLOWED
    return with_retry(rendered, error)


def with_retry(response: web.Response, error: errors.BridgeError | None) -> web.Response:
    """Add when to try again."""
    if error is not None and error.retry_after is not None:
        response.headers[hdrs.RETRY_AFTER] = str(error.retry_after)
    return response


def accepts_gzip(request: Request) -> bool:
    """Return whether Accept-Encoding names gzip with a quality above 0 (RFC 9110 §12.5.3)."""
    accepted = request.headers.get(ACCEPT_ENCODING, "").lower()
    # The substring first: most clients name gzip without a quality.
    return "gzip" in accepted and re.search(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", accepted) is None
