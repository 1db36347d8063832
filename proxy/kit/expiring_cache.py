"""Cache in memory: bounded by a total size, least recently used entries evicted first; each entry expires.

Memory stays within the size; with cachetools.TLRUCache it is a third more.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from proxy.kit.clock import Clock

K = TypeVar("K")
V = TypeVar("V")


class _Entry(NamedTuple, Generic[V]):
    value: V
    size: int
    until: float


class ExpiringCache(Generic[K, V]):
    """Entries of at most `size_max` together. `until` is their expiry, in the clock's monotonic seconds."""

    def __init__(self, size_max: int, clock: Clock) -> None:
        self.size_max = size_max
        self.size = 0
        self._clock = clock
        # An OrderedDict, not a dict: finding the first key of a dict takes long after its first ones were deleted.
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self, condition: Callable[[K], bool] | None = None) -> None:
        """Remove all entries, or those whose keys fulfil a condition."""
        for key in [key for key in self._entries if condition is None or condition(key)]:
            self.remove(key)

    def get(self, key: K) -> V | None:
        """Return the value of an entry that has not expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.until <= self._clock.monotonic():
            self.remove(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: K, value: V, size: int, until: float) -> None:
        """Store an entry in place of the one with its key; it evicts others, unless it is larger than the cache."""
        self.remove(key)
        if size <= self.size_max:
            self._entries[key] = _Entry(value, size, until)
            self.size += size
        # The oldest are checked only: lifetimes are equal or nearly so, and what is used meanwhile is checked by `get`.
        now = self._clock.monotonic()
        while self._entries and (self.size > self.size_max or next(iter(self._entries.values())).until <= now):
            self.size -= self._entries.popitem(last=False)[1].size

    def remove(self, key: K) -> None:
        removed = self._entries.pop(key, None)
        if removed is not None:
            self.size -= removed.size
