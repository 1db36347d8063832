"""Objects of v3 for its endpoints: parts, brands, sellers and categories in the projection of a request.

Every part is decoded and mapped on its own: one that cannot be is left out alone, and named.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import msgspec
import structlog
from msgspec.structs import replace

from proxy import errors, model
from proxy.kit.event_loop import in_turns
from proxy.kit.slices import SLICE_BYTES, Slices
from proxy.mapping.compiler import CompiledObject
from proxy.mapping.tables import Tables
from proxy.next import match, operations, queries
from proxy.next.applications import Client
from proxy.next.free_operations import FreeOperations
from proxy.next.pipeline import Pipeline
from proxy.next.queries import Query
from proxy.next.response_metadata import ResponseMetadata
from proxy.next.results import Answer
from proxy.planning import exact_match
from proxy.planning.listing import Listing, ListSearchResult
from proxy.planning.match import SingleQuery
from proxy.planning.parts import valid_uids
from proxy.planning.projection_cache import ProjectionCache
from proxy.telemetry.metrics import Metrics
from proxy.upstream.auth.identity import Credentials

NO_NEEDS: tuple[str, ...] = ()

log = structlog.get_logger()


class GatewayRequest(NamedTuple):
    """Request of an authenticated client: its projection, the context of the mapping, and the response's metadata."""

    client: Client
    projection: model.Projection
    context: model.MappingContext
    metadata: ResponseMetadata

    @classmethod
    def of(
        cls,
        client: Client,
        projection: model.Projection,
        slices: dict[model.Path, slice],
        metadata: ResponseMetadata,
    ) -> Self:
        """Make the request of a client; the slices of its lists become part of the context."""
        application = client.application
        context = replace(application.context, cuts=slices)
        return cls(client, projection, context, metadata)


class Rendered(msgspec.Struct, frozen=True):
    """Result of a query: v3 objects as JSON, all hits, and what a search says beside them. `failure` is why there is no
    result where that is not the query's own `error`."""

    items: Sequence[msgspec.Raw]
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    details: Any = None


class Lists(Protocol):
    """Lists of the upstream, each fetched within the time of a request that began at `since`."""

    async def listing(self, name: str, credentials: Credentials, since: float) -> Listing:
        """Return the list of `name` objects."""

    async def specs(self, credentials: Credentials, since: float) -> Tables:
        """Return the tables with all specs that the upstream has."""


class V3Objects:
    """Resolves v3 requests, each within `seconds`. `single_query` is where a number goes that is asked for alone."""

    def __init__(
        self,
        pipeline: Pipeline,
        free: FreeOperations,
        projections: ProjectionCache,
        *,
        lists: Lists,
        single_query: SingleQuery,
        seconds: float,
        metrics: Metrics,
    ) -> None:
        self._pipeline = pipeline
        self._free = free
        self._projections = projections
        self._lists = lists
        self._single_query = single_query
        self._seconds = seconds
        self._metrics = metrics

    async def match_parts(self, request: GatewayRequest, parameters: model.PartsMatchRequest) -> list[Rendered]:
        """Return v3 parts, total hits and an error for each query of parts/match (contract v3-rest.md §4)."""
        exact_only = parameters.exact_only
        # Only then are SKUs compared here; otherwise the upstream matches them, and the projection may leave them out.
        uses_skus = exact_only and any(query.mpn_or_sku or query.sku for query in parameters.queries)
        needs = (*exact_match.NUMBERS, *((exact_match.SKUS,) if uses_skus else ()))
        planned = match.of_request(parameters, self._single_query)
        answers = await self._resolve(request, [asked for _, asked in planned])
        rendered = []
        for (query, asked), answer in zip(planned, answers, strict=True):
            if answer.result is None:
                rendered.append(_failed(answer))
                continue
            reader = self._reader(request, answer, needs)
            candidates = await in_turns(reader.read(asked, answer))
            matches = match.shown(query, exact_only, answer.result.hits, candidates)
            hits = matches.hits
            if match.needs_count(query, asked, matches):
                hits = await self._count(request, query, hits)
            if answer.source == "miss":
                unmatched = len(candidates) - len(matches.parts)
                self._metrics.parts_unmatched.labels(request.client.application.name).inc(unmatched)
            items = await in_turns(reader.items(zip(matches.parts, matches.records, strict=True)))
            # `hits` is never less than what the client has been shown, whatever the count says.
            shown = query.start + len(matches.parts) if matches.parts else 0
            rendered.append(Rendered(items, max(hits, shown), "; ".join(reader.unreadable) or None))
        failures = [each.failure for each in rendered if each.failure is not None]
        if failures and len(failures) == len(rendered):
            raise failures[0].shared()
        results = iter(rendered)
        return [next(results) if query.error is None else Rendered((), 0, query.error) for query in parameters.queries]

    async def parts(self, request: GatewayRequest, uids: list[str]) -> dict[str, msgspec.Raw]:
        """Return parts by requested uid, without those unknown upstream (contract v3-rest.md §1)."""
        valid = valid_uids(uids)
        asked = [queries.part(uid) for uid in valid]
        answers = await self._resolve(request, asked)
        found: dict[str, msgspec.Raw] = {}
        unreadable: list[str] = []
        for uid, query, answer in zip(valid, asked, answers, strict=True):
            _require(answer)
            # A mapping reads the uid: a redirected part lists that by which it was requested.
            context = replace(request.context, requested_uid=uid)
            reader = self._reader(request._replace(context=context), answer, NO_NEEDS)
            parts = await in_turns(reader.read(query, answer))
            found.update((uid, item) for item in await in_turns(reader.items(each[:2] for each in parts)))
            unreadable += reader.unreadable
        _require_any(found, unreadable)
        return found

    async def listed(self, request: GatewayRequest, name: str, uids: list[str]) -> dict[str, msgspec.Struct]:
        """Return brands, sellers or categories by uid, without unknown ones. Costs nothing."""
        listing = await self._listing(request, name)
        compiled = self._projections.list_item(name, request.projection)
        records = ((uid, listing.get(uid)) for uid in dict.fromkeys(uids))
        return {uid: compiled.map(record, request.context) for uid, record in records if record is not None}

    async def search_listed(
        self, request: GatewayRequest, name: str, parameters: model.SearchRequest
    ) -> tuple[list[msgspec.Struct], ListSearchResult]:
        """Search brands, sellers or categories by name and field. Costs nothing."""
        listing = await self._listing(request, name)
        result = await in_turns(listing.search(parameters))
        request.metadata.ignore(result.unknown)
        compiled = self._projections.list_item(name, request.projection)
        return [compiled.map(record, request.context) for record in result.records], result

    async def _listing(self, request: GatewayRequest, name: str) -> Listing:
        return await self._lists.listing(name, request.client.application.credentials, request.metadata.since)

    async def _resolve(self, request: GatewayRequest, asked: Sequence[Query]) -> list[Answer]:
        """Resolve queries, and note in the metadata where their answers come from."""
        answers = await self._pipeline.resolve(request.client, asked, request.metadata.since + self._seconds)
        request.metadata.add(answers, self._metrics.clock, request.projection.features)
        for answer in answers:
            self._metrics.queries.labels(answer.source if answer.error is None else "miss").inc()
        return answers

    async def _count(self, request: GatewayRequest, query: model.PartsMatchQuery, at_most: int) -> int:
        """Return how many parts match a query; as many as there may be if that cannot be counted."""
        application = request.client.application
        operation = match.count(query, application.context.country, application.context.currency)
        deadline = request.metadata.since + self._seconds
        try:
            data = await self._free.execute(application, operation, deadline)
        except errors.BridgeError:
            return at_most
        [counted] = operations.counted(data)
        return at_most if counted.error is not None else max(counted.hits, 0)

    def _reader(self, request: GatewayRequest, answer: Answer, needs: tuple[str, ...]) -> "_Reader":
        projection = request.projection
        if not projection.features <= answer.features:
            projection = replace(projection, features=projection.features & answer.features)
        return _Reader(self._projections.part(projection, needs), request.context)


class _Reader:
    """Reads and maps parts in a projection. `unreadable` says which could not be, and why."""

    def __init__(self, compiled: CompiledObject, context: model.MappingContext) -> None:
        self._compiled = compiled
        self._context = context
        self.unreadable: list[str] = []

    def read(self, asked: Query, answer: Answer) -> Slices[list[tuple[Any, bytes, str | None]]]:
        """Return the elements of an answer that a query has asked for: parts, decoded and as they were sent, with the
        alternate MPN that matched."""
        result = answer.result
        assert result is not None  # noqa: S101 - the caller has looked
        page = slice(asked.start - answer.first, asked.end - answer.first)
        read, size = [], 0
        for hit, body in zip(result.items[page], result.bodies[page], strict=True):
            if size > SLICE_BYTES:
                size = 0
                yield
            size += len(body)
            try:
                read.append((self._compiled.decode(body), body, hit.aka_mpn))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                self._leave_out(body, error)
        return read

    def items(self, parts: Iterable[tuple[Any, bytes]]) -> Slices[list[msgspec.Raw]]:
        """Return parts as v3 objects."""
        items, size = [], 0
        for part, body in parts:
            if size > SLICE_BYTES:
                size = 0
                yield
            size += len(body)
            try:
                items.append(msgspec.Raw(msgspec.json.encode(self._compiled.map(part, self._context))))
            except (ValueError, OverflowError) as error:  # the schema allows invalid ids and times
                self._leave_out(body, error)
        return items

    def _leave_out(self, body: bytes, error: Exception) -> None:
        text = f"the upstream sent part {operations.uid(body)} in a form that cannot be read: {error}"
        log.warning("part left out", reason=text)
        self.unreadable.append(text)


def _failed(answer: Answer) -> Rendered:
    """Return the result of a query without one: a refusal by the upstream is the query's own error."""
    error = answer.error
    assert error is not None  # noqa: S101 - of an answer without a result
    return Rendered((), 0, error.message, None if isinstance(error, errors.QueryRefused) else error)


def _require(answer: Answer) -> None:
    """Raise the error of an answer without a result."""
    if answer.error is not None:
        raise answer.error.shared()


def _require_any(found: Any, unreadable: Sequence[str]) -> None:
    """Raise UpstreamUnreadable if parts were found, and none of them can be read."""
    if unreadable and not found:
        raise errors.UpstreamUnreadable(unreadable[0])
