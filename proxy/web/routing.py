"""Requests with what becomes known of them on their way, such as the address of the client; their bodies; routes of a
port."""

import asyncio
import functools
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple
from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from multidict import istr

from proxy import errors
from proxy.gateway.core import Client, ResponseMetadata

READ = (hdrs.METH_GET, hdrs.METH_HEAD)
LAST = "/{uid}"  # of a route that serves any last segment
X_FORWARDED_FOR = istr("X-Forwarded-For")
HOPS_MAX, FORWARDED_MAX = 32, 2_000  # entries of the header that are parsed, and characters, from its right end
RESOLVED_MAX = 1_000  # addresses that are remembered

BODY_BYTES = 1_048_576  # of a body, decompressed
FORM_BYTES, FORM_FIELDS = 16_384, 20
BODY_SECONDS = 20.0  # in which a body is sent
UNREAD_BYTES = 33_554_432  # of all bodies that are under way
RETRY_SECONDS = 1
CONTINUE = "100-continue"  # a client that waits until its body is wanted
# Compared and not parsed, and decoded as nothing else: some codecs that a sender can name take minutes.
_FORM = re.compile(r'application/x-www-form-urlencoded *(; *charset="?utf-?8"?)? *', re.IGNORECASE)


class ClientAddress(NamedTuple):
    """Address of a client. `group` is the key of rate limits: the address, or the /64 network of an IPv6 address, which
    one client has for itself."""

    address: str
    group: str


class ClientAddressResolver:
    """Resolves the address of a client: that of its connection, or of X-Forwarded-For where trusted proxies connect.

    Each proxy appends the address of its own client to the header, so the right end comes from trusted proxies, and the
    left end can be forged. The client is the rightmost address that is not a trusted proxy.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = tuple(ipaddress.ip_network(network) for network in trusted)
        self._resolve = functools.lru_cache(RESOLVED_MAX)(self._resolved)

    def from_request(self, request: web.BaseRequest) -> ClientAddress:
        forwarded = ", ".join(request.headers.getall(X_FORWARDED_FOR, ())) if self._trusted else ""
        return self._resolve(request.remote or "", forwarded[-FORWARDED_MAX:])

    def _resolved(self, remote: str, forwarded: str) -> ClientAddress:
        client = _parsed(remote)
        if client is None:
            return ClientAddress("unknown", "unknown")  # such as of a Unix socket
        entries = forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:]
        while entries and any(client in network for network in self._trusted):
            before = _parsed(entries.pop())
            if before is None:  # trusted proxies write addresses only
                break
            client = before
        # A provider gives a customer a /64 at least, so that single addresses could be changed at will.
        group = client if client.version == 4 else ipaddress.ip_network((client, 64), strict=False)
        return ClientAddress(str(client), str(group))


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse `192.0.2.1` or `2001:db8::1`, with or without a port. An IPv4-mapped IPv6 address becomes IPv4."""
    # A zone index, as in fe80::1%eth0, names an interface of this machine.
    text = text.strip().partition("%")[0]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


class Request(web.BaseRequest):
    """Request, and what becomes known of it for its log line and its response.

    `route` is its path as it was registered, which has no text of a client. Any response has the headers `added`, also
    that of an error. `render` makes the response of an error, where that is not v3's. `failure` is the error.
    """

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

    def __init__(self) -> None:
        self._unread = 0  # bytes of bodies that are under way

    async def read(self, request: web.BaseRequest, bytes_max: int = BODY_BYTES) -> bytes:
        """Return a body. Raises ContentTooLarge, RequestTimeout, TooManyConnections where all take too much, and
        BadRequest where the client ended it early."""
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
        """Return the fields of a form. Raises UnsupportedMediaType for one that is not plain and in UTF-8, and what
        `read` raises."""
        sent = request.headers.getall(hdrs.CONTENT_TYPE, ())
        if hdrs.CONTENT_ENCODING in request.headers or not all(map(_FORM.fullmatch, sent)):
            raise errors.UnsupportedMediaType(
                "a form is sent as application/x-www-form-urlencoded, in UTF-8 and not compressed"
            )
        body = await self.read(request, FORM_BYTES)
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS))
        except ValueError as error:
            raise errors.BadRequest(f"the form has more than {FORM_FIELDS} fields, or is not in UTF-8") from error


Handler = Callable[[Request], Awaitable[web.StreamResponse]]


class Routes:
    """Handlers by path and method. A path is served with a trailing slash, too; two look-ups in a dict find it, however
    long it is."""

    def __init__(self) -> None:
        self._exact: dict[str, tuple[str, dict[str, Handler]]] = {}
        self._below: dict[str, tuple[str, dict[str, Handler]]] = {}  # by the path before the last segment

    def add(self, path: str, handler: Handler, *methods: str) -> None:
        """Let a handler serve some methods of a path, which may end in `/{uid}`; without methods, all others."""
        routes, key = (self._below, path.removesuffix(LAST)) if path.endswith(LAST) else (self._exact, path)
        _, handlers = routes.setdefault(key, (path, {}))
        handlers.update(dict.fromkeys(methods or (hdrs.METH_ANY,), handler))

    def find(self, request: Request) -> Handler | None:
        """Return the handler of a request, which learns its route; None if its path is not served. Raises
        MethodNotAllowed."""
        path = request.rel_url.path_safe.removesuffix("/")
        found = self._exact.get(path)
        if found is None:
            parent, _, last = path.rpartition("/")
            found = self._below.get(parent) if last else None
        if found is None:
            return None
        request.route, handlers = found
        handler = handlers.get(request.method) or handlers.get(hdrs.METH_ANY)
        if handler is None:
            raise errors.MethodNotAllowed.of(request.method)
        return handler
