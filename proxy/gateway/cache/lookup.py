"""Lookup of one request's queries in the response cache, in the shared cache and among the queries in flight.

By query, not by request: of a BOM that overlaps another only the new queries are executed. The lookup says which
queries hit and which miss; the pipeline executes the misses and stores their results here.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import structlog
from msgspec.structs import replace

from proxy import errors
from proxy.gateway.cache.coalescing import Coalescing, Share
from proxy.gateway.cache.entries import Head, RenderedResult, ResponseCache
from proxy.gateway.cache.shared import SharedCache
from proxy.gateway.cache.shared_misses import SharedMisses
from proxy.gateway.queries import GatewayRequest, QuerySet
from proxy.planning.operations import COMPLETE, PartialResponse
from proxy.telemetry.metrics import Metrics

log = structlog.get_logger()


class QueryCache:
    """Response cache and request coalescing of one process, and the cache that it shares. Any of them can be absent;
    without a response cache nothing is shared."""

    def __init__(
        self,
        entries: ResponseCache | None,
        in_flight: Coalescing[Hashable, Any, RenderedResult] | None,
        metrics: Metrics,
        shared: SharedCache | None = None,
    ) -> None:
        self.entries = entries
        self.shared = shared
        self.in_flight = in_flight
        self.metrics = metrics
        # Clears the cache of responses that are made of these entries.
        self.clear_responses: Callable[[], None] | None = None
        self.refreshed: set[str] = set()  # applications with entries that other processes have in an older form

    def activate(self) -> None:
        """Make this the cache whose size is limited and reported: that of the current configuration."""
        if self.entries is not None:
            self.entries.activate()
            self.metrics.caches["queries"] = self.entries.usage

    def clear(self, application: str | None) -> None:
        """Remove the entries of an application, or all, from the memory of this process.

        Responses that are made of them are removed as a whole: to make them again costs no parts.
        """
        if self.entries is not None:
            self.entries.clear(application)
        if self.clear_responses is not None:
            self.clear_responses()

    def note_refresh(self, application: str) -> None:
        """Note that entries of an application were replaced before their time. Other processes then clear theirs, if
        they can find the new ones in the shared cache."""
        if self.clear_responses is not None:
            self.clear_responses()
        if self.shared is not None:
            self.refreshed.add(application)

    def look_up(self, request: GatewayRequest, queries: QuerySet, known: Mapping[int, RenderedResult]) -> "Lookup":
        """Look up the queries of a request, except those with known results."""
        return Lookup(self, request, queries, known)

    async def peek(self, request: GatewayRequest, queries: QuerySet) -> list[RenderedResult | None]:
        """Return the results of queries that are cached, first of this process, then in the shared cache; None for the
        others. Claims nothing."""
        keys, renderer, application = queries.keys, queries.renderer, request.client.application
        entries = self.entries
        if entries is None:
            return [None] * len(keys)
        results = [entries.get(key, renderer) for key in keys]
        if self.shared is not None:
            misses = [n for n, result in enumerate(results) if not result]
            digests = {n: digest for n in misses if (digest := self.shared.key(application, keys[n].key)) is not None}
            for position, records in zip(digests, await self.shared.peek([*digests.values()]), strict=True):
                # One at a time: a small cache may not have room for all.
                entries.add(keys[position], records)
                results[position] = entries.get(keys[position], renderer)
        return results


class Lookup:
    """Queries of one request, the results that are known, and `misses`: the positions of those that are not."""

    def __init__(
        self, cache: QueryCache, request: GatewayRequest, queries: QuerySet, known: Mapping[int, RenderedResult]
    ) -> None:
        self._cache = cache
        self._entries = cache.entries
        self._in_flight = cache.in_flight
        self._metrics = cache.metrics
        self.request = request
        self.queries = queries
        self._shared: SharedMisses | None = None
        if cache.shared is not None and cache.entries is not None:
            self._shared = SharedMisses(cache.shared, cache.entries, request.client.application, queries)
        self._executed: set[int] = set()
        self._results: dict[int, RenderedResult] = {}
        keys, renderer = queries.keys, queries.renderer
        if self._entries is not None and not request.refresh:
            cached = {n: self._entries.get(key, renderer) for n, key in enumerate(keys) if n not in known}
            self._results = {n: each for n, each in cached.items() if each is not None}
            if self._results:
                self._count("hit", self._results)
        self._results |= known
        self.misses = [n for n in range(len(keys)) if n not in self._results]

    async def look_up_shared(self) -> None:
        """Look the misses up in the shared cache, which may be absent. It claims what it does not have, so that no
        other worker executes it: `release_shared` must follow."""
        if self._shared is None or not self.misses or self.request.refresh:
            return
        results = await self._shared.look_up(self.misses)
        if results:
            self._results |= results
            self._count("hit", results)
            self.misses = [n for n in self.misses if n not in results]
        self._count_shared("hit", len(results))
        self._count_shared("miss", len(self.misses) - self._shared.busy_count)

    def executed_elsewhere(self, positions: Sequence[int]) -> list[int]:
        """Return those of the positions that another worker executes."""
        return [] if self._shared is None else self._shared.executed_elsewhere(positions)

    async def wait_shared(self, positions: Sequence[int]) -> dict[int, RenderedResult]:
        """Wait for results of other workers; return them by position."""
        assert self._shared is not None  # noqa: S101 - they are executed elsewhere
        arrived = await self._shared.wait(positions)
        self._results |= arrived
        self._count_shared("waited", len(arrived))
        left = [n for n in positions if n not in arrived]
        self._count_shared("miss", len(left) - len(self._shared.executed_elsewhere(left)))
        return arrived

    def release_shared(self) -> None:
        """Release what was claimed in the shared cache, unless its result is about to be stored there."""
        if self._shared is not None:
            self._shared.release()

    @property
    def is_coalesced(self) -> bool:
        """Whether other requests may wait for the misses of this one."""
        return self._in_flight is not None

    def claim(self) -> Share[Hashable, Any, RenderedResult]:
        """Claim the misses that are not in flight, and join the others. Only where requests are coalesced."""
        assert self._in_flight is not None  # noqa: S101 - the pipeline asks `is_coalesced`
        keys, fetched = self.queries.keys, self.queries.renderer.fetched
        return self._in_flight.join({n: (keys[n].key, fetched) for n in self.misses}, self)

    def complete(self, results: Sequence[RenderedResult]) -> None:
        """Add the results of all misses, in their order. A claim, which costs more, serves only other requests."""
        self._results.update(zip(self.misses, results, strict=True))
        self.misses = []

    def begin(self, positions: Sequence[int]) -> None:
        """Note that these misses are executed for this request."""
        self._executed.update(positions)
        self._count("miss", positions)

    async def wait(self, share: Share[Hashable, Any, RenderedResult]) -> None:
        """Wait for the misses. Those remain whose execution was cancelled, or was refused because of another
        caller's exhausted quota, and those whose result serves only the caller that executed them."""
        results: dict[int, RenderedResult] = share.results()
        left: list[int] = []
        if share.is_waiting:
            results, left = await share.wait()
        left += [n for n, result in results.items() if n not in self._executed and not self._serves(result)]
        self._results |= {n: self._rendered(n, result) for n, result in results.items()}
        if shared := set(self.misses).difference(left, self._executed):
            self._count("shared", shared)
        self.misses = sorted(left)

    def _serves(self, result: RenderedResult) -> bool:
        """Return whether the result of another request is one for this request, too."""
        needed = self.queries.renderer.facts
        if isinstance(result.failure, PartialResponse):
            return COMPLETE in needed  # else its nulls are good enough
        if result.failure is not None or result.error is not None:
            return not result.was_refused
        return needed <= result.facts

    def _rendered(self, position: int, result: RenderedResult) -> RenderedResult:
        """Return a result in the projection of this request: another request may have executed its query."""
        renderer = self.queries.renderer
        if result.projection in (None, renderer.key):
            return result
        try:
            items = renderer.items(renderer.part.decode_list(result.records), self.queries.keys[position].context)
        except errors.UpstreamUnreadable as failure:
            return RenderedResult.failed(failure)
        return replace(result, items=items, projection=renderer.key)

    def heads(self, positions: Sequence[int]) -> dict[int, Head]:
        """Return what is held of the pages at these positions, from their beginnings on: only the rest is fetched."""
        if self._entries is None or self.request.refresh:
            return {}
        ranged, keys, renderer = self.queries.ranged, self.queries.keys, self.queries.renderer
        heads = {n: self._entries.head(keys[n], renderer) for n in positions if n in ranged}
        return {n: head for n, head in heads.items() if head is not None}

    def store(self, position: int, rendered: RenderedResult, head: Head | None = None) -> RenderedResult:
        """Store a result, behind the `head` of its page where there is one; return it as it is to be served: for a
        failure, a stale entry where there is one."""
        if rendered.failure is not None:
            return self._stale_if_error(position, rendered.failure) or rendered
        if rendered.error is not None or self._entries is None:
            return rendered
        key = self.queries.keys[position]
        try:
            stored = self._entries.store(key, self.queries.renderer, rendered, head)
        except errors.UpstreamUnreadable as failure:
            return RenderedResult.failed(failure)
        if self._shared is not None:
            self._shared.store(position, stored.names)
        return stored

    def results(self) -> list[RenderedResult]:
        """Return the result of every query, in order, and note how long all of them are fresh."""
        results = [self._results[n] for n in range(len(self.queries.keys))]
        metadata = self.request.metadata
        if self.request.refresh and self._executed:
            self._cache.note_refresh(self.request.client.application.name)
        if self._entries is None and self._in_flight is None:
            metadata.until = 0.0
        metadata.until = min([metadata.until, *(result.until for result in results)])
        metadata.stored = min([metadata.stored, *(result.stored for result in results)])
        return results

    def stale_entry(self, position: int) -> RenderedResult | None:
        """Return the entry of a query, however old, if there is one."""
        if self._entries is None:
            return None
        stale = self._entries.get(self.queries.keys[position], self.queries.renderer, stale=True)
        if stale is not None:
            self._count("stale", (position,))
        return stale

    def _stale_if_error(self, position: int, failure: errors.BridgeError) -> RenderedResult | None:
        """Return a stale entry while upstream fails. An exhausted quota is no such failure: clients must see it."""
        if not isinstance(failure, errors.ServerError):
            return None
        stale = self.stale_entry(position)
        if stale is not None:
            age = round(self._metrics.clock.monotonic() - stale.stored)
            log.warning("stale response served", age=age, exc_info=failure)
        return stale

    def _count_shared(self, outcome: str, number: int) -> None:
        if number:
            self._metrics.shared_cache_lookups.labels(outcome).inc(number)

    def _count(self, outcome: str, positions: Collection[int]) -> None:
        self.request.metadata.add_results(outcome, len(positions))
        self._metrics.queries.labels(outcome).inc(len(positions))
