"""Shared response cache: results of other workers, of earlier runs and, through Redis, of other machines.

Used for queries that the cache in memory does not have. What the shared cache does not have either is claimed in it, so
that all workers together execute a query once. A claim is taken before its entry is read: its owner releases it only
after the entry is stored, so no entry that is stored in between is missed. Entries hold records, not items: any
projection can be made from them.

Requests never depend on it. While its store is in trouble they go on without it; entries are stored after the response
has been sent, several at a time.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import structlog
from prometheus_client import Counter

from proxy import config, errors
from proxy.gateway.applications import Application
from proxy.gateway.cache.cached_records import UNREADABLE, CachedRecords, EntryFormat
from proxy.gateway.cache.shared_keys import SharedKeys
from proxy.kit.clock import Clock
from proxy.stores.protocols import CacheLookup, CacheRecord, CacheStore, CacheUsage
from proxy.telemetry.metrics import Metrics

CLAIM_SECONDS = 3.0  # lease of a claim in Redis, which outlives an owner that has died
RENEW_SECONDS, RENEWALS_MAX = 1.0, 30  # between two renewals of such a lease, while its owner still works; their number
# That a request waits for another worker's result: longer than a claim, so that it sees its end, and as long as for a
# request in this process by default (coalescing.stall_seconds).
WAIT_SECONDS = 10.0
PAUSE_FIRST, PAUSE_MAX, PAUSE_GROWTH = 0.002, 0.1, 1.5  # seconds between two looks at a claimed key

# Seconds. What is not looked up in time is paid for, and on a busy machine the event loop itself is a second late.
LOOK_UP_TIMEOUT, WRITE_TIMEOUT = 2.0, 5.0
COOLDOWN = 5.0  # seconds without the shared cache after a failure
WRITE_SECONDS = 0.03  # that entries are gathered before they are stored together
DECODED_MAX = 1_048_576  # bytes of records that are decompressed before other requests get a turn: about 1 ms
QUEUE_MAX = 33_554_432  # bytes of records that wait to be stored; beyond that they are not shared
EXPIRY_SECONDS = 300.0  # between two deletions of expired entries, for times when nothing is stored

log = structlog.get_logger()


class SharedLookup(NamedTuple):
    """Result of one look-up: records of the query, in all selections. `claimed`: the caller has to store or release the
    key; `busy`: another worker executes the query. With neither the query is the caller's own business."""

    records: list[CachedRecords]
    claimed: bool = False
    busy: bool = False


NOTHING = SharedLookup([])
CLAIMED, BUSY = SharedLookup([], claimed=True), SharedLookup([], busy=True)


class _QueuedEntry(NamedTuple):
    """Entry that waits to be stored."""

    application: str
    records: list[CachedRecords]
    aliases: Sequence[bytes]


class _Batch:
    """Keys of one turn of the event loop, which are looked up together."""

    def __init__(self) -> None:
        self.keys: dict[bytes, None] = {}
        self.lookups: asyncio.Future[dict[bytes, SharedLookup]] = asyncio.get_running_loop().create_future()


class _Breaker:
    """Circuit breaker of the store: suspends the shared cache for some seconds after a failure."""

    def __init__(self, clock: Clock, failures: Counter) -> None:
        self._clock = clock
        self._failures = failures
        self._until = 0.0
        self._failed: set[str] = set()  # operations whose last use failed

    @property
    def is_open(self) -> bool:
        """Whether the store is to be left alone."""
        return bool(self._failed) and self._clock.monotonic() < self._until

    @asynccontextmanager
    async def guard(self, operation: str, seconds: float) -> AsyncIterator[None]:
        """Limit an operation on the store in time; after a failure suspend the shared cache, and say so once."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except (errors.StoreUnavailable, TimeoutError) as error:
            self._failures.labels(operation).inc()
            self._until = self._clock.monotonic() + COOLDOWN
            if not self._failed:
                log.warning("shared cache suspended", exc_info=error)
            self._failed.add(operation)
        else:
            self.succeed(operation)

    def succeed(self, operation: str) -> None:
        """Record that an operation has succeeded."""
        if operation in self._failed:
            # On a full disk look-ups succeed and writes fail: one must not report the end of the other's trouble.
            self._failed -= {"put", "release"} if operation == "put" else {operation}
            if not self._failed:
                log.info("shared cache resumed")


class _Writes:
    """What waits to be stored, several entries at a time, and the claims of this process until then."""

    def __init__(self, store: CacheStore, breaker: _Breaker, lifetime: float, entry_format: EntryFormat) -> None:
        self._store = store
        self._breaker = breaker
        self._lifetime = lifetime
        self._format = entry_format
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cache compression")
        self.claimed: dict[bytes, int] = {}  # and how often the lease was renewed
        self._queue: dict[bytes, _QueuedEntry] = {}
        self._queued_bytes = 0
        self._released: set[bytes] = set()
        self._writer: asyncio.Task[None] | None = None

    def put(self, key: bytes, entry: _QueuedEntry) -> None:
        """Store an entry soon, unless too much is waiting."""
        size = sum([len(each.records) for each in entry.records])
        if self._queued_bytes + size <= QUEUE_MAX:
            self._queue[key] = entry
            self._queued_bytes += size
            self._write_soon()

    def release(self, keys: Iterable[bytes]) -> None:
        """Release claims, except of keys whose results are about to be stored."""
        released = {key for key in keys if key in self.claimed and key not in self._queue}
        if released:
            self._released |= released
            self._write_soon()

    def retake(self, keys: Iterable[bytes]) -> set[bytes]:
        """Keep claims that are about to be released, for another request of this process; return their keys."""
        kept = self._released.intersection(keys)
        self._released -= kept
        return kept

    async def renew(self) -> None:
        """Renew leases while the upstream is slow, so that no other worker sends it the same query. Bounded, because a
        request may hang."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if renewed := [key for key, renewals in self.claimed.items() if renewals < RENEWALS_MAX]:
                async with self._breaker.guard("release", LOOK_UP_TIMEOUT):
                    await self._store.renew(renewed)
                self.claimed.update({key: self.claimed[key] + 1 for key in renewed if key in self.claimed})

    async def flush(self) -> None:
        """Wait until all that is waiting is stored, or could not be."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _write_soon(self) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="shared cache writes")

    async def _write(self) -> None:
        """Store what is queued, and release claims, until nothing is left."""
        while self._queue or self._released:
            await asyncio.sleep(WRITE_SECONDS)
            queue, released = self._queue, self._released
            self._queue, self._released, self._queued_bytes = {}, set(), 0
            try:
                if queue:
                    released |= await self._put(queue)
                for key in released:  # from now on a look-up asks the store again
                    self.claimed.pop(key, None)
                if released:
                    async with self._breaker.guard("release", LOOK_UP_TIMEOUT):
                        await self._store.release(list(released))
            finally:
                for key in queue:
                    self.claimed.pop(key, None)

    async def _put(self, queue: dict[bytes, _QueuedEntry]) -> set[bytes]:
        """Encode and store entries; return the keys of those that are not stored, and so may still be claimed."""
        left = set(queue)
        async with self._breaker.guard("put", WRITE_TIMEOUT):
            run = asyncio.get_running_loop().run_in_executor
            contents = await run(self._thread, self._format.encode, [entry.records for entry in queue.values()])
            records = []
            for (key, entry), content in zip(queue.items(), contents, strict=True):
                if content is not None:
                    # An entry ends with its oldest selection: none is kept for longer than it may be used.
                    times = [each.stored for each in entry.records]
                    until = min(times) + self._lifetime
                    records.append(CacheRecord(key, entry.application, max(times), until, content, entry.aliases))
            await self._store.put(records)
            left -= {record.key for record in records}
        return left


class SharedCache:
    """Shared cache on a store. Without `claims` it only keeps entries."""

    def __init__(
        self, store: CacheStore, settings: config.CacheSettings, scope: bytes, *, claims: bool, metrics: Metrics
    ) -> None:
        self._store = store
        self._seconds = settings.seconds
        self.key = SharedKeys(scope).key
        self._claims = claims
        self._metrics = metrics
        self._clock: Clock = metrics.clock
        self._batch: _Batch | None = None
        self._breaker = _Breaker(metrics.clock, metrics.shared_cache_failures)
        self._format = EntryFormat()
        self._writes = _Writes(store, self._breaker, settings.lifetime, self._format)
        self._claimed = self._writes.claimed
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start to delete expired entries and to renew claims regularly."""
        self._start(self._expire())
        self._start(self._writes.renew())

    async def close(self) -> None:
        """Store what is waiting, and close the store."""
        for task in self._tasks:
            task.cancel()
        await self.flush()
        self._writes.close()
        await self._store.aclose()

    async def look_up(self, keys: Sequence[bytes], *, claim_fresh: bool = False) -> list[SharedLookup]:
        """Look keys up: at once where the store can, otherwise together with those of other requests in this turn of
        the event loop. Keys without a fresh entry are claimed; with `claim_fresh` all that nobody else has claimed."""
        if self._breaker.is_open:
            return [NOTHING] * len(keys)
        # A request that was refused or cancelled releases keys whose work another one of this process takes over.
        if kept := self._writes.retake(keys):
            others = [key for key in keys if key not in kept]
            try:
                found = dict(zip(others, await self.look_up(others, claim_fresh=claim_fresh), strict=True))
            except BaseException:
                self.release(kept)
                raise
            found |= dict.fromkeys(kept, CLAIMED)
            return [found[key] for key in keys]
        # What this process has claimed is in flight here: coalescing within the process takes care of it.
        wanted = dict.fromkeys([key for key in keys if key not in self._claimed])
        if not wanted:
            return [NOTHING] * len(keys)
        fresh_from = math.inf if claim_fresh else self._clock.now() - self._seconds
        entries = self._store.look_up_now([*wanted], fresh_from, self._claims)
        if entries is None:
            return await self._look_up_in_turn(keys, wanted, claim_fresh=claim_fresh)
        self._breaker.succeed("look_up")
        lookups = await self._decoded_lookups(wanted, entries, fresh_from)
        return [lookups.pop(key, NOTHING) for key in keys]  # of equal keys the first owns the claim

    async def _look_up_in_turn(
        self, keys: Sequence[bytes], wanted: dict[bytes, None], *, claim_fresh: bool
    ) -> list[SharedLookup]:
        batch = self._batch
        if batch is None or claim_fresh:
            batch = _Batch()
            asyncio.get_running_loop().call_soon(self._flush, batch, claim_fresh)
            self._batch = self._batch if claim_fresh else batch
        own = [key for key in wanted if key not in batch.keys]
        batch.keys |= wanted
        try:
            lookups = await asyncio.shield(batch.lookups)
        except asyncio.CancelledError:
            batch.lookups.add_done_callback(lambda done: self.release(key for key in own if done.result()[key].claimed))
            raise
        # Of several requests with the same key the first owns the claim.
        return [_for(lookups.get(key, NOTHING), key in own) for key in keys]

    async def peek(self, keys: Sequence[bytes]) -> list[list[CachedRecords]]:
        """Return the records of keys without claiming any. For patient callers, whom a miss costs parts: they wait
        longer for the store, and try it again after a failure."""
        entries = [CacheLookup(None, claimed=False)] * len(keys)
        if keys:
            async with self._breaker.guard("look_up", WRITE_TIMEOUT):
                entries = await self._store.look_up(keys, self._clock.now() - self._seconds, claim=False)
        return [[] if content is None else self._decoded(content) for content, _ in entries]

    async def wait(
        self, keys: Sequence[bytes], until: float = math.inf, *, claim_fresh: bool = False
    ) -> list[SharedLookup]:
        """Wait until other workers have stored or released these keys, but not longer than WAIT_SECONDS, nor beyond
        `until` by the event loop's clock. Ends early with a claim: two workers must not wait for each other's."""
        lookups: dict[bytes, SharedLookup] = {}
        busy, pause = list(dict.fromkeys(keys)), PAUSE_FIRST
        now = asyncio.get_running_loop().time
        end = min(now() + WAIT_SECONDS, until)
        try:
            while busy and now() < end and not any(each.claimed for each in lookups.values()):
                await asyncio.sleep(pause)
                pause = min(pause * PAUSE_GROWTH, PAUSE_MAX)
                lookups |= zip(busy, await self.look_up(busy, claim_fresh=claim_fresh), strict=True)
                busy = [key for key in busy if lookups[key].busy]
        except asyncio.CancelledError:
            self.release(key for key, each in lookups.items() if each.claimed)
            raise
        return [lookups.get(key, NOTHING)._replace(busy=key in busy and now() < end) for key in keys]

    def put(
        self, application: Application, key: bytes, records: list[CachedRecords], aliases: Sequence[bytes] = ()
    ) -> None:
        """Store the records of a query soon, and release the claim on it then. They are found by `aliases`, too."""
        if records and not self._breaker.is_open:
            self._writes.put(key, _QueuedEntry(application.name, records, aliases))

    async def flush(self) -> None:
        """Wait until the results so far are stored, or could not be."""
        await self._writes.flush()

    async def usage(self) -> list[CacheUsage]:
        """Return the usage of every application with entries, by name. Raises StoreUnavailable."""
        return await self._store.cache_usage()

    async def clear(self, application: str | None) -> int:
        """Delete the entries of an application, or all; return how many. Raises StoreUnavailable."""
        await self.flush()  # else what is waiting would be stored after it
        return await self._store.clear(application)

    def release(self, keys: Iterable[bytes]) -> None:
        """Release claims, except of keys whose results are about to be stored."""
        self._writes.release(keys)

    def _flush(self, batch: _Batch, claim_fresh: bool) -> None:
        if self._batch is batch:
            self._batch = None
        self._start(self._fill(batch, claim_fresh))

    async def _fill(self, batch: _Batch, claim_fresh: bool) -> None:
        """Look a batch up. Its requests go on without results if that fails."""
        keys = list(batch.keys)
        lookups = dict.fromkeys(keys, NOTHING)
        fresh_from = math.inf if claim_fresh else self._clock.now() - self._seconds
        entries: list[CacheLookup] = []
        try:
            async with self._breaker.guard("look_up", LOOK_UP_TIMEOUT):
                entries = await self._store.look_up(keys, fresh_from, self._claims)
            if entries:
                lookups = await self._decoded_lookups(keys, entries, fresh_from)
        finally:
            batch.lookups.set_result(lookups)

    async def _decoded_lookups(
        self, keys: Iterable[bytes], entries: Sequence[CacheLookup], fresh_from: float
    ) -> dict[bytes, SharedLookup]:
        """Decode entries, with other requests in between, and note what is claimed."""
        lookups: dict[bytes, SharedLookup] = {}
        decoded_bytes = 0
        self._claimed.update({key: 0 for key, (_, claimed) in zip(keys, entries, strict=True) if claimed})
        try:
            for key, (content, claimed) in zip(keys, entries, strict=True):
                if content is None:
                    lookups[key] = CLAIMED if claimed else BUSY if self._claims else NOTHING
                    continue
                records = self._decoded(content)
                is_fresh = any(each.stored >= fresh_from for each in records)
                # Nobody executes what has an unreadable entry, unless the caller claims fresh ones, too: it is fresh.
                is_unclaimed = is_fresh or not (records or fresh_from == math.inf)
                busy = self._claims and not (claimed or is_unclaimed)
                lookups[key] = SharedLookup(records, claimed, busy)
                decoded_bytes += sum([len(each.records) for each in records])
                if decoded_bytes > DECODED_MAX:
                    await asyncio.sleep(0)
                    decoded_bytes = 0
        except asyncio.CancelledError:
            self.release(key for key, (_, claimed) in zip(keys, entries, strict=True) if claimed)
            raise
        return lookups

    def _decoded(self, content: bytes) -> list[CachedRecords]:
        """Return the records of an entry; none of one that cannot be read."""
        try:
            return self._format.decode(content)
        except UNREADABLE as error:
            self._metrics.shared_cache_failures.labels("decode").inc()
            log.warning("shared cache entry ignored", exc_info=error)
            return []

    async def _expire(self) -> None:
        async with self._breaker.guard("look_up", LOOK_UP_TIMEOUT):
            await self._store.look_up([], 0.0, self._claims)  # opens it, so that no request has to wait for that
        while True:
            async with self._breaker.guard("put", WRITE_TIMEOUT):
                await self._store.put([])
            await asyncio.sleep(EXPIRY_SECONDS)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work, name="shared cache")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _for(lookup: SharedLookup, is_owner: bool) -> SharedLookup:
    return lookup if is_owner or not lookup.claimed else lookup._replace(claimed=False)
