"""Cache of encoded responses: of a request that comes a third time the parameters are not parsed.

A response is stored when all its results were cache hits, until the first of them expires; compressed and uncompressed
responses are separate entries. Keys are digests of the request target, and of whole request heads that ask for the
same, because these hold the API key.
"""

import hashlib
from typing import NamedTuple

import cachetools

from proxy.gateway.applications import Client
from proxy.kit.clock import Clock
from proxy.web.v3.responses import EncodedBody

Key = tuple[bytes, bool]  # digest of the request target, and whether the client accepts gzip

RECENT_MAX = 20_000  # request targets that are remembered as answered recently
HEADS_MAX = 4_096  # request heads that are linked with an entry, the oldest is dropped; 350 bytes each
ENTRY_OVERHEAD = 600  # bytes of an entry without its body


class EncodedResponse(NamedTuple):
    """Cache entry: the body, the beginning of the response head, the number of cached results in it, and its client.
    `until`: expiry, monotonic seconds."""

    body: EncodedBody
    head: str
    results: int
    client: Client
    until: float


class RequestHead(NamedTuple):
    """What the bytes of a request head ask for. `forwarded`: its X-Forwarded-For, where proxies are trusted."""

    key: Key
    route: str
    forwarded: str


class EncodedResponseCache:
    """Cache of at most `size` bytes; 0 switches it off. Results are served stale for `stale_seconds`."""

    def __init__(self, size: int, clock: Clock, stale_seconds: float = 0.0) -> None:
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._recent: dict[bytes, float] = {}
        self._heads: dict[bytes, RequestHead] = {}
        self._filled = False  # saves the digest while the cache is empty
        self._entries: cachetools.TLRUCache[Key, EncodedResponse] = cachetools.TLRUCache(
            size,
            lambda _, response, __: response.until,
            timer=clock.monotonic,
            getsizeof=_size,
        )

    def get(self, target: str, gzip: bool) -> EncodedResponse | None:
        """The entry of a request target, if there is one."""
        if not self._filled:
            return None
        try:
            return self._entries[_digest(target), gzip]  # get() of a TLRUCache looks up twice
        except KeyError:
            return None

    def store(self, target: str, gzip: bool, response: EncodedResponse) -> None:
        """Store an entry, unless it is larger than the whole cache."""
        if _size(response) <= self._entries.maxsize:
            self._entries[_digest(target), gzip] = response
            self._filled = True

    def link(self, head: bytes, target: str, gzip: bool, route: str, forwarded: str) -> None:
        """Remember that the bytes of a request head ask for an entry."""
        if len(self._heads) >= HEADS_MAX:
            del self._heads[next(iter(self._heads))]
        self._heads[_digest_bytes(head)] = RequestHead((_digest(target), gzip), route, forwarded)

    def by_head(self, head: bytes) -> tuple[RequestHead, EncodedResponse] | None:
        """The entry that the bytes of a request head ask for, if they are linked with one."""
        requested = self._heads.get(_digest_bytes(head)) if self._heads else None
        if requested is None:
            return None
        try:
            return requested, self._entries[requested.key]
        except KeyError:
            return None

    def mark_answered(self, target: str, until: float) -> None:
        """Remember that a request was answered with results that are cached `until` then, in monotonic seconds."""
        if len(self._recent) >= RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        self._recent[_digest(target)] = until + self._stale_seconds

    def was_answered(self, target: str) -> bool:
        """Return whether a request was answered recently, so that its results are probably cached."""
        return self._recent.get(_digest(target), 0.0) > self._clock.monotonic()


def _size(response: EncodedResponse) -> int:
    return ENTRY_OVERHEAD + len(response.body.body)


def _digest(target: str) -> bytes:
    return _digest_bytes(target.encode("utf-8", "surrogateescape"))


def _digest_bytes(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
