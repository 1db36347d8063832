"""Replies that were asked for again, kept whole: a request that comes a third time is answered from bytes alone.

A reply whose answers were all known is kept until the first of them is too old, compressed where it was asked for so.
Requests are known by a digest, because they hold apikeys.
"""

import hashlib
from typing import NamedTuple

import cachetools

from proxy.gateway.applications import Client
from proxy.kit.clock import Clock
from proxy.web.v3.replies import Written

ANSWERED_MAX = 20_000  # requests that are known to have been answered lately
OVERHEAD = 400  # bytes that a reply takes beside its body


class Repeat(NamedTuple):
    """A reply as it was sent, of so many answers, and who it is for; `until` in the clock's monotonic seconds."""

    written: Written
    answers: int
    client: Client
    until: float


class Repeats:
    """The replies, in at most `size` bytes; 0 keeps none."""

    def __init__(self, size: int, clock: Clock, stale_seconds: float = 0.0) -> None:
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._answered: dict[bytes, float] = {}
        self._any = False  # nothing is looked up before there is something
        self._kept: cachetools.TLRUCache[tuple[bytes, bool], Repeat] = cachetools.TLRUCache(
            size,
            lambda _, repeat, __: repeat.until,
            timer=clock.monotonic,
            getsizeof=_size,
        )

    def get(self, target: str, gzip: bool) -> Repeat | None:
        """The reply to a request target, as gzip or not, if it is kept."""
        if not self._any:
            return None
        try:
            return self._kept[_digest(target), gzip]  # a get() would look twice
        except KeyError:
            return None

    def keep(self, target: str, gzip: bool, repeat: Repeat) -> None:
        """Keep it, if there is room for it at all."""
        if _size(repeat) <= self._kept.maxsize:
            self._kept[_digest(target), gzip] = repeat
            self._any = True

    def note(self, target: str, until: float) -> None:
        """A request was answered from what is kept until a moment, in monotonic seconds, and served stale later."""
        if len(self._answered) >= ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]
        self._answered[_digest(target)] = until + self._stale_seconds

    def knows(self, target: str) -> bool:
        """Whether a request was answered lately, so that its response may be known."""
        return self._answered.get(_digest(target), 0.0) > self._clock.monotonic()


def _size(repeat: Repeat) -> int:
    return OVERHEAD + len(repeat.written.body)


def _digest(target: str) -> bytes:
    return hashlib.blake2b(target.encode("utf-8", "surrogateescape"), digest_size=16).digest()
