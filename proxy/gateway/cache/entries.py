"""Response cache, per query. Bounded by bytes; entries expire; nothing here knows what a result means.

An entry holds a query's records as JSON, and the v3 items made of them for every projection that was requested: a hit
is copied out, neither decoded nor mapped. Items of a projection that shows less than the records hold are made from
them.
"""

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from proxy import config, errors, model
from proxy.gateway.cache.cached_records import CachedRecords
from proxy.kit.clock import Clock
from proxy.kit.expiring_cache import OVERHEAD, ExpiringCache, memory_of
from proxy.mapping.compiler import CompiledObject
from proxy.planning.operations import join_records

VARIANTS_MAX = 4  # of one query: selections none of which includes another
CLOCK_SKEW = 5.0  # seconds that the clocks of machines may differ
EMPTY_SECONDS = 300.0  # that a result without parts is fresh: to ask again costs no parts
NO_RECORDS = b"[]"
HOLDERS_MAX = 8  # entries that are known to hold a part, or pages of one match
V3UID, ID = "v3uid", "id"  # of a part
PART = "part"  # begins the keys of parts by uid, and
MATCH = "match"  # those of queries of parts/match, which end with `start` and `limit`


class _PartIds(msgspec.Struct, gc=False):
    """The ids of a part, by both of which the upstream finds it; "" for one that its record does not have, None for one
    that the upstream has not sent, against its schema: a request that does not show it needs none."""

    v3uid: str | None = ""
    id: str | None = ""


_ids = msgspec.json.Decoder(list[_PartIds]).decode
_id = msgspec.json.Decoder(_PartIds).decode
_records = msgspec.json.Decoder(list[msgspec.Raw]).decode


class CacheKey(NamedTuple):
    """Key of a query, independent of the projection; `context` has the values of the request that mapping reads."""

    key: Hashable
    context: model.MappingContext


@functools.lru_cache(maxsize=256)  # one set for many entries and hits
def _with_facts(fields: frozenset[str], facts: frozenset[str]) -> frozenset[str]:
    return fields | facts


class ItemRenderer(NamedTuple):
    """Renders records as items in one projection; `key` identifies the projection, `fetched` are the fields that are
    fetched for it: those that it reads, and others. `facts` must be known of a page that it renders."""

    key: Hashable
    part: CompiledObject
    fetched: frozenset[str]
    facts: frozenset[str] = frozenset()

    @property
    def needed(self) -> frozenset[str]:
        """What an entry must have to be rendered."""
        return _with_facts(self.part.fields, self.facts) if self.facts else self.part.fields

    def names(self, parts: list[Any], records: bytes) -> tuple[str, ...]:
        """Return the ids by which queries find the parts in some records, decoded or not: their v3 uids, and the other
        ids if they are shown."""
        if not (parts and hasattr(parts[0], V3UID)):  # not shown, or not decoded
            parts = _ids(records)
        values = [part.v3uid for part in parts]
        if ID in self.part.fields:
            values += [part.id for part in parts]
        return tuple(filter(None, map(_text, values)))

    def items(self, records: list[Any], context: model.MappingContext) -> bytes:
        """Return a JSON list of v3 objects. Raises UpstreamUnreadable for an invalid time or id, which the schema
        allows."""
        try:
            return msgspec.json.encode([self.part.map(record, context) for record in records])
        except (ValueError, OverflowError) as error:
            raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error


class RenderedResult(msgspec.Struct, frozen=True):
    """Result of a query: `items` is a JSON list of v3 objects, `details` what a search says beside them.

    `stored` and `until` are when it was fetched and how long it is fresh, in the clock's monotonic seconds: 0.0 not at
    all. `records` are what it was made of, in the projection of a renderer. `failure` is why there
    is no result where that is not the query's own `error`; `facts` are those of its page. `parts` is how many were
    fetched, `names` are their ids.
    """

    items: bytes
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    details: Any = None
    stored: float = math.inf
    until: float = 0.0
    records: bytes = b""
    projection: Hashable = None
    facts: frozenset[str] = frozenset()
    parts: int = 0
    names: tuple[str, ...] = ()

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


class Head(NamedTuple):
    """First records of a page that other pages hold; `stored` is that of the oldest."""

    records: list[bytes]
    stored: float


class _Variant(msgspec.Struct, frozen=True, gc=False):  # without cycles: the collector need not visit thousands
    """Records of one selection, and the items made of them by projection."""

    fields: frozenset[str]
    records: bytes
    hits: int
    details: Any
    stored: float  # not its expiry: a reload may change lifetimes
    items: dict[Hashable, bytes]
    count: int  # of its parts: to count them takes longer than the rest of a hit

    def size(self) -> int:
        return memory_of(len(self.records) + sum(map(len, self.items.values())))


def _text(value: Any) -> str | None:
    """Return the value of a leaf, which the records of some dialects hold as JSON."""
    return str(msgspec.json.decode(value) or "") if isinstance(value, msgspec.Raw) else value


class Storage:
    """Entries by key; and `holders`: the keys of entries that hold a part, or pages of a match."""

    def __init__(self, size: int, clock: Clock) -> None:
        self.entries: ExpiringCache[Hashable, tuple[_Variant, ...]] = ExpiringCache(0, clock)
        self.holders: ExpiringCache[Hashable, tuple[Hashable, ...]] = ExpiringCache(0, clock)
        self.resize(size)

    def resize(self, size: int) -> None:
        """Bound both together by so many bytes."""
        self.holders.size_max = size // 8
        self.entries.size_max = size - self.holders.size_max


def create_storage(settings: config.CacheSettings, clock: Clock) -> Storage:
    """Create the storage of a response cache."""
    return Storage(settings.query_bytes, clock)


class ResponseCache:
    """Cache of results by query. An entry is fresh for some seconds, and may be served stale for some more. A query for
    a part by uid also finds the part in the results of other queries, and a match its page in those of another `start`
    and `limit`.

    `storage` holds the entries of a cache that this one replaces; lifetimes and size are those of `settings`.
    """

    def __init__(self, settings: config.CacheSettings, clock: Clock, storage: Storage | None = None) -> None:
        self._seconds = settings.seconds
        self._lifetime = settings.lifetime
        self._clock = clock
        self._storage = create_storage(settings, clock) if storage is None else storage
        self._entries, self._holders = self._storage.entries, self._storage.holders
        self._size = settings.query_bytes

    def activate(self) -> None:
        """Apply the size to a storage that was made with another one."""
        self._storage.resize(self._size)

    def get(self, key: CacheKey, renderer: ItemRenderer, *, stale: bool = False) -> RenderedResult | None:
        """Return the result: a fresh one, or with `stale` one within its lifetime; a failure if its records cannot be
        translated in this projection."""
        variant = self._find(key, self._usable(renderer.needed, self._end if stale else self._fresh_until))
        if variant is None:
            return None
        try:
            items = self._items(variant, key, renderer)
        except errors.UpstreamUnreadable as failure:
            return None if stale else RenderedResult.failed(failure)
        until = 0.0 if stale else self._fresh_until(variant)
        # Another request that waits for it may make items of its own.
        return RenderedResult(
            items,
            variant.hits,
            details=variant.details,
            stored=variant.stored,
            until=until,
            records=variant.records,
            projection=renderer.key,
            facts=renderer.facts,
        )

    def head(self, key: CacheKey, renderer: ItemRenderer) -> Head | None:
        """Return what is held of a page whose other records must be fetched; None if nothing is."""
        page = _page_of(key.key)
        names = None if page is None else self._holders.get(page.query)
        if page is None or names is None:
            return None
        held, _ = self._assembled(page, names, self._usable(renderer.fetched | renderer.facts, self._fresh_until))
        records = [] if held is None else list(map(bytes, _records(held.records)))
        return Head(records, held.stored) if held is not None and records else None

    def store(
        self, key: CacheKey, renderer: ItemRenderer, result: RenderedResult, head: Head | None = None
    ) -> RenderedResult:
        """Store a result with its records, or those that follow its `head`; return it with its times. Raises
        UpstreamUnreadable for a head that cannot be translated."""
        now = self._clock.monotonic()
        # Of a head no other facts are known than those that it was chosen by.
        facts = renderer.facts if head is not None else result.facts
        if head is not None and (page := _page_of(key.key)) is not None:
            # A part that has moved behind the head meanwhile is not listed twice.
            listed = {uid for record in head.records if (uid := _id(record).v3uid)}
            added = [bytes(each) for each in _records(result.records) if _id(each).v3uid not in listed]
            records, now = join_records([*head.records, *added]), min(now, head.stored)
            items = renderer.items(renderer.part.decode_list(records), key.context)
            count = len(head.records) + len(added)
            hits = max(result.hits, page.start + count)
            names = renderer.names([], records)
            result = replace(result, items=items, hits=hits, records=records, parts=count, names=names)
            if not self._holders.get(page.query):  # they were cleared meanwhile: the head must not come back
                return replace(result, facts=facts, stored=now)
        fields = _with_facts(renderer.fetched, facts)
        variant = _Variant(
            fields, result.records, result.hits, result.details, now, {renderer.key: result.items}, result.parts
        )
        self._keep(key, (variant,), result.names)
        return replace(result, facts=facts, stored=now, until=self._fresh_until(variant))

    def cached_records(self, key: CacheKey) -> list[CachedRecords]:
        """Return the records of a query for the shared cache: the newest, and those that stay fresh for half of their
        time at least, because an entry there ends with its oldest records."""
        now = self._clock.monotonic()
        stored_at_zero = self._clock.now() - now  # monotonic times mean nothing to other processes
        page = _page_of(key.key)
        limit = page.limit if page is not None and not page.start else 0
        return [
            CachedRecords(each.fields, each.records, each.hits, each.details, stored_at_zero + each.stored, limit)
            for n, each in enumerate(self._entries.get(key.key) or ())
            if not n or now - each.stored <= (self._fresh_until(each) - each.stored) / 2
        ]

    def add(self, key: CacheKey, shared_records: Sequence[CachedRecords]) -> None:
        """Add records of the shared cache for what is left of their lifetime: of a match those of its first page, for a
        part also those of another query that has it. Those from the future are ignored: the clock was set back, so that
        their age is not known."""
        if shared_records and shared_records[0].limit and not _uid_of(key.key):
            key = key._replace(key=(*key.key[:-1], shared_records[0].limit))  # type: ignore[index]
        now, monotonic = self._clock.now(), self._clock.monotonic()
        variants = [
            _Variant(
                each.fields,
                each.records,
                each.hits,
                each.details,
                monotonic - max(age, 0.0),
                {},
                len(_records(each.records)),
            )
            for each in shared_records
            if -CLOCK_SKEW <= (age := now - each.stored) < self._lifetime
        ]
        if _uid_of(key.key):
            variants = [part for each in variants if (part := _part(each, key)) is not None]
        self._keep(key, variants)

    def usage(self) -> tuple[int, int]:
        """Return the number of queries with an entry and the bytes of memory that they take."""
        return len(self._entries), self._entries.size + self._holders.size

    def clear(self, application: str | None) -> None:
        """Remove the entries of an application, or all."""
        for cache in (self._entries, self._holders):
            cache.clear(None if application is None else lambda key: _application_of(key) == application)

    def _keep(self, key: CacheKey, added: Sequence[_Variant], names: Sequence[str] | None = None) -> None:
        """Add variants: one with the names of its parts, or several."""
        variants = self._merged(key, added)
        self._put(key, variants)
        if variants:
            self._note(key, variants[0], names if names is not None and variants[0] is added[0] else None)

    def _merged(self, key: CacheKey, added: Sequence[_Variant]) -> tuple[_Variant, ...]:
        """Return the variants of a query that can be used, newest first, with those added; none whose fields a newer
        one has."""
        now, useful = self._clock.monotonic(), list[_Variant]()
        for variant in sorted((*added, *(self._entries.get(key.key) or ())), key=lambda each: -each.stored):
            if now < self._end(variant) and not any(variant.fields <= newer.fields for newer in useful):
                useful.append(variant)
        return tuple(useful[:VARIANTS_MAX])

    def _items(self, variant: _Variant, key: CacheKey, renderer: ItemRenderer) -> bytes:
        items = variant.items.get(renderer.key)
        if items is None:
            parts = renderer.part.decode_list(variant.records)
            items = variant.items[renderer.key] = renderer.items(parts, key.context)
            self._put(key, self._merged(key, (variant,)))  # its size has changed
            if ID in renderer.part.fields:
                self._note(key, variant, renderer.names(parts, variant.records))
        return items

    def _usable(self, fields: frozenset[str], until: Callable[[_Variant], float]) -> Callable[[_Variant], bool]:
        """Return the test for variants with these fields that have not ended."""
        now = self._clock.monotonic()
        return lambda variant: now < until(variant) and fields <= variant.fields

    def _find(self, key: CacheKey, usable: Callable[[_Variant], bool]) -> _Variant | None:
        """Return a variant of a query, or what other entries hold of it."""
        for variant in self._entries.get(key.key) or ():
            if usable(variant):
                return variant
        page = _page_of(key.key)
        names = self._holders.get(key.key if page is None else page.query)
        if names is None:
            return None
        if page is not None:
            held, is_whole = self._assembled(page, names, usable)
            return held if held is not None and is_whole and usable(held) else None
        holding = [each for name in names for each in self._entries.get(name) or () if usable(each)]
        parts = (_part(each, key) for each in sorted(holding, key=lambda each: -each.stored))
        return next((part for part in parts if part is not None), None)

    def _assembled(
        self, page: "_Page", names: Sequence[Hashable], usable: Callable[[_Variant], bool]
    ) -> tuple[_Variant | None, bool]:
        """Return what pages of the query with these names hold of a page, from its beginning on, and whether that is
        all of it."""
        held = [
            (other, each)
            for name in names
            if (other := _page_of(name)) is not None
            for each in self._entries.get(name) or ()
            if usable(each)
        ]
        if not held:
            return None, False
        newest = held[0][1]
        records: list[bytes] = []
        used, wanted = [newest], min(page.limit, newest.hits - page.start)
        while len(records) < wanted:
            place = page.start + len(records)
            piece = next((each for each in held if each[0].start <= place < each[0].start + each[1].count), None)
            if piece is None:
                break
            more = [*records, *map(bytes, _records(piece[1].records)[place - piece[0].start :])][:wanted]
            uids = [uid for record in more if (uid := _id(record).v3uid)] if records else []
            if len(set(uids)) < len(uids):  # a part has moved from one page to another meanwhile
                break
            records = more
            used.append(piece[1])
        fields, stored = frozenset.intersection(*(each.fields for each in used)), min(each.stored for each in used)
        content, count = join_records(records), len(records)
        return _Variant(fields, content, newest.hits, newest.details, stored, {}, count), count >= wanted

    def _note(self, key: CacheKey, variant: _Variant, names: Sequence[str] | None) -> None:
        """Let queries by id find the parts of a result, by these names or by their v3 uids; and other pages of a match
        find a page of which nothing was filtered out."""
        if names is None:
            names = [part.v3uid for part in _ids(variant.records) if part.v3uid]
        until = self._clock.monotonic() + self._lifetime  # of the newest of them, whichever that is
        for part in part_keys(key.key, names):
            self._hold(part, key, self._holders.get(part) or (), until)
            older = self._entries.get(part)
            if older and all(each.fields <= variant.fields and each.stored <= variant.stored for each in older):
                self._entries.remove(part)
        page = _page_of(key.key)
        if page is not None and page.limit and variant.count == min(page.limit, max(0, variant.hits - page.start)):
            others = [
                name
                for name in self._holders.get(page.query) or ()
                if not page.covers(_page_of(name))
                or any(each.stored > variant.stored for each in self._entries.get(name) or ())
            ]
            self._hold(page.query, key, others, until)

    def _hold(self, held: Hashable, key: CacheKey, others: Sequence[Hashable], until: float) -> None:
        names = (key.key, *[name for name in others if name != key.key][: HOLDERS_MAX - 1])
        self._holders.put(held, names, OVERHEAD * len(names), until)

    def _put(self, key: CacheKey, variants: tuple[_Variant, ...]) -> None:
        if variants:  # the entry lives as long as its newest one
            self._entries.put(key.key, variants, sum([each.size() for each in variants]), self._end(variants[0]))

    def _fresh_until(self, variant: _Variant) -> float:
        is_free = not variant.hits or variant.records == NO_RECORDS
        seconds = min(self._seconds, EMPTY_SECONDS) if is_free else self._seconds
        return variant.stored + seconds

    def _end(self, variant: _Variant) -> float:
        """Return when a variant must no longer be used, not even stale."""
        return variant.stored + self._lifetime


def shared_name(key: Hashable) -> Hashable:
    """Return what names the entry of a key in the shared cache: all first pages of a match that have parts are one."""
    page = _page_of(key)
    return page.query if page is not None and page.limit and not page.start else key


def part_keys(key: Hashable, names: Iterable[str]) -> list[Hashable]:
    """Return the keys of queries by id for the parts with these names in the result of another query."""
    return [] if _uid_of(key) else [(key[0], PART, name) for name in names]  # type: ignore[index]


class _Page(NamedTuple):
    """The page that a key of a match is for: the query without it, and its place."""

    query: Hashable
    start: int
    limit: int

    def covers(self, other: "_Page | None") -> bool:
        """Whether it has all that another page of the query has."""
        return other is None or self.start <= other.start <= other.start + other.limit <= self.start + self.limit


def _page_of(key: Hashable) -> _Page | None:
    """Return the page of a key of a match; None for another key."""
    if not isinstance(key, tuple) or key[1] != MATCH:
        return None
    *query, start, limit = key
    return _Page((*query, "pages"), start, limit)


def _part(variant: _Variant, key: CacheKey) -> _Variant | None:
    """Return the part with this key as part of the result of another query, or of its own."""
    uid = _uid_of(key.key)
    found = [n for n, part in enumerate(_ids(variant.records)) if uid in (part.v3uid, part.id)]
    if not found:
        return None
    record = bytes(_records(variant.records)[found[0]])
    return _Variant(variant.fields, b"[%b]" % record, 1, None, variant.stored, {}, 1)


def _uid_of(key: Hashable) -> str:
    """Return the uid of a key of a part; "" of another."""
    return str(key[2]) if isinstance(key, tuple) and key[1] == PART else ""


def _application_of(key: Hashable) -> object:
    """Return the application of a key, which begins its first element (`Application.cache_scope`)."""
    # Beside the name the element has a digest of what the application's results depend on.
    return str(key[0]).partition(" ")[0] if isinstance(key, tuple) else None
