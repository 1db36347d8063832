"""Pipeline of one request for parts, from top to bottom:

    authenticate → admit → look up → look up shared → plan → reserve → execute → settle → translate → store

Authentication is the web's (web/authentication.py), which then calls `admit`; the parameters are parsed by
v3/actions.py. The other steps are `resolve` and the two functions below it. No step calls back into an earlier
one: the cache says which queries miss, the pipeline executes them, the cache stores their results and wakes the waiting
requests. A stalled request of the upstream comes as a value in a queue, which `_handle_stalls` reads.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from typing import Any, TypeVar

import msgspec
import structlog
from msgspec.structs import replace

from proxy import errors, model
from proxy.gateway.applications import Client
from proxy.gateway.cache.coalescing import Claim, SecondAttempt, StalledWork
from proxy.gateway.cache.entries import RenderedResult
from proxy.gateway.cache.lookup import Lookup, QueryCache
from proxy.gateway.directory import Directory
from proxy.gateway.queries import (
    GatewayRequest,
    QuerySet,
    V3Queries,
    require_all,
    require_any,
)
from proxy.gateway.quota.reservations import Quota
from proxy.gateway.rate_limit import RateLimits
from proxy.kit.event_loop import in_turns
from proxy.kit.slices import SLICE_BYTES, Slices
from proxy.mapping.tables import Tables
from proxy.planning import match, projection_cache, search, search_support, wildcards
from proxy.planning.listing import ListSearchResult
from proxy.planning.operations import COMPLETE, OperationResult, PlannedOperation, QueryResult, join_records
from proxy.planning.parts import valid_uids
from proxy.telemetry.metrics import Metrics
from proxy.upstream import stalls
from proxy.upstream.batching import Batcher

T = TypeVar("T")
QueryClaim = Claim[Hashable, Lookup, RenderedResult]
REFUSALS = (errors.QueryRefused, errors.OversizedOperation)
ALL_DATA, NO_FACTS = frozenset({COMPLETE}), frozenset[str]()
NO_RESULTS: Mapping[int, RenderedResult] = {}
Watch = stalls.StallWatch[tuple[QueryClaim, list[int]]]
"""Watch for a stall of queries of a claim, at these positions."""

log = structlog.get_logger()


class Pipeline:
    """Resolves v3 requests to results of the GraphQL service."""

    def __init__(
        self,
        *,
        projections: projection_cache.ProjectionCache,
        cache: QueryCache,
        quota: Quota,
        rate_limits: RateLimits,
        upstream: Batcher,
        directory: Directory,
        tables: Tables,
        single_query: match.SingleQuery,
        metrics: Metrics,
    ) -> None:
        self.projections = projections
        self._cache = cache
        self._quota = quota
        self._rate_limits = rate_limits
        self._operations = _Operations(quota, upstream, metrics)
        self._directory = directory
        self._tables = tables
        self._queries = V3Queries(projections, single_query)
        self._metrics = metrics
        self._stalls: asyncio.Queue[stalls.Stall[tuple[QueryClaim, list[int]]]] = asyncio.Queue()
        self._stall_handler: asyncio.Task[None] | None = None
        self._second_attempts: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to handle stalls."""
        self._stall_handler = asyncio.create_task(self._handle_stalls(), name="stalls")

    async def close(self) -> None:
        """Wait for second attempts."""
        if self._stall_handler is not None:
            self._stall_handler.cancel()
            await asyncio.wait((self._stall_handler,))
        while self._second_attempts:
            await asyncio.wait(self._second_attempts)

    def admit(self, client: Client) -> None:
        """Count a request against the rate limit of its API key. Raises TooManyRequests."""
        self._rate_limits.admit(client)

    def quota_status(self, client: Client) -> model.QuotaStatus:
        """Return how many parts are used, and how many may be."""
        return self._quota.status(client.accounts)

    async def match_parts(self, request: GatewayRequest, parameters: model.PartsMatchRequest) -> list[RenderedResult]:
        """Return v3 parts, total hits and an error for each query of parts/match (contract v3-rest.md §4)."""
        resolved = await self.resolve_parts(request, lambda request: self._queries.match_parts(request, parameters))
        results = iter(require_any(resolved))
        return [
            next(results) if query.error is None else RenderedResult(b"[]", 0, query.error)
            for query in parameters.queries
        ]

    async def parts(self, request: GatewayRequest, uids: list[str]) -> dict[str, bytes]:
        """Return parts by requested uid, without those unknown upstream (contract v3-rest.md §1)."""
        results = await self.resolve_parts(request, lambda request: self._queries.parts_by_uid(request, uids))
        known = zip(valid_uids(uids), require_all(results), strict=True)
        return {uid: result.items[1:-1] for uid, result in known if result.hits}

    async def search_parts(self, request: GatewayRequest, parameters: model.SearchRequest) -> RenderedResult:
        """Return the page of parts/search, with all other details of its response (contract v3-rest.md §3.6)."""
        plan = await _search_plan(self._directory, self._tables, request, parameters)
        request.metadata.ignore(plan.unsupported)
        results = await self.resolve_parts(
            request, lambda request: self._queries.search_parts(request, parameters, plan)
        )
        return require_all(results)[0]

    async def resolve_parts(
        self, request: GatewayRequest, queries: Callable[[GatewayRequest], QuerySet]
    ) -> list[RenderedResult]:
        """Resolve queries, of whole parts if they are configured. Those that the upstream refuses, or whose response is
        too large, are resolved once more, and what helped is remembered for the application: a smaller batch, parts
        without a feature of the plan, or only the fields that the queries show."""
        application = request.client.application
        if application.plan.refused and (narrow := queries(request.as_shown)).features in application.plan.refused:
            results = await self.resolve(request.as_shown, narrow)
            if any(result.error is None for result in results):  # the refusal was that of another query
                application.plan.refused.discard(narrow.features)
            return results
        results = await self.resolve(request, queries(request))
        refused = {n: r.failure for n, r in enumerate(results) if isinstance(r.failure, REFUSALS)}
        if not refused:
            return results
        kept = {n: result for n, result in enumerate(results) if n not in refused}
        narrow = queries(request.as_shown)
        is_whole = application.plan.adapt(
            application.name, refused.values(), narrow.features, self.projections.features_named
        )
        if is_whole:
            results = await self.resolve(request, queries(request), kept)
        else:
            results = await self.resolve(request.as_shown, narrow, kept)
        if any(results[n].error is None for n in refused):
            if not is_whole:
                application.plan.refuses_whole = True
                application.plan.shown &= narrow.features  # of the others, any may be the reason
                reason = next(iter(refused.values()))
                log.warning("whole parts refused", application=application.name, reason=str(reason))
        elif narrow.features:
            application.plan.refused.add(narrow.features)
        # No third attempt: a refusal is the error of its query now.
        return [replace(r, failure=None) if isinstance(r.failure, errors.QueryRefused) else r for r in results]

    async def resolve(
        self, request: GatewayRequest, queries: QuerySet, kept: Mapping[int, RenderedResult] = NO_RESULTS
    ) -> list[RenderedResult]:
        """Resolve queries to results: hits from a cache, misses by this request or one that executes them already;
        those that are kept of an earlier attempt stay as they are."""
        lookup = self._cache.look_up(request, queries, kept)
        try:
            await lookup.look_up_shared()
            await self._resolve_misses(lookup)
        finally:
            lookup.release_shared()
        return lookup.results()

    async def _resolve_misses(self, lookup: Lookup) -> None:
        """Resolve what no cache has, in one round, unless a request that executed queries for this one was cancelled,
        or had no quota."""
        if lookup.misses and not lookup.is_coalesced:
            lookup.complete(await self._execute_misses(lookup, lookup.misses, None))
        while lookup.misses:
            share = lookup.claim()
            if share.stalled is not None:
                self._replace_stalled(share.stalled)
            with share:
                if share.claim is not None:
                    share.finish(await self._execute_claimed(lookup, share.claim))
            await lookup.wait(share)
            if lookup.misses:  # the request that executed them has released what it had claimed in the shared cache
                await lookup.look_up_shared()

    async def _execute_claimed(self, lookup: Lookup, claim: QueryClaim) -> list[RenderedResult]:
        """Execute the queries of a claim, except those that another worker or machine executes already.

        Its own come first, so that two workers never wait for each other: also those that it can claim meanwhile.
        """
        results: dict[int, RenderedResult] = {}
        while True:
            elsewhere = lookup.executed_elsewhere(claim.positions)
            if own := [n for n in claim.positions if n not in results and n not in elsewhere]:
                results |= zip(own, await self._execute_misses(lookup, own, claim), strict=True)
            if not elsewhere:
                return [results[n] for n in claim.positions]
            claim.finish_early(results)
            results |= await lookup.wait_shared(elsewhere)

    async def _execute_misses(
        self, lookup: Lookup, positions: list[int], claim: QueryClaim | None
    ) -> list[RenderedResult]:
        """Plan, execute, translate and store the queries at these positions. Those of a `claim` are watched for a
        stall: not those of a second attempt (there is no third), nor without coalescing (nothing waits)."""
        queries, request = lookup.queries, lookup.request

        heads = lookup.heads(positions)
        plan = queries.plan(positions, {n: len(head.records) for n, head in heads.items()})
        lookup.begin(positions)

        watch = None if claim is None else stalls.StallWatch(self._stalls, (claim, positions))
        is_whole = self.projections.is_whole and request.known_features is not None
        fetched = await self._operations.execute(request, plan.operations, watch, is_whole=is_whole)
        counted = await self._operations.execute(request, plan.count_operations(fetched), watch)

        results = plan.results(fetched, counted)
        partial = {n for n, each in fetched.items() if each.reported}
        if partial and len(positions) == 1:  # one query may have several operations, of which any may be partial
            partial = {0}
        if unmatched := sum(each.unmatched for each in results):
            self._metrics.parts_unmatched.labels(request.client.application.name).inc(unmatched)
        if any(result.failure is None and result.error is None for result in results):
            request.client.application.plan.shown.update(queries.features)
        rendered = await in_turns(_translate_all(queries, positions, results, partial))
        return [lookup.store(n, result, heads.get(n)) for n, result in zip(positions, rendered, strict=True)]

    async def _handle_stalls(self) -> None:
        """Handle the stalls of requests, one after the other."""
        while True:
            stall = await self._stalls.get()
            claim, positions = stall.subject
            self._replace_stalled(claim.stalled(stall.request, positions))

    def _replace_stalled(self, stalled: StalledWork[Hashable, Lookup, RenderedResult]) -> None:
        """Give those that wait for stalled queries stale entries, or start second attempts."""
        for wait in stalled.waits:
            entry = wait.caller.stale_entry(wait.position)
            if entry is not None:
                wait.resolve(entry)
        self._start_second_attempts(stalled.second_attempts())

    def _start_second_attempts(self, attempts: Iterable[SecondAttempt[Hashable, Lookup, RenderedResult]]) -> None:
        """Start second attempts at stalled queries, each in the context of the caller that waits."""
        for attempt in attempts:
            task = asyncio.create_task(self._repeat(attempt), name="second attempt", context=attempt.context)
            self._second_attempts.add(task)
            task.add_done_callback(self._second_attempts.discard)

    async def _repeat(self, attempt: SecondAttempt[Hashable, Lookup, RenderedResult]) -> None:
        try:
            results = await self._execute_misses(attempt.caller, attempt.positions, None)
        except BaseException as error:
            attempt.fail(error)  # the first attempt goes on
            if not isinstance(error, Exception):
                raise
        else:
            self._start_second_attempts(attempt.finish(results))

    async def listed(self, request: GatewayRequest, name: str, uids: list[str]) -> dict[str, msgspec.Struct]:
        """Return brands, sellers or categories by uid, without unknown ones. Costs nothing."""
        listing = await self._directory.listing(name, request.client.application.credentials, request.metadata.since)
        compiled = self.projections.list_item(name, request.projection)
        records = ((uid, listing.get(uid)) for uid in dict.fromkeys(uids))
        return {uid: compiled.map(record, request.context) for uid, record in records if record is not None}

    async def search_listed(
        self, request: GatewayRequest, name: str, parameters: model.SearchRequest
    ) -> tuple[list[msgspec.Struct], ListSearchResult]:
        """Search brands, sellers or categories by name and field. Costs nothing."""
        listing = await self._directory.listing(name, request.client.application.credentials, request.metadata.since)
        result = await in_turns(listing.search(parameters))
        request.metadata.ignore(result.unknown)
        compiled = self.projections.list_item(name, request.projection)
        return [compiled.map(record, request.context) for record in result.records], result


class _Operations:
    """Executes planned operations within the quota. Nothing else sends operations for parts, so that none is sent whose
    parts are not reserved."""

    def __init__(self, quota: Quota, upstream: Batcher, metrics: Metrics) -> None:
        self._quota = quota
        self._upstream = upstream
        self._metrics = metrics

    async def execute(
        self,
        request: GatewayRequest,
        operations: list[PlannedOperation],
        watch: Watch | None,
        *,
        is_whole: bool = False,
    ) -> dict[int, OperationResult]:
        """Execute operations side by side; one that fails takes nothing from the others. `is_whole`: a refusal may be
        that of whole parts."""
        if len(operations) < 2:
            return await self._execute(request, operations[0], watch, is_whole) if operations else {}
        results = await asyncio.gather(*(self._execute(request, each, watch, is_whole) for each in operations))
        return {position: result for of_operation in results for position, result in of_operation.items()}

    async def _execute(
        self, request: GatewayRequest, operation: PlannedOperation, watch: Watch | None, is_whole: bool
    ) -> dict[int, OperationResult]:
        """Reserve, execute and settle one operation. A refusal by upstream becomes the error of its queries, any
        other exception their failure."""
        try:
            results = await self._execute_reserved(request, operation, watch, is_whole)
        except errors.QueryRefused as refusal:
            failure = refusal if is_whole else None  # `resolve_parts` resolves these queries again
            refused = OperationResult([], 0, refusal.message, failure=failure, refusal=refusal)
            results = [refused] * len(operation.positions)
        except errors.BridgeError as failure:
            results = [OperationResult([], 0, failure.message, failure=failure)] * len(operation.positions)
        return dict(zip(operation.positions, results, strict=True))

    async def _execute_reserved(
        self, request: GatewayRequest, operation: PlannedOperation, watch: Watch | None, is_whole: bool
    ) -> list[OperationResult]:
        client, metadata = request.client, request.metadata
        application = client.application
        if operation.is_free:
            reservation = self._quota.free(client.accounts)
        else:
            reservation = await self._quota.reserve(client.accounts, operation.parts_max)
        try:
            results = await self._upstream.execute(
                operation, application.credentials, metadata.since, watch, application.plan.batch_parts
            )
        except errors.QueryRefused as refusal:
            # A refusal returns no parts. Only that of whole parts, after which they are fetched, is uncertain usage.
            if is_whole:
                metadata.cost += await reservation.release(refusal)
            else:
                await reservation.settle(0)
            raise
        except BaseException as error:
            metadata.cost += await reservation.release(error)
            raise
        returned = sum(len(each.parts) for each in results)
        metadata.cost += returned
        self._metrics.parts.labels(application.name).inc(returned)
        application.plan.measure([len(record) for each in results for record in each.records])
        await reservation.settle(returned)
        return results


async def _search_plan(
    directory: Directory, tables: Tables, request: GatewayRequest, parameters: model.SearchRequest
) -> search.Plan:
    """Plan a search with the shipped tables, and with upstream's lists for a name that is not in them."""
    features, credentials = request.client.application.features, request.client.application.credentials
    filters = await in_turns(search_support.parse_filters(parameters))
    planning = search.plan_with_lists(parameters, filters, tables, features)
    fetched: Any = None
    while True:
        try:
            name = planning.send(fetched)
        except StopIteration as done:
            plan: search.Plan = done.value
            return plan
        if name == projection_cache.ATTRIBUTES:
            fetched = await directory.specs(credentials, request.metadata.since)
            continue
        fetched = await directory.listing(name, credentials, request.metadata.since)
        # Patterns are matched in slices here, so that the plan finds them in the index's cache.
        for pattern in filters.patterns:
            await in_turns(fetched.ids.like(pattern, wildcards.matcher(pattern)))


def _translate_all(
    queries: QuerySet, positions: list[int], results: list[QueryResult], partial: Set[int]
) -> Slices[list[RenderedResult]]:
    """Translate the results of queries, in slices: those of a hundred whole parts take some 50 ms. `partial` are those
    of partial responses."""
    rendered: list[RenderedResult] = []
    size = 0
    for n, (position, result) in enumerate(zip(positions, results, strict=True)):
        if size > SLICE_BYTES:
            size = 0
            yield
        rendered.append(_translate(queries, position, result, NO_FACTS if n in partial else ALL_DATA))
        size += len(rendered[-1].records)
    return rendered


def _translate(queries: QuerySet, position: int, result: QueryResult, facts: frozenset[str]) -> RenderedResult:
    """Translate the result of one query. One that cannot be translated fails alone: the others are paid for, too."""
    if result.failure is not None:
        return RenderedResult.failed(result.failure)
    if result.error is not None:
        return RenderedResult(b"[]", 0, result.error)
    try:
        items = queries.renderer.items(result.parts, queries.keys[position].context)
    except errors.UpstreamUnreadable as failure:
        log.warning("response translation failed", exc_info=failure)
        return RenderedResult.failed(failure)
    records = join_records(result.records)
    return RenderedResult(
        items,
        result.hits,
        details=result.details,
        records=records,
        projection=queries.renderer.key,
        facts=result.facts.union(facts, queries.renderer.facts),
        parts=len(result.records),
        names=queries.renderer.names(result.parts, records),
    )
