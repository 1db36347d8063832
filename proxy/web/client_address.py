"""The address of a client: that of its connection, or the one that a trusted proxy names in X-Forwarded-For.

The header is a list to which each proxy adds the address it was called from, so its right end is what our own proxies
wrote, and its left end what anybody may have written. The client is the rightmost address that is no trusted proxy.
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from aiohttp import web
from multidict import istr

X_FORWARDED_FOR = istr("X-Forwarded-For")
HOPS_MAX = 32  # entries of the header that are read, from its right end
KNOWN_MAX = 10_000  # addresses that are kept as read
KEPT_LENGTH_MAX = 200  # characters of a header that is kept as read

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Origin(NamedTuple):
    """Where a request comes from. `group` is what it is counted by: the address, of IPv6 its /64, which one client has
    for itself."""

    address: str
    group: str


UNKNOWN = Origin("unknown", "unknown")  # of a connection without an address, such as a unix socket's


class ClientAddresses:
    """Finds the address of a client. Without trusted proxies X-Forwarded-For is not read."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = tuple(ipaddress.ip_network(each) for each in trusted)
        self._known: dict[str | tuple[str | None, str] | None, Origin] = {}

    def of(self, request: web.BaseRequest) -> Origin:
        """Where the request comes from."""
        remote, forwarded = request.remote, ""
        key: str | tuple[str | None, str] | None = remote
        if self._trusted:
            forwarded = ", ".join(request.headers.getall(X_FORWARDED_FOR, ()))
            key = remote, forwarded
        origin = self._known.get(key)
        if origin is None:
            origin = self._read(remote, forwarded)
            if len(forwarded) <= KEPT_LENGTH_MAX:
                if len(self._known) >= KNOWN_MAX:
                    self._known.clear()
                self._known[key] = origin
        return origin

    def _read(self, remote: str | None, forwarded: str) -> Origin:
        found = _address(remote or "")
        if found is None:
            return UNKNOWN
        entries = forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:] if forwarded else []
        while entries and self._is_trusted(found):
            before = _address(entries.pop())
            if before is None:  # what is no address was not written by a proxy of ours
                break
            found = before
        return Origin(str(found), _group(found))

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def _address(text: str) -> Address | None:
    """`192.0.2.1`, `2001:db8::1`, either with a port behind it, and IPv4 written as IPv6 as IPv4."""
    text = text.strip().partition("%")[0]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _group(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
