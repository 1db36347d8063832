"""Replies that were asked for again, kept whole: a request that comes a third time is answered from bytes alone.

A reply whose answers were all known is kept until the first of them is too old. Requests are known by a digest, because
they hold apikeys.
"""

import hashlib
from typing import NamedTuple

import cachetools

from proxy.gateway.applications import Client
from proxy.kit.clock import Clock
from proxy.web.v3.parameters import Style

OVERHEAD = 400  # bytes that a reply takes beside its body


class Repeat(NamedTuple):
    """A reply's JSON, how it is written, and who it is for; `until` in the clock's monotonic seconds."""

    body: bytes
    style: Style
    client: Client
    until: float


class Repeats:
    """The replies, in at most `size` bytes; 0 keeps none."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._any = False  # nothing is looked up before there is something
        self._kept: cachetools.TLRUCache[bytes, Repeat] = cachetools.TLRUCache(
            size,
            lambda _, repeat, __: repeat.until,
            timer=clock.monotonic,
            getsizeof=lambda repeat: OVERHEAD + len(repeat.body),
        )

    def get(self, target: str) -> Repeat | None:
        """The reply to a request target, if it is kept."""
        if not self._any:
            return None
        try:
            return self._kept[_digest(target)]  # a get() would look twice
        except KeyError:
            return None

    def keep(self, target: str, repeat: Repeat) -> None:
        """Keep it, if there is room for it at all."""
        if OVERHEAD + len(repeat.body) <= self._kept.maxsize:
            self._kept[_digest(target)] = repeat
            self._any = True


def _digest(target: str) -> bytes:
    return hashlib.blake2b(target.encode("utf-8", "surrogateescape"), digest_size=16).digest()
