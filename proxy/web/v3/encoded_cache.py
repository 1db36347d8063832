"""Cache of encoded responses: of those all of whose results were cache hits, until the first of them expires.

A response is found by its request target, which names the API key, and by whether the client accepts gzip, before
parameters are parsed. Keys are digests of the target, because it holds the API key.
"""

import hashlib
from typing import NamedTuple

import cachetools

from proxy.gateway.core import Client, ResponseMetadata
from proxy.kit.clock import Clock
from proxy.v3.encoding import EncodedBody

BYTES = 16 * 2**20  # that they may take in the memory of a worker
ENTRY_BYTES = 400  # that a response takes beside its body

Key = tuple[bytes, bool]  # digest of the request target, and whether the client accepts gzip


class EncodedResponse(NamedTuple):
    """The body, its client, and the metadata of the hit that it was stored from, which are those of each that it
    serves."""

    body: EncodedBody
    client: Client
    metadata: ResponseMetadata


class EncodedResponseCache:
    """Cache of at most `size` bytes, without the least recently used; 0 switches it off."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._responses: cachetools.LRUCache[Key, EncodedResponse] = cachetools.LRUCache(size, _memory_of)
        self._clock = clock

    def usage(self) -> tuple[int, int]:
        """Return the number of responses, and the bytes of memory that they take."""
        return len(self._responses), int(self._responses.currsize)

    def clear(self) -> None:
        self._responses.clear()

    def get(self, target: str, gzip: bool) -> EncodedResponse | None:
        key = _key(target, gzip)
        response = self._responses.get(key)
        if response is not None and response.metadata.until <= self._clock.monotonic():
            del self._responses[key]
            return None
        return response

    def add(self, target: str, gzip: bool, response: EncodedResponse) -> None:
        """Store a response of which nothing was sent upstream, unless it is larger than the whole cache."""
        if response.metadata.source == "hit" and _memory_of(response) <= self._responses.maxsize:
            self._responses[_key(target, gzip)] = response


def _key(target: str, gzip: bool) -> Key:
    return hashlib.blake2b(target.encode("utf-8", "surrogateescape"), digest_size=16).digest(), gzip


def _memory_of(response: EncodedResponse) -> int:
    return ENTRY_BYTES + len(response.body.body)
