"""Cache of encoded responses: a request that comes a third time is answered without being parsed.

A response is stored when all its results were cache hits, until the first of them expires; compressed and uncompressed
responses are separate entries. The key is a digest of the request target, because a target holds the API key.
"""

import hashlib
from typing import NamedTuple

import cachetools

from proxy.gateway.applications import Client
from proxy.kit.clock import Clock
from proxy.web.v3.responses import EncodedBody

RECENT_MAX = 20_000  # request targets that are remembered as answered recently
ENTRY_OVERHEAD = 400  # bytes of an entry without its body


class EncodedResponse(NamedTuple):
    """Cache entry: the body, how many cached results it holds, and its client. `until`: expiry, monotonic seconds."""

    body: EncodedBody
    results: int
    client: Client
    until: float


class EncodedResponseCache:
    """Cache of at most `size` bytes; 0 switches it off. Results are served stale for `stale_seconds`."""

    def __init__(self, size: int, clock: Clock, stale_seconds: float = 0.0) -> None:
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._recent: dict[bytes, float] = {}
        self._filled = False  # saves the digest while the cache is empty
        self._entries: cachetools.TLRUCache[tuple[bytes, bool], EncodedResponse] = cachetools.TLRUCache(
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
    return hashlib.blake2b(target.encode("utf-8", "surrogateescape"), digest_size=16).digest()
