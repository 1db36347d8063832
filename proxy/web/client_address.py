"""Address of a client: the peer of its connection, or the address in X-Forwarded-For if that peer is a trusted proxy.

Each proxy appends the address of its own client to the header, so the right end comes from trusted proxies, and the
left end can be forged. The client is the rightmost address that is not a trusted proxy.
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from aiohttp import web
from multidict import istr

X_FORWARDED_FOR = istr("X-Forwarded-For")
HOPS_MAX = 32  # entries of the header that are parsed, from its right end
CACHE_MAX = 10_000  # resolved addresses in the cache
CACHED_LENGTH_MAX = 200  # characters of a header that is cached

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ClientAddress(NamedTuple):
    """Address of a client. `group` is the key of rate limits: the address, or the /64 network of an IPv6 address, which
    one client has for itself."""

    address: str
    group: str


UNKNOWN = ClientAddress("unknown", "unknown")  # a connection without an address, such as a Unix socket


class ClientAddressResolver:
    """Resolves the address of a client. Without trusted proxies X-Forwarded-For is ignored."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = tuple(ipaddress.ip_network(network) for network in trusted)
        self._cache: dict[str | tuple[str | None, str] | None, ClientAddress] = {}

    def from_request(self, request: web.BaseRequest) -> ClientAddress:
        """Return the address that sent a request."""
        remote = request.remote
        forwarded = ", ".join(request.headers.getall(X_FORWARDED_FOR, ())) if self._trusted else ""
        key = (remote, forwarded) if forwarded else remote
        origin = self._cache.get(key)
        if origin is None:
            origin = self._resolve(remote, forwarded)
            # Long headers are forged or rare; without a bound on length the cache had none on memory.
            if len(forwarded) <= CACHED_LENGTH_MAX:
                if len(self._cache) >= CACHE_MAX:
                    self._cache.clear()
                self._cache[key] = origin
        return origin

    def _resolve(self, remote: str | None, forwarded: str) -> ClientAddress:
        client = parse_address(remote or "")
        if client is None:
            return UNKNOWN
        # From the right end, which trusted proxies wrote; a client can send a header of any length.
        entries = forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:] if forwarded else []
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
