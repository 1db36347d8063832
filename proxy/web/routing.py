"""Requests with what becomes known of them on their way, such as the address of the client; routes of a port."""

import functools
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from aiohttp import hdrs, web
from multidict import istr

from proxy import errors
from proxy.gateway.core import Client, ResponseMetadata

UNKNOWN = "unknown"  # name in logs and metrics of every path that is not served
READ = (hdrs.METH_GET, hdrs.METH_HEAD)
LAST = "/{uid}"  # of a route that serves any last segment
X_FORWARDED_FOR = istr("X-Forwarded-For")
HOPS_MAX, FORWARDED_MAX = 32, 2_000  # entries of the header that are parsed, and characters, from its right end
RESOLVED_MAX = 1_000  # addresses that are remembered

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ClientAddress(NamedTuple):
    """Address of a client. `group` is the key of rate limits: the address, or the /64 network of an IPv6 address, which
    one client has for itself."""

    address: str
    group: str


NOWHERE = ClientAddress("unknown", "unknown")  # a connection without an address, such as a Unix socket


class ClientAddressResolver:
    """Resolves the address of a client: that of its connection, or of X-Forwarded-For where trusted proxies connect.

    Each proxy appends the address of its own client to the header, so the right end comes from trusted proxies, and the
    left end can be forged. The client is the rightmost address that is not a trusted proxy.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = tuple(ipaddress.ip_network(network) for network in trusted)
        self._resolve = functools.lru_cache(RESOLVED_MAX)(self._resolved)

    def from_request(self, request: web.BaseRequest) -> ClientAddress:
        """Return the address that sent a request."""
        forwarded = ", ".join(request.headers.getall(X_FORWARDED_FOR, ())) if self._trusted else ""
        return self._resolve(request.remote or "", forwarded[-FORWARDED_MAX:])

    def _resolved(self, remote: str, forwarded: str) -> ClientAddress:
        client = parse_address(remote)
        if client is None:
            return NOWHERE
        entries = forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:]
        while entries and self._is_trusted(client):
            before = parse_address(entries.pop())
            if before is None:  # trusted proxies write addresses only
                break
            client = before
        return ClientAddress(str(client), _group(client))

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def parse_address(text: str) -> Address | None:
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


def _group(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    # A provider gives a customer a /64 at least, so that single addresses could be changed at will.
    return str(ipaddress.ip_network((address, 64), strict=False))


class Request(web.BaseRequest):
    """Request, and what becomes known of it for its log line and its response.

    `route` is its path as it was registered, which has no text of a client. Any response has the headers `added`, also
    that of an error. `render` makes the response of an error, where that is not v3's. `failure` is the error.
    """

    id: str
    origin: ClientAddress
    added: dict[str, str]
    route = UNKNOWN
    client: Client | None = None
    metadata: ResponseMetadata | None = None
    render: Callable[[errors.BridgeError, "Request"], web.Response] | None = None
    failure: errors.BridgeError | None = None


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
