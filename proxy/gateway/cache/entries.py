"""Response cache, per query. Bounded by bytes; entries expire; nothing here knows what a result means.

An entry holds a query's records as JSON, and the v3 items made of them for every projection that was requested: a hit
is copied out, neither decoded nor mapped. Items of a projection that shows less than the records hold are made from
them.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import config, errors, model
from proxy.gateway.cache.cached_records import CachedRecords
from proxy.kit.clock import Clock
from proxy.kit.expiring_cache import ExpiringCache
from proxy.kit.json_encoder import JsonEncoder
from proxy.mapping.compiler import CompiledObject
from proxy.planning.operations import QueryResult

VARIANTS_MAX = 4  # of one query: selections none of which includes another
CLOCK_SKEW = 5.0  # seconds that the clocks of machines may differ
OVERHEAD = 400  # bytes that an entry takes beside its content

_encode_items = JsonEncoder().encode
_encode_records = JsonEncoder().encode


class CacheKey(NamedTuple):
    """Key of a query, independent of the projection; `context` has the values of the request that mapping reads."""

    key: Hashable
    context: model.MappingContext


class ItemRenderer(NamedTuple):
    """Renders records as v3 items in one projection; `key` identifies the projection."""

    key: Hashable
    part: CompiledObject

    def items(self, records: list[Any], context: model.MappingContext) -> bytes:
        """Return a JSON list of v3 objects. Raises UpstreamUnreadable for an invalid time or id, which the schema
        allows."""
        try:
            return _encode_items([self.part.map(record, context) for record in records])
        except (ValueError, OverflowError) as error:
            raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error


class RenderedResult(NamedTuple):
    """Result of a query: `items` is a JSON list of v3 objects, `details` what a search says beside them.

    `until`, in the clock's monotonic seconds, is how long it is fresh: 0.0 not at all. `failure` is why there is no
    result where that is not the query's own `error`.
    """

    items: bytes
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    details: Any = None
    until: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether another attempt may have a better result."""
        return self.failure is not None

    @property
    def was_refused(self) -> bool:
        """Whether the quota of this caller is exhausted; another may have one."""
        return isinstance(self.failure, errors.QuotaExhausted)

    @classmethod
    def failed(cls, failure: errors.BridgeError) -> "RenderedResult":
        """Return the result of a query that failed."""
        return cls(b"[]", 0, failure.message, failure)


class _Variant(msgspec.Struct, frozen=True, gc=False):  # without cycles: the collector need not visit thousands
    """Records of one selection, and the items made of them by projection."""

    fields: frozenset[str]
    records: bytes
    hits: int
    details: Any
    stored: float  # not its expiry: a reload may change lifetimes
    items: dict[Hashable, bytes]

    def size(self) -> int:
        return memory_of(len(self.records) + sum(map(len, self.items.values())))


def memory_of(content: int) -> int:
    """Return the bytes of memory that an entry with so many bytes of content takes. Measured on a full cache: entries
    of different sizes that replace each other leave gaps of a fifth in the memory of the process."""
    return OVERHEAD + content * 6 // 5


Storage = ExpiringCache[Hashable, tuple[_Variant, ...]]


def create_storage(settings: config.CacheSettings, clock: Clock) -> Storage:
    """Create the storage of a response cache."""
    return ExpiringCache(settings.query_bytes, clock)


class ResponseCache:
    """Cache of results by query. An entry is fresh for some seconds, and may be served stale for some more.

    `storage` holds the entries of a cache that this one replaces; lifetimes and size are those of `settings`.
    """

    def __init__(self, settings: config.CacheSettings, clock: Clock, storage: Storage | None = None) -> None:
        self._seconds = settings.seconds
        self._lifetime = settings.lifetime
        self._clock = clock
        self._entries = create_storage(settings, clock) if storage is None else storage
        self._size = settings.query_bytes

    def activate(self) -> None:
        """Apply the size to a storage that was made with another one."""
        self._entries.size_max = self._size

    def get(self, key: CacheKey, renderer: ItemRenderer, *, stale: bool = False) -> RenderedResult | None:
        """Return the result: a fresh one, or with `stale` one within its lifetime; a failure if its records cannot be
        translated in this projection."""
        now = self._clock.monotonic()
        variants = self._variants(key)
        seconds = self._lifetime if stale else self._seconds
        for variant in variants:
            if now < variant.stored + seconds and renderer.part.fields <= variant.fields:
                try:
                    items = self._items(variant, variants, key, renderer)
                except errors.UpstreamUnreadable as failure:
                    return None if stale else RenderedResult.failed(failure)
                until = 0.0 if stale else variant.stored + seconds
                return RenderedResult(items, variant.hits, details=variant.details, until=until)
        return None

    def holds(self, key: CacheKey, renderer: ItemRenderer) -> bool:
        """Return whether `get` has a fresh result, without making its items."""
        stored_after, fields = self._clock.monotonic() - self._seconds, renderer.part.fields
        return any(stored_after < variant.stored and fields <= variant.fields for variant in self._variants(key))

    def age(self, key: CacheKey) -> float:
        """Return the seconds since the newest entry of a query was stored."""
        newest = max((variant.stored for variant in self._variants(key)), default=math.inf)
        return max(0.0, self._clock.monotonic() - newest)

    def store(
        self, key: CacheKey, renderer: ItemRenderer, source: QueryResult, result: RenderedResult
    ) -> RenderedResult:
        """Store a result that was made of the records of `source`; return it with its `until`."""
        now = self._clock.monotonic()
        fields = renderer.part.fields
        records = _encode_records(source.parts) if source.encoded is None else source.encoded
        variant = _Variant(fields, records, result.hits, result.details, now, {renderer.key: result.items})
        others = [other for other in self._variants(key) if not other.fields <= fields]
        self._put(key, (variant, *others[: VARIANTS_MAX - 1]))
        return result._replace(until=now + self._seconds)

    def cached_records(self, key: CacheKey) -> list[CachedRecords]:
        """Return the records of a query for the shared cache: those that stay fresh for half of their time at least,
        because an entry there ends with its oldest records."""
        now = self._clock.monotonic()
        stored_at_zero = self._clock.now() - now  # monotonic times mean nothing to other processes
        return [
            CachedRecords(each.fields, each.records, each.hits, each.details, stored_at_zero + each.stored)
            for each in self._variants(key)
            if now - each.stored <= self._seconds / 2
        ]

    def add(self, key: CacheKey, shared_records: Sequence[CachedRecords]) -> None:
        """Add records of the shared cache for what is left of their lifetime. Those from the future are ignored: the
        clock was set back, so that their age is not known."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        variants = [
            _Variant(each.fields, each.records, each.hits, each.details, monotonic - max(age, 0.0), {})
            for each in shared_records
            if -CLOCK_SKEW <= (age := now - each.stored) < self._lifetime
        ]
        newest_first = sorted((*variants, *self._variants(key)), key=lambda each: -each.stored)
        useful: list[_Variant] = []
        for variant in newest_first:
            if not any(variant.fields <= newer.fields for newer in useful):
                useful.append(variant)
        if useful:
            self._put(key, tuple(useful[:VARIANTS_MAX]))

    def usage(self) -> tuple[int, int]:
        """Return the number of queries with an entry and the bytes of memory that they take."""
        return len(self._entries), self._entries.size

    def clear(self, application: str | None) -> None:
        """Remove the entries of an application, or all."""
        self._entries.clear(None if application is None else lambda key: _application_of(key) == application)

    def _items(self, variant: _Variant, variants: tuple[_Variant, ...], key: CacheKey, renderer: ItemRenderer) -> bytes:
        items = variant.items.get(renderer.key)
        if items is None:
            items = variant.items[renderer.key] = renderer.items(renderer.part.decode(variant.records), key.context)
            self._put(key, variants)  # its size has changed; it may have expired by now
        return items

    def _variants(self, key: CacheKey) -> tuple[_Variant, ...]:
        return self._entries.get(key.key) or ()

    def _put(self, key: CacheKey, variants: tuple[_Variant, ...]) -> None:
        now = self._clock.monotonic()
        # The entry lives as long as its newest variant, which must not make the others live longer.
        usable = tuple([variant for variant in variants if now < self._end(variant)])
        if usable:
            self._entries.put(key.key, usable, sum([variant.size() for variant in usable]), max(map(self._end, usable)))

    def _end(self, variant: _Variant) -> float:
        """Return when a variant must no longer be used, not even stale."""
        return variant.stored + self._lifetime


def _application_of(key: Hashable) -> object:
    """Return the application of a key, which begins its first element (`Application.cache_scope`)."""
    # Beside the name the element has a digest of what the application's results depend on.
    return str(key[0]).partition(" ")[0] if isinstance(key, tuple) else None
