"""The way of one request. Everything else is a room that this page passes through:

who is this key? → what to ask? → known answer? → may it ask, may we spend it? → ask → what did it cost? → translate.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from proxy import errors, model
from proxy.gateway.answers import Answers
from proxy.gateway.applications import Application, Applications
from proxy.gateway.directory import Directory
from proxy.gateway.quota import Quota
from proxy.gateway.rates import Rates
from proxy.mapping import compiler, tables
from proxy.planning import criteria, library, match, parts, search
from proxy.planning.listing import Listed
from proxy.planning.operations import Ask, Found
from proxy.telemetry.metrics import Metrics
from proxy.upstream.graphql import GraphQLClient

T = TypeVar("T")


class Pipeline:
    """Answers v3 requests from the GraphQL service."""

    def __init__(
        self,
        *,
        applications: Applications,
        views: library.Library,
        answers: Answers,
        quota: Quota,
        rates: Rates,
        upstream: GraphQLClient,
        directory: Directory,
        book: tables.Tables,
        single_query: match.SingleQuery,
        metrics: Metrics,
    ) -> None:
        self._applications = applications
        self._views = views
        self._answers = answers
        self._quota = quota
        self._rates = rates
        self._upstream = upstream
        self._directory = directory
        self._book = book
        self._single_query = single_query
        self._metrics = metrics

    def application(self, apikey: str | None) -> Application:
        """Who is this key? Raises MissingKey and ForbiddenKey."""
        return self._applications.of(apikey)

    async def match_parts(
        self, application: Application, request: model.PartsMatchRequest, view: model.View
    ) -> list[tuple[list[dict[str, Any]], int, str | None]]:
        """parts/match: for every query its v3 parts, all hits, and an error of its own (contract v3-rest.md §4)."""
        await self._rates.admit(application)
        skus = request.exact_only and any(query.mpn_or_sku or query.sku for query in request.queries)
        compiled = self._views.match(view, skus)
        plan = match.MatchPlan(request, compiled.documents, application.context, self._single_query)
        found = await self._ask_all(application, plan.asks)
        counted = await self._count(application, plan.counts(found))
        return [
            (_translate(compiled.part, records, application.context), hits, error)
            for records, hits, error in plan.results(found, counted)
        ]

    async def parts(self, application: Application, uids: list[str], view: model.View) -> dict[str, dict[str, Any]]:
        """Parts by the uids they were asked for; what the service does not know is left out (contract §1)."""
        await self._rates.admit(application)
        compiled = self._views.parts(view)
        known = parts.asked(uids)
        found = await self._ask_all(application, parts.asks(known, compiled.document, application.context))
        return {
            uid: _translate(compiled.part, found[position].parts, application.asking(uid))[0]
            for position, uid in enumerate(known)
            if _unrefused(found[position]).parts
        }

    async def search_parts(
        self, application: Application, request: model.SearchRequest, view: model.View
    ) -> tuple[list[dict[str, Any]], search.Searched]:
        """parts/search: the page's v3 parts, and everything else the reply says (contract v3-rest.md §3.6)."""
        await self._rates.admit(application)
        try:
            plan = search.SearchPlan(request, self._book, application.features)
        except criteria.UnknownSpec:  # to the tables; the service may have it all the same
            specs = await self._directory.specs(application.credentials)
            plan = search.SearchPlan(request, specs, application.features)
        page, *apart = (wanted.aggregations for wanted in plan.wanted)
        compiled = self._views.page(view, page)
        counting = [self._views.count(aggregations) for aggregations in apart]
        hits = self._views.count(frozenset())
        asks = plan.asks(compiled.document, counting, hits, application.context)
        found = await self._ask_all(application, asks)
        accepted = {position: _accepted(each) for position, each in found.items()}
        result = _translated(lambda: plan.result(accepted))
        return _translate(compiled.part, result.parts, application.context), result

    async def listed(
        self, application: Application, name: str, uids: list[str], view: model.View
    ) -> dict[str, dict[str, Any]]:
        """Brands, sellers or categories by uid; unknown ones are left out. Costs nothing."""
        await self._rates.admit(application)
        listing = await self._directory.listing(name, application.credentials)
        compiled = self._views.listed(name, view)
        found = ((uid, listing.get(uid)) for uid in dict.fromkeys(uids))
        return {uid: compiled.map(record, application.context) for uid, record in found if record is not None}

    async def search_listed(
        self, application: Application, name: str, request: model.SearchRequest, view: model.View
    ) -> tuple[list[dict[str, Any]], Listed]:
        """Brands, sellers or categories by name and field. Costs nothing."""
        await self._rates.admit(application)
        listing = await self._directory.listing(name, application.credentials)
        result = listing.search(request)
        compiled = self._views.listed(name, view)
        return [compiled.map(record, application.context) for record in result.records], result

    async def _ask_all(self, application: Application, asks: list[Ask]) -> dict[int, Found]:
        """What each query found; asks go out side by side, and all are awaited: all are paid for."""
        if len(asks) < 2:
            return await self._ask(application, asks[0]) if asks else {}
        answers = await asyncio.gather(*(self._ask(application, ask) for ask in asks), return_exceptions=True)
        found: dict[int, Found] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found |= answer
        return found

    async def _count(self, application: Application, asks: list[Ask]) -> dict[int, Found]:
        """The same for counts alone: the parts are here and paid for, so a count that fails is done without."""
        try:
            return await self._ask_all(application, asks)
        except errors.BridgeError:
            return {}

    async def _ask(self, application: Application, ask: Ask) -> dict[int, Found]:
        """One operation, for the queries it serves. What the service refuses becomes those queries' own error."""
        try:
            answers = await self._answer(application, ask)
        except errors.QueryRefused as refusal:
            return {position: Found([], 0, refusal.message) for position in ask.positions}
        return dict(zip(ask.positions, answers, strict=True))

    async def _answer(self, application: Application, ask: Ask) -> list[Found]:
        """Known, or asked for, paid and kept."""
        key = (application.name, ask.operation.payload)
        known: list[Found] | None = self._answers.known(key)
        self._metrics.answers["miss" if known is None else "hit",] += 1
        if known is None:
            known = await self._answers.get(key, lambda: self._spend(application, ask))
        return known

    async def _spend(self, application: Application, ask: Ask) -> list[Found]:
        reservation = await self._quota.reserve(application.accounts, ask.operation.parts_max)
        try:
            answers = ask.read(await self._upstream.ask(ask.operation, application.credentials))
        except BaseException as error:
            await reservation.abandon(error)
            raise
        returned = sum(len(found.parts) for found in answers)
        self._metrics.parts[application.name,] += returned
        await reservation.settle(returned)
        if len(answers) != len(ask.positions):
            raise errors.UpstreamUnreadable("the upstream did not answer every query")
        return answers


def _unrefused(found: Found) -> Found:
    """What was found, where the service did not refuse."""
    if found.error is not None:
        raise errors.QueryRefused(found.error)
    return found


def _accepted(found: Found) -> Found:
    """The same for a search: it is in the client's own words, such as a spec's name, which the client can change."""
    if found.error is not None:
        raise errors.BadRequest(f"the service refuses this search: {found.error}")
    return found


def _translate(part: compiler.Compiled, records: list[Any], context: model.Context) -> list[dict[str, Any]]:
    """v3's parts."""
    return _translated(lambda: [part.map(record, context) for record in records])


def _translated(translate: Callable[[], T]) -> T:
    """What `translate` makes of an answer. What fits the schema can still hold a time or an id that is none."""
    try:
        return translate()
    except (ValueError, OverflowError) as error:
        raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error
