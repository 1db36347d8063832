"""Queries of one request for parts: their cache keys, their renderer, and their execution plans. Pure."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol, Self

import msgspec

from proxy import errors, model
from proxy.gateway.applications import Client
from proxy.gateway.cache.entries import MATCH, PART, CacheKey, ItemRenderer, RenderedResult
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.mapping.compiler import CompiledObject
from proxy.planning import match, parts, search
from proxy.planning.operations import MATCHES, OperationResult, PlannedOperation, QueryResult
from proxy.planning.projection_cache import CompiledParts, ProjectionCache

BATCH_OPERATION: match.SingleQuery = "supMultiMatch"  # of a request's queries, however few of them are misses

ONLY_MATCHES = frozenset({MATCHES})

Results = Mapping[int, OperationResult]


class GatewayRequest(NamedTuple):
    """Request of an authenticated client: its projection, the context of the mapping, and the response's metadata.

    With `refresh` all queries miss the caches, and their results replace the entries there. Without `is_whole` only the
    fields are fetched that the projection shows.
    """

    client: Client
    projection: model.Projection
    context: model.MappingContext
    metadata: ResponseMetadata
    refresh: bool = False
    is_whole: bool = True

    @classmethod
    def of(
        cls,
        client: Client,
        projection: model.Projection,
        slices: dict[model.Path, slice],
        metadata: ResponseMetadata,
    ) -> Self:
        """Make the request of a client; the slices of its lists become part of the context."""
        context = client.application.context
        if slices:
            context = msgspec.structs.replace(context, cuts=slices)
        return cls(client, projection, context, metadata)

    @property
    def as_shown(self) -> Self:
        """This request with only the fields fetched that its projection shows."""
        return self._replace(is_whole=False)

    @property
    def known_features(self) -> frozenset[str] | None:
        """Features that the plan is known to have; None where no whole parts are fetched."""
        return self.client.application.known_features if self.is_whole else None

    def key(self, *query: Hashable) -> CacheKey:
        """Return the cache key of a query. Applications share no entries: each pays for its own; nor do markets."""
        application, market = self.client.application, (self.context.country, self.context.currency)
        scope = application.cache_scope
        if market != (application.context.country, application.context.currency):
            scope = " ".join((scope, *market))
        return CacheKey((scope, *query), self.context)

    def match_key(self, options: Hashable, query: model.PartsMatchQuery) -> CacheKey:
        """Return the cache key of a query of parts/match, or of a supMultiMatch with these options."""
        return self.key(MATCH, options, *query.criteria)

    def part_key(self, uid: str) -> CacheKey:
        """Return the cache key of a part by one of its ids."""
        return self.key(PART, uid)

    def renderer(
        self,
        part: CompiledObject,
        fields: frozenset[str],
        facts: frozenset[str] = match.NO_FACTS,
        projection: Hashable = None,
    ) -> ItemRenderer:
        """Return the renderer of records with these fetched fields, and of pages with these facts, in this request's
        projection or that of another dialect."""
        cuts = tuple((path, cut.start, cut.stop) for path, cut in self.context.cuts.items())
        return ItemRenderer(projection or (self.projection, cuts), part, fields, facts)


class ExecutionPlan(Protocol):
    """Operations of some queries: `operations` first, then those that count what they leave open."""

    @property
    def operations(self) -> list[PlannedOperation]:
        """Operations that can be executed at once."""

    def count_operations(self, results: dict[int, OperationResult]) -> list[PlannedOperation]:
        """Return the operations that count hits which the results leave open."""

    def results(self, results: dict[int, OperationResult], counted: dict[int, OperationResult]) -> list[QueryResult]:
        """Return a result for each query."""


class QuerySet(Protocol):
    """Queries of one request; a position is the number of a query."""

    @property
    def keys(self) -> Sequence[CacheKey]:
        """Cache key of each query."""

    @property
    def renderer(self) -> ItemRenderer:
        """Renderer of their results."""

    @property
    def features(self) -> frozenset[str]:
        """Features of a plan that their operations need."""

    @property
    def ranged(self) -> Collection[int]:
        """Positions of queries of which a page can be fetched without its beginning."""

    def plan(self, positions: list[int], stored: Mapping[int, int]) -> ExecutionPlan:
        """Plan the execution of the queries at these positions, without the first so many parts of their pages, which
        are `stored`."""


class MatchQueries:
    """Queries of parts/match, except invalid ones."""

    def __init__(
        self,
        request: GatewayRequest,
        parameters: model.PartsMatchRequest,
        projections: ProjectionCache,
        single_query: match.SingleQuery,
    ) -> None:
        # Only then are SKUs compared here; otherwise the upstream matches them, and the projection may leave them out.
        uses_skus = parameters.exact_only and any(query.mpn_or_sku or query.sku for query in parameters.queries)
        compiled = projections.match(request.projection, uses_skus, request.known_features)
        self._parameters = parameters
        self._documents = compiled.documents
        self._decode = compiled.part.decode
        self.features = compiled.fetched.features
        self._context = request.context
        self._knowledge = request.client.application.plan
        self._queries = [query for query in parameters.queries if query.error is None]
        # By all queries of the request, not by its misses: else a cached neighbor would change which operation
        # answers.
        self._single_query = single_query if len(self._queries) == 1 else BATCH_OPERATION
        self.keys = [request.match_key(parameters.exact_only, query) for query in self._queries]
        self.renderer = request.renderer(compiled.part, compiled.fetched.fields, ONLY_MATCHES)

    @property
    def ranged(self) -> Collection[int]:
        exact_only = self._parameters.exact_only
        return [n for n, query in enumerate(self._queries) if match.is_ranged(query, exact_only)]

    def plan(self, positions: list[int], stored: Mapping[int, int]) -> match.MatchPlan:
        is_whole = len(positions) == len(self._parameters.queries) and not stored
        queries = tuple(match.behind(self._queries[n], stored.get(n, 0)) for n in positions)
        misses = self._parameters if is_whole else model.PartsMatchRequest(queries, self._parameters.exact_only)
        batch = self._knowledge.batch_parts
        return match.MatchPlan(
            misses, self._documents, self._decode, self._context, self._single_query, batch_parts=batch
        )


class UidQueries:
    """Parts by uid, each a query of its own."""

    ranged: Collection[int] = ()

    def __init__(self, request: GatewayRequest, uids: list[str], projections: ProjectionCache) -> None:
        self._compiled = projections.parts(request.projection, request.known_features)
        self.features = self._compiled.fetched.features
        self._context = request.context
        self._knowledge = request.client.application.plan
        self.uids = parts.valid_uids(uids)
        self.keys = [
            # The uid is part of the context, because a mapping reads it: a redirected part lists the uid it was
            # requested by.
            CacheKey(request.part_key(uid).key, msgspec.structs.replace(request.context, requested_uid=uid))
            for uid in self.uids
        ]
        self.renderer = request.renderer(self._compiled.part, self._compiled.fetched.fields)

    def plan(self, positions: list[int], _: Mapping[int, int]) -> ExecutionPlan:
        uids = [self.uids[n] for n in positions]
        compiled, batch = self._compiled, self._knowledge.batch_parts
        operations = parts.operations(uids, compiled.document, compiled.part.decode, self._context, batch)
        return _UidPlan(operations, len(uids))


class _UidPlan(NamedTuple):
    operations: list[PlannedOperation]
    number: int

    def count_operations(self, _: Results) -> list[PlannedOperation]:
        return []

    def results(self, results: Results, _: Results) -> list[QueryResult]:
        return [parts.query_result(results[n]) for n in range(self.number)]


class SearchQuery:
    """The one query of parts/search."""

    ranged: Collection[int] = ()

    def __init__(
        self,
        request: GatewayRequest,
        parameters: model.SearchRequest,
        plan: search.Plan,
        projections: ProjectionCache,
    ) -> None:
        self._plan = plan
        self._projections = projections
        self._context = request.context
        self._compiled: CompiledParts = plan.page(projections, request.projection, request.known_features)
        self.features = self._compiled.fetched.features
        # The whole request is one entry: counts and page depend on every parameter.
        self.keys = [request.key(parameters)]
        self.renderer = request.renderer(self._compiled.part, self._compiled.fetched.fields)

    def plan(self, _: list[int], stored: Mapping[int, int]) -> ExecutionPlan:  # noqa: ARG002 - one entry, no pages
        operations = self._plan.operations(self._projections, self._compiled, self._context)
        return _SearchPlan(operations, self._plan)


class _SearchPlan(NamedTuple):
    operations: list[PlannedOperation]
    plan: search.Plan

    def count_operations(self, _: Results) -> list[PlannedOperation]:
        return []

    def results(self, results: Results, _: Results) -> list[QueryResult]:
        """Return the result. Raises BadRequest for a refused search: its cause is in the request, such as the name
        of a spec."""
        for each in results.values():
            if each.error is not None and each.failure is None:
                raise errors.BadRequest(f"the service refuses this search: {each.error}")
        try:
            return [self.plan.result(dict(results))]
        except (ValueError, OverflowError) as error:  # the schema allows invalid ids and times
            raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error


class V3Queries:
    """Makes the queries of v3 requests for parts. `single_query` is the operation for a single query of parts/match."""

    def __init__(self, projections: ProjectionCache, single_query: match.SingleQuery) -> None:
        self._projections = projections
        self._single_query = single_query

    def match_parts(self, request: GatewayRequest, parameters: model.PartsMatchRequest) -> QuerySet:
        """Make those of parts/match, except invalid ones."""
        return MatchQueries(request, parameters, self._projections, self._single_query)

    def parts_by_uid(self, request: GatewayRequest, uids: list[str]) -> QuerySet:
        """Make those of parts by uid, except invalid ones."""
        return UidQueries(request, uids, self._projections)

    def search_parts(self, request: GatewayRequest, parameters: model.SearchRequest, plan: search.Plan) -> QuerySet:
        """Make the one of parts/search."""
        return SearchQuery(request, parameters, plan, self._projections)


def require_any(results: Sequence[RenderedResult]) -> Sequence[RenderedResult]:
    """Return results that are independent of each other. Raises the first failure if all have failed."""
    failures = [result.failure for result in results if result.failure is not None]
    if failures and len(failures) == len(results):
        raise failures[0].shared()
    return results


def require_all(results: Sequence[RenderedResult]) -> Sequence[RenderedResult]:
    """Return results that are useful only together. Raises the first failure or error."""
    for result in results:
        if result.failure is not None:
            raise result.failure.shared()
        if result.error is not None:
            raise errors.QueryRefused(result.error)
    return results
