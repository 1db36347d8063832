"""Objects of v3 for its endpoints: parts, brands, sellers and categories in the projection of a request.

Every part is decoded and mapped on its own: one that cannot be is left out alone, and named.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import structlog
from msgspec.structs import replace

from proxy import errors, model
from proxy.gateway.applications import Client
from proxy.gateway.flights import Answer, ResponseMetadata
from proxy.gateway.free_operations import FreeOperations
from proxy.gateway.pipeline import Pipeline
from proxy.mapping.compiler import CompiledObject
from proxy.metrics import Metrics
from proxy.planning import documents, lucene, match, queries, search
from proxy.planning.documents import PartialData, ProjectionCache
from proxy.planning.listing import Listing, ListSearchResult
from proxy.planning.match import SingleQuery
from proxy.planning.queries import Element, Page, Query
from proxy.store.protocol import Hit

SLICE_BYTES = 500_000  # of JSON that is decoded or translated before other tasks run; some milliseconds of work
SELLERS_SECONDS = 2.0  # for which a response with sources waits for the list of sellers, once a day

log = structlog.get_logger()


class GatewayRequest(NamedTuple):
    """Request of an authenticated client: its projection, the context of the mapping, and the response's metadata."""

    client: Client
    projection: model.Projection
    context: model.MappingContext
    metadata: ResponseMetadata


class Rendered(msgspec.Struct, frozen=True):
    """Result of a query: v3 objects as JSON, all hits, and what a search says beside them. `failure` is why there is no
    result where that is not the query's own `error`."""

    items: Sequence[msgspec.Raw]
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    details: Any = None


@dataclass(frozen=True, slots=True)
class V3Objects:
    """Resolves v3 requests. `single_query` is where a number goes that is asked for alone."""

    pipeline: Pipeline
    free: FreeOperations
    projections: ProjectionCache
    single_query: SingleQuery
    metrics: Metrics

    async def match_parts(self, request: GatewayRequest, parameters: model.PartsMatchRequest) -> list[Rendered]:
        """Return v3 parts, total hits and an error for each query of parts/match (contract v3-rest.md §4)."""
        # Only then are SKUs compared here; otherwise the upstream matches them, and the projection may leave them out.
        uses_skus = parameters.exact_only and any(query.mpn_or_sku or query.sku for query in parameters.queries)
        needs = (*documents.NUMBERS, *((documents.SKUS,) if uses_skus else ()))
        planned = match.plans(parameters, self.single_query)
        answers = await self._resolve(request, [plan.asked for plan in planned])
        compiled, context = await self._compiled(request, needs)
        rendered = []
        for plan, answer in zip(planned, answers, strict=True):
            if answer.error is not None:  # a refusal by the upstream is the query's own
                failure = None if isinstance(answer.error, errors.QueryRefused) else answer.error
                rendered.append(Rendered((), 0, answer.error.message, failure))
                continue
            reader = _Reader(compiled, context)
            page = await reader.page(plan.asked, answer)
            matches = plan.shown(page.hits, page.elements)
            hits = matches.hits
            if not matches.certain:
                with suppress(errors.BridgeError):  # else as many as there may be
                    [counted] = (await self._execute(request, plan.count_operation(request.context))).supMultiMatch
                    hits = hits if counted.error is not None else max(counted.hits, 0)
            if answer.source == "miss":
                unmatched = len(page.elements) - len(matches.elements)
                self.metrics.parts_unmatched.inc(request.client.application.name, by=unmatched)
            items = [item for _, item in await reader.mapped(matches.elements)]
            # `hits` is never less than what the client has been shown, whatever the count says.
            shown = plan.query.start + len(matches.elements) if matches.elements else 0
            rendered.append(Rendered(items, max(hits, shown), "; ".join(reader.unreadable) or None))
        failures = [each.failure for each in rendered if each.failure is not None]
        if failures and len(failures) == len(rendered):
            raise failures[0].shared()
        results = iter(rendered)
        return [next(results) if query.error is None else Rendered((), 0, query.error) for query in parameters.queries]

    async def parts(self, request: GatewayRequest, uids: list[str]) -> dict[str, msgspec.Raw]:
        """Return parts by requested uid, without those unknown upstream (contract v3-rest.md §1)."""
        valid = queries.valid_uids(uids)
        asked = [queries.part(uid) for uid in valid]
        answers = await self._resolve(request, asked)
        reader = _Reader(*await self._compiled(request))
        found: dict[str, msgspec.Raw] = {}
        for uid, query, answer in zip(valid, asked, answers, strict=True):
            page = await reader.page(query, answer)
            # A mapping reads the uid: a redirected part lists that by which it was requested.
            reader.context = replace(reader.context, requested_uid=uid)
            found.update((uid, item) for _, item in await reader.mapped(page.elements))
        if reader.unreadable and not found:
            raise errors.UpstreamUnreadable(reader.unreadable[0])
        return found

    async def search_parts(self, request: GatewayRequest, parameters: model.SearchRequest) -> Rendered:
        """Return the page of parts/search, with all other details of its response (contract v3-rest.md §3.6)."""
        filters, tables = await _filters(parameters), self.projections.tables
        steps = search.plan_with_lists(parameters, filters, tables, request.projection.features)
        fetched: Any = None
        try:
            while True:  # with the upstream's list for each name that is not in the shipped tables
                name = steps.send(fetched)
                fetched = await self.free.listed(name, request.client.application, request.metadata.deadline)
        except StopIteration as done:
            plan: search.Plan = done.value
        request.metadata.unsupported += plan.unsupported
        asked = plan.queries
        try:
            counting = search.count_operations(plan, request.context)
            free = (self._execute(request, operation) for operation in counting.values())
            answers, *found = await asyncio.gather(self._resolve(request, asked), *free)
            counted = {position: each.supSearch for position, each in zip(counting, found, strict=True)}
            needs = self.projections.number_needs if plan.reads_numbers else ()
            reader = _Reader(*await self._compiled(request, needs))
            pages = [await reader.page(query, answer) for query, answer in zip(asked, answers, strict=True)]
        except errors.QueryRefused as refusal:  # its cause is in the request, such as the name of a spec
            raise errors.BadRequest(f"the service refuses this search: {refusal.message}") from refusal
        page = plan.page(pages)
        shown = await reader.mapped(page.elements)
        if reader.unreadable and not shown:
            raise errors.UpstreamUnreadable(reader.unreadable[0])
        details = plan.details(page._replace(elements=[each for each, _ in shown]), counted)
        return Rendered([item for _, item in shown], page.hits, details=details)

    async def listed(self, request: GatewayRequest, name: str, uids: list[str]) -> dict[str, msgspec.Struct]:
        """Return brands, sellers or categories by uid, without unknown ones. Costs nothing."""
        listing: Listing = await self.free.listed(name, request.client.application, request.metadata.deadline)
        compiled = self.projections.shown(request.projection, name=name)
        entries = ((uid, listing.by_uid.get(uid)) for uid in dict.fromkeys(uids))
        return {uid: compiled.map(entry.record, request.context) for uid, entry in entries if entry is not None}

    async def search_listed(
        self, request: GatewayRequest, name: str, parameters: model.SearchRequest
    ) -> tuple[list[msgspec.Struct], ListSearchResult]:
        """Search brands, sellers or categories by name and field. Costs nothing."""
        listing: Listing = await self.free.listed(name, request.client.application, request.metadata.deadline)
        filters = await _filters(parameters)
        result = await asyncio.to_thread(listing.search, parameters, filters)
        request.metadata.unsupported += result.unknown
        compiled = self.projections.shown(request.projection, name=name)
        return [compiled.map(record, request.context) for record in result.records], result

    async def _resolve(self, request: GatewayRequest, asked: Sequence[Query]) -> list[Answer]:
        """Resolve queries, and note in the metadata where their answers come from. Raises NotFetched for a quote."""
        if request.metadata.is_quote:
            stored = await self.pipeline.quote(request.client, asked)
            missing = {(each.key, each.end): each for each, answer in zip(asked, stored, strict=True) if not answer}
            if missing:
                request.metadata.cost = sum(each.end - each.start for each in missing.values())
                request.metadata.source = "miss"
                raise errors.NotFetched()
            answers = [answer for answer in stored if answer is not None]
        else:
            answers = await self.pipeline.resolve(request.client, asked, request.metadata.deadline)
        request.metadata.add(answers, self.metrics.clock, request.projection.features & self.projections.features)
        for answer in answers:
            self.metrics.queries.inc(answer.source if answer.error is None else "miss")
        return answers

    async def _execute(self, request: GatewayRequest, operation: model.EncodedOperation) -> Any:
        """Return the data of an operation without parts."""
        data = await self.free.execute(request.client.application, operation, request.metadata.deadline)
        return data.data if isinstance(data, PartialData) else data

    async def _compiled(
        self, request: GatewayRequest, needs: tuple[str, ...] = ()
    ) -> tuple[CompiledObject, model.MappingContext]:
        """Return the mapping of parts, without features that these were fetched without, and its context."""
        projection, lacking = request.projection, request.metadata.lacking
        if lacking:
            projection = replace(projection, features=projection.features - lacking)
        compiled, context = self.projections.part(projection, needs), request.context
        if compiled.reads_sellers:
            # Without the list of sellers, sources have the uids on record: it is no reason to leave a client without
            # parts, or to keep it waiting for an upstream that hangs.
            deadline = min(request.metadata.deadline, self.metrics.clock.monotonic() + SELLERS_SECONDS)
            with suppress(errors.BridgeError):
                listing: Listing = await self.free.listed("Seller", request.client.application, deadline)
                context = replace(context, sellers=listing.ids)
        return compiled, context


@dataclass(slots=True)
class _Reader:
    """Reads and maps parts in a projection; other tasks run between the slices of large ones. `unreadable` says which
    could not be, and why."""

    compiled: CompiledObject
    context: model.MappingContext
    size: int = 0  # of the parts since other tasks ran
    unreadable: list[str] = field(default_factory=list)

    async def page(self, asked: Query, answer: Answer) -> Page:
        """Return the elements of an answer that a query has asked for. Raises the error of an answer without result."""
        result = answer.result
        if result is None:
            assert answer.error is not None  # noqa: S101 - of an answer without a result
            raise answer.error.shared()
        place = slice(asked.start - answer.first, asked.end - answer.first)
        elements = []
        for hit, body in zip(result.items[place], result.bodies[place], strict=True):
            if self.size > SLICE_BYTES:
                self.size = 0
                await asyncio.sleep(0)
            self.size += len(body)
            try:
                elements.append(Element(self.compiled.decode(body), body, hit))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                self._leave_out(hit, error)
        return Page(elements, result.hits)

    async def mapped(self, elements: Iterable[Element]) -> list[tuple[Element, msgspec.Raw]]:
        """Return elements with their parts as v3 objects, without those that cannot be mapped."""
        mapped = []
        for element in elements:
            if self.size > SLICE_BYTES:
                self.size = 0
                await asyncio.sleep(0)
            self.size += len(element.body)
            try:
                item = msgspec.json.encode(self.compiled.map(element.part, self.context))
                mapped.append((element, msgspec.Raw(item)))
            except (ValueError, OverflowError) as error:  # the schema allows invalid ids and times
                self._leave_out(element.hit, error)
        return mapped

    def _leave_out(self, hit: Hit, error: Exception) -> None:
        text = f"the upstream sent part {hit.uid} in a form that cannot be read: {error}"
        log.warning("part left out", reason=text)
        self.unreadable.append(text)


async def _filters(parameters: model.SearchRequest) -> lucene.RequestFilters:
    """Return the filters of a request; other tasks run while they are parsed."""
    for filters in lucene.parse_filters(parameters):  # noqa: B007  (the last)
        await asyncio.sleep(0)
    return filters
