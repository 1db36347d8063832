"""Cache in memory: bounded by a total size, least recently used entries evicted first; each entry expires.

Memory stays within the size; with cachetools.TLRUCache it is a third more.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from proxy.kit.clock import Clock

K = TypeVar("K")
V = TypeVar("V")

OVERHEAD = 400  # bytes that an entry takes beside its content


def memory_of(content: int) -> int:
    """Return the bytes of memory that an entry with so many bytes of content takes. Measured on a full cache: entries
    of different sizes that replace each other leave gaps of a fifth in the memory of the process."""
    return OVERHEAD + content * 6 // 5


class ExpiringCache(Generic[K, V]):
    """Entries of at most `size_max` together. `until` is their expiry, in the clock's monotonic seconds."""

    def __init__(self, size_max: int, clock: Clock) -> None:
        self.size_max = size_max
        self.size = 0
        self._clock = clock
        # An OrderedDict, not a dict: finding the first key of a dict takes long after its first ones were deleted.
        self._entries: OrderedDict[K, tuple[V, int, float]] = OrderedDict()  # value, size, expiry

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
        value, _, until = entry
        if until <= self._clock.monotonic():
            self.remove(key)
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, size: int, until: float) -> None:
        """Store an entry in place of the one with its key; it evicts others, unless it is larger than the cache."""
        entries = self._entries
        if key in entries:
            self.remove(key)
        if size <= self.size_max:
            entries[key] = (value, size, until)
            self.size += size
        # The oldest are checked only: lifetimes are equal or nearly so, and what is used meanwhile is checked by `get`.
        now = self._clock.monotonic()
        while entries:
            _, oldest_size, oldest_until = next(iter(entries.values()))
            if self.size <= self.size_max and oldest_until > now:
                break
            self.size -= oldest_size
            entries.popitem(last=False)

    def remove(self, key: K) -> None:
        removed = self._entries.pop(key, None)
        if removed is not None:
            self.size -= removed[1]
