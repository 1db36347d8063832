"""The way of one request, whose key is known. Everything else is a room that this page passes through:

may it ask? → known answer? → what to ask? → may we spend it? → ask → what did it cost? → translate.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from proxy import errors, model
from proxy.gateway.applications import Client
from proxy.gateway.cache.entries import Answer, Question, Reading
from proxy.gateway.cache.lookup import Answers, Inquiry
from proxy.gateway.directory import Directory
from proxy.gateway.quota.reservations import Quota, QuotaStatus
from proxy.gateway.rate_limit import RateLimits
from proxy.gateway.receipt import Receipt
from proxy.kit.slices import Slices
from proxy.mapping.tables import Tables, UnlistedError
from proxy.planning import match, parts, projection_cache, search, search_filters, search_support, wildcards
from proxy.planning.listing import ListSearchResult
from proxy.planning.operations import OperationResult, PlannedOperation, QueryResult
from proxy.telemetry.metrics import Metrics
from proxy.upstream.batching import Batching

T = TypeVar("T")

TOGETHER: match.SingleQuery = "supMultiMatch"  # how a call's queries are asked, however few are left to ask


class Caller(NamedTuple):
    """Who asks, what is to be shown, what mapping needs to know of the request, and what it comes to."""

    client: Client
    projection: model.Projection
    context: model.MappingContext
    receipt: Receipt

    def question(self, *what: Hashable) -> Question:
        """Something asked by this caller: applications share no answers, each pays for its own."""
        return Question((self.client.application.name, *what), self.context)

    def reading(self, part: Any) -> Reading:
        """How it reads parts."""
        cuts = tuple((path, cut.start, cut.stop) for path, cut in self.context.cuts.items())
        return Reading((self.projection, cuts), part)


class Pipeline:
    """Answers v3 requests from the GraphQL service."""

    def __init__(
        self,
        *,
        projections: projection_cache.ProjectionCache,
        answers: Answers,
        quota: Quota,
        rates: RateLimits,
        upstream: Batching,
        directory: Directory,
        tables: Tables,
        single_query: match.SingleQuery,
        metrics: Metrics,
    ) -> None:
        self._projections = projections
        self._answers = answers
        self._quota = quota
        self._rates = rates
        self._upstream = upstream
        self._directory = directory
        self._tables = tables
        self._single_query = single_query
        self._metrics = metrics

    async def admit(self, client: Client) -> None:
        """May it ask now? Raises TooManyRequests."""
        await self._rates.admit(client)

    def standing(self, client: Client) -> QuotaStatus:
        """How many parts are used, and what is left."""
        return self._quota.status(client.accounts)

    async def match_parts(self, caller: Caller, request: model.PartsMatchRequest) -> list[Answer]:
        """parts/match: for every query its v3 parts, all hits, and an error of its own (contract v3-rest.md §4)."""
        skus = request.exact_only and any(query.mpn_or_sku or query.sku for query in request.queries)
        compiled = self._projections.match(caller.projection, skus)
        asked = [query for query in request.queries if query.error is None]
        single = self._single_query if len(asked) == 1 else TOGETHER

        async def ask(positions: list[int]) -> list[QueryResult]:
            began = self._metrics.clock.monotonic()
            some = _part_of(request, [asked[n] for n in positions])
            plan = match.MatchPlan(some, compiled.documents, caller.context, single)
            self._metrics.observe_stage("plan", began)
            found = await self._ask_all(caller, plan.operations)
            counted = await self._ask_all(caller, plan.count_operations(found))
            return plan.results(found, counted)

        questions = [caller.question("match", request.exact_only, *query.asked) for query in asked]
        reading = caller.reading(compiled.part)
        answers = iter(_some(await self._answers.to(Inquiry(questions, reading, ask, caller.receipt))))
        return [next(answers) if query.error is None else Answer(b"[]", 0, query.error) for query in request.queries]

    async def parts(self, caller: Caller, uids: list[str]) -> dict[str, bytes]:
        """Parts by the uids they were asked for; what the service does not know is left out (contract §1)."""
        compiled = self._projections.parts(caller.projection)
        known = parts.valid_uids(uids)

        async def ask(positions: list[int]) -> list[QueryResult]:
            operations = parts.operations([known[n] for n in positions], compiled.document, caller.context)
            found = await self._ask_all(caller, operations)
            return [parts.query_result(found[n]) for n in range(len(positions))]

        questions = [
            Question(caller.question("part", uid).key, msgspec.structs.replace(caller.context, asked=uid))
            for uid in known
        ]
        reading = caller.reading(compiled.part)
        answers = _every(await self._answers.to(Inquiry(questions, reading, ask, caller.receipt)))
        return {uid: answer.items[1:-1] for uid, answer in zip(known, answers, strict=True) if answer.hits}

    async def search_parts(self, caller: Caller, request: model.SearchRequest) -> Answer:
        """parts/search: the page's v3 parts, and beside them all else that the reply says (contract §3.6)."""
        plan = await self._search_plan(caller, request)
        caller.receipt.unsupported = plan.unsupported
        compiled = plan.page(self._projections, caller.projection)

        async def ask(_: list[int]) -> list[QueryResult]:
            operations = plan.operations(self._projections, compiled.document, caller.context)
            found = await self._ask_all(caller, operations)
            accepted = {position: _accepted(each) for position, each in found.items()}
            return [_translated(lambda: plan.result(accepted))]

        inquiry = Inquiry([caller.question(request)], caller.reading(compiled.part), ask, caller.receipt)
        return _every(await self._answers.to(inquiry))[0]

    async def listed(self, caller: Caller, name: str, uids: list[str]) -> dict[str, dict[str, Any]]:
        """Brands, sellers or categories by uid; unknown ones are left out. Costs nothing."""
        listing = await self._directory.listing(name, caller.client.application.credentials, caller.receipt.since)
        compiled = self._projections.list_item(name, caller.projection)
        found = ((uid, listing.get(uid)) for uid in dict.fromkeys(uids))
        return {uid: compiled.map(record, caller.context) for uid, record in found if record is not None}

    async def search_listed(
        self, caller: Caller, name: str, request: model.SearchRequest
    ) -> tuple[list[dict[str, Any]], ListSearchResult]:
        """Brands, sellers or categories by name and field. Costs nothing."""
        listing = await self._directory.listing(name, caller.client.application.credentials, caller.receipt.since)
        result = await _in_turns(listing.search(request))
        caller.receipt.unsupported = result.unknown
        compiled = self._projections.list_item(name, caller.projection)
        return [compiled.map(record, caller.context) for record in result.records], result

    async def _search_plan(self, caller: Caller, request: model.SearchRequest) -> search.Plan:
        """By the tables, and by the service's lists where they do not tell."""
        features, credentials = caller.client.application.features, caller.client.application.credentials
        tables, since, every = self._tables, caller.receipt.since, False
        asked = await _in_turns(search_support.parse_filters(request))
        while True:
            try:
                return search.plan(request, asked, tables, features, complete=every)
            except search_filters.UnknownSpec:  # to the tables; the service may have it all the same
                if every:
                    raise
                specs, every = await self._directory.specs(credentials, since), True
                tables = msgspec.structs.replace(tables, specs=specs.specs)
            except UnlistedError as missing:
                listing = await self._directory.listing(missing.name, credentials, since)
                for pattern in asked.patterns:
                    await _in_turns(listing.ids.like(pattern, wildcards.matcher(pattern)))
                tables = tables.with_list(missing.name, listing.ids)

    async def _ask_all(self, caller: Caller, operations: list[PlannedOperation]) -> dict[int, OperationResult]:
        """What each query found; operations go out side by side, and one that fails takes nothing from the others."""
        if len(operations) < 2:
            return await self._ask(caller, operations[0]) if operations else {}
        answers = await asyncio.gather(*(self._ask(caller, ask) for ask in operations))
        return {position: found for answer in answers for position, found in answer.items()}

    async def _ask(self, caller: Caller, ask: PlannedOperation) -> dict[int, OperationResult]:
        """One ask. What the service refuses is the error of its queries, whatever else happens their failure."""
        try:
            found = await self._spend(caller, ask)
        except errors.QueryRefused as refusal:
            found = [OperationResult([], 0, refusal.message)] * len(ask.positions)
        except errors.BridgeError as failure:
            found = [OperationResult([], 0, failure.message, failure=failure)] * len(ask.positions)
        return dict(zip(ask.positions, found, strict=True))

    async def _spend(self, caller: Caller, ask: PlannedOperation) -> list[OperationResult]:
        """Reserve, execute and settle one operation. Where it may have been billed unseen, the worst case is
        settled."""
        client = caller.client
        reservation = await self._quota.reserve(client.accounts, ask.parts_max)
        try:
            found = await self._upstream.ask(ask, client.application.credentials, caller.receipt.since)
        except BaseException as error:
            caller.receipt.cost += await reservation.release(error)
            raise
        returned = sum(len(each.parts) for each in found)
        caller.receipt.cost += returned
        self._metrics.parts[client.application.name,] += returned
        await reservation.settle(returned)
        return found


async def _in_turns(work: Slices[T]) -> T:
    """The result of work in slices; others run in between."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        await asyncio.sleep(0)


def _part_of(request: model.PartsMatchRequest, queries: list[model.PartsMatchQuery]) -> model.PartsMatchRequest:
    """The request for some of its queries."""
    whole = len(queries) == len(request.queries)
    return request if whole else model.PartsMatchRequest(tuple(queries), request.exact_only)


def _some(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Answers of which each can be given by itself: only where all have failed, there is none."""
    failures = [answer.failure for answer in answers if answer.failure is not None]
    if failures and len(failures) == len(answers):
        raise failures[0]
    return answers


def _every(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Answers that are given together or not at all."""
    for answer in answers:
        if answer.failure is not None:
            raise answer.failure
        if answer.error is not None:
            raise errors.QueryRefused(answer.error)
    return answers


def _accepted(found: OperationResult) -> OperationResult:
    """What a search found: it is in the client's own words, such as a spec's name, which the client can change."""
    if found.error is not None and found.failure is None:
        raise errors.BadRequest(f"the service refuses this search: {found.error}")
    return found


def _translated(translate: Callable[[], QueryResult]) -> QueryResult:
    """What counts become. What fits the schema can still hold an id that is none."""
    try:
        return translate()
    except (ValueError, OverflowError) as error:
        raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error
