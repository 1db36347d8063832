"""Encoded responses: cache of those that were hits, and coalescing of equal requests in flight.

Of a request that comes a third time, or while an equal one is executed, the parameters are not parsed.

A response is stored when all its results were cache hits, until the first of them expires; compressed and uncompressed
responses are separate entries. Keys are digests of the request target, and of whole request heads that ask for the
same, because these hold the API key; with a head its target is kept for logs and pages, without the key. A request in
flight is found by its target itself.

Requests that are not equal but have equal queries are coalesced further down, query by query
(gateway/cache/coalescing.py), after they were parsed and planned. A request that waits here for longer than
JOIN_SECONDS continues there, where second attempts and stale entries help against a stalled upstream request.
"""

import asyncio
import hashlib
from collections import OrderedDict
from typing import NamedTuple

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.cache import entries
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit.clock import Clock
from proxy.kit.expiring_cache import ExpiringCache
from proxy.v3.encoding import EncodedBody
from proxy.web.v3 import responses

Key = tuple[bytes, bool]  # digest of the request target, and whether the client accepts gzip

HEADS_MAX = 4_096  # request heads that are linked with an entry, the oldest is dropped; 350 bytes each, and the target
JOIN_SECONDS = 0.2  # less than coalescing.stall_seconds, after which a request counts as stalled
RequestKey = tuple[str, bool]  # request target, which names the API key, and whether the client accepts gzip


class EncodedResponse(NamedTuple):
    """Cache entry: the body, the beginning of the response head, its client, and the metadata of the hit that it was
    stored from, which are those of each that it serves."""

    body: EncodedBody
    head: str
    client: Client
    metadata: ResponseMetadata


class RequestLabels(NamedTuple):
    """What logs and pages say of a request: its route, its target without the API key, its User-Agent; `forwarded` is
    its X-Forwarded-For, where proxies are trusted."""

    route: str
    target: str
    user_agent: str
    forwarded: str


class RequestHead(NamedTuple):
    """What the bytes of a request head ask for."""

    key: Key
    labels: RequestLabels


class EncodedResponseCache:
    """Cache of at most `size` bytes; 0 switches it off."""

    def __init__(self, size: int, clock: Clock) -> None:
        # Not a dict: finding the first key of one takes as long as it has had keys before it that were deleted.
        self._heads: OrderedDict[bytes, RequestHead] = OrderedDict()
        self._entries: ExpiringCache[Key, EncodedResponse] = ExpiringCache(size, clock)

    def usage(self) -> tuple[int, int]:
        """Return the number of entries, and the bytes of memory that they take."""
        return len(self._entries), self._entries.size

    def clear(self) -> None:
        self._entries.clear()
        self._heads.clear()

    def get(self, target: str, gzip: bool) -> EncodedResponse | None:
        return self._entries.get((_digest(target), gzip)) if self._entries.size else None  # saves the digest

    def store(self, target: str, gzip: bool, response: EncodedResponse) -> None:
        """Store an entry, unless it is larger than the whole cache."""
        size = entries.memory_of(len(response.body.body))
        self._entries.put((_digest(target), gzip), response, size, response.metadata.until)

    def add(self, target: str, gzip: bool, body: EncodedBody, client: Client, metadata: ResponseMetadata) -> None:
        """Store a response of which nothing was sent upstream."""
        if metadata.source == "hit":
            self.store(target, gzip, EncodedResponse(body, responses.head(body), client, metadata))

    def link(self, head: bytes, target: str, gzip: bool, labels: RequestLabels) -> None:
        """Remember that the bytes of a request head ask for an entry."""
        if len(self._heads) >= HEADS_MAX:
            self._heads.popitem(last=False)
        self._heads[_digest_bytes(head)] = RequestHead((_digest(target), gzip), labels)

    def find(self, head: bytes) -> tuple[RequestHead, EncodedResponse] | None:
        """Return the entry that the bytes of a request head ask for, if they are linked with one."""
        requested = self._heads.get(_digest_bytes(head)) if self._heads else None
        if requested is None:
            return None
        entry = self._entries.get(requested.key)
        return None if entry is None else (requested, entry)


class CoalescedResult(NamedTuple):
    """Result of a request: a body, or the error that equal requests get, too. `metadata` is that of its request."""

    metadata: ResponseMetadata
    body: EncodedBody | None
    error: errors.BridgeError | None = None


class RequestInFlight:
    """One request that is executed, and the equal ones that wait for its result."""

    __slots__ = ("_in_flight", "_key", "_timer", "_waiting", "client")

    def __init__(self, in_flight: "dict[RequestKey, RequestInFlight]", key: RequestKey, client: Client) -> None:
        self._in_flight = in_flight
        self._key = key
        self._waiting: list[asyncio.Future[CoalescedResult | None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.client = client

    async def wait(self) -> CoalescedResult | None:
        """Return the result; None if the caller has to execute its request itself."""
        loop = asyncio.get_running_loop()
        if self._timer is None:  # most requests are joined by nobody, and need no timer
            self._timer = loop.call_later(JOIN_SECONDS, self.end, None)
        waiting: asyncio.Future[CoalescedResult | None] = loop.create_future()
        self._waiting.append(waiting)
        return await waiting

    def end(self, result: CoalescedResult | None) -> None:
        """Give a result to all waiting requests; None lets them continue on their own. Only the first call counts."""
        if self._in_flight.get(self._key) is self:
            del self._in_flight[self._key]
        if self._timer is not None:
            self._timer.cancel()
        for waiting in self._waiting:
            if not waiting.done():  # its client may have gone
                waiting.set_result(result)
        self._waiting.clear()


class RequestCoalescing:
    """Requests in flight. Not `enabled`: none is ever joined."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._in_flight: dict[RequestKey, RequestInFlight] = {}

    def get(self, key: RequestKey) -> RequestInFlight | None:
        return self._in_flight.get(key)

    def begin(self, key: RequestKey, client: Client) -> RequestInFlight:
        """Note a request that equal ones can join, unless there is one already."""
        leader = RequestInFlight(self._in_flight, key, client)
        if self._enabled:
            self._in_flight.setdefault(key, leader)
        return leader


def _digest(target: str) -> bytes:
    return _digest_bytes(target.encode("utf-8", "surrogateescape"))


def _digest_bytes(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
