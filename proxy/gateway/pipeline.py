"""The way of one request. Everything else is a room that this page passes through:

who is this key? → what to ask? → known answer? → may we spend it? → ask → what did it cost? → translate.
"""

import asyncio
from typing import Any

from proxy import errors, model
from proxy.gateway.answers import Answers
from proxy.gateway.applications import Application, Applications
from proxy.gateway.quota import Quota
from proxy.mapping import compiler
from proxy.planning import library, match
from proxy.planning.operations import Found
from proxy.telemetry.metrics import Metrics
from proxy.upstream.graphql import GraphQLClient


class Pipeline:
    """Answers v3 requests from the GraphQL service."""

    def __init__(
        self,
        *,
        applications: Applications,
        views: library.Library,
        answers: Answers,
        quota: Quota,
        upstream: GraphQLClient,
        single_query: match.SingleQuery,
        metrics: Metrics,
    ) -> None:
        self._applications = applications
        self._views = views
        self._answers = answers
        self._quota = quota
        self._upstream = upstream
        self._single_query = single_query
        self._metrics = metrics

    def application(self, apikey: str | None) -> Application:
        """Who is this key? Raises MissingKey and ForbiddenKey."""
        return self._applications.of(apikey)

    async def match_parts(
        self, application: Application, request: model.PartsMatchRequest, view: model.View
    ) -> list[tuple[list[dict[str, Any]], int, str | None]]:
        """parts/match: for every query its v3 parts, all hits, and an error of its own (contract v3-rest.md §4)."""
        skus = request.exact_only and any(query.mpn_or_sku for query in request.queries)
        compiled = self._views.match(view, skus)
        plan = match.MatchPlan(request, compiled.documents, application.market, self._single_query)
        found = await self._ask_all(application, plan.asks)
        counted = await self._ask_all(application, plan.counts(found))
        return [
            (_translate(compiled.part, parts, application.market), hits, error)
            for parts, hits, error in plan.results(found, counted)
        ]

    async def _ask_all(self, application: Application, asks: list[match.Ask]) -> dict[int, Found]:
        """What each query found; asks go out side by side, and all are awaited: all are paid for."""
        if len(asks) == 1:
            return await self._ask(application, asks[0])
        answers = await asyncio.gather(*(self._ask(application, ask) for ask in asks), return_exceptions=True)
        found: dict[int, Found] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found |= answer
        return found

    async def _ask(self, application: Application, ask: match.Ask) -> dict[int, Found]:
        """One operation, for the queries it serves. What the service refuses becomes those queries' own error."""
        try:
            data = await self._answer(application, ask)
        except errors.QueryRefused as refusal:
            return {position: Found([], 0, refusal.message) for position in ask.positions}
        answers = ask.read(data)
        if len(answers) != len(ask.positions):
            raise errors.UpstreamUnreadable("the upstream did not answer every query")
        return dict(zip(ask.positions, answers, strict=True))

    async def _answer(self, application: Application, ask: match.Ask) -> Any:
        """Known, or asked for, paid and kept."""
        key = (application.name, ask.operation.payload)
        known = self._answers.known(key)
        self._metrics.answers.labels("miss" if known is None else "hit").inc()
        return known if known is not None else await self._answers.get(key, lambda: self._spend(application, ask))

    async def _spend(self, application: Application, ask: match.Ask) -> Any:
        with self._quota.reserve(application.name, ask.operation.parts_max) as reservation:
            data = await self._upstream.ask(ask.operation, application.credentials)
            reservation.returned = sum(len(found.parts) for found in ask.read(data))
            self._metrics.parts.labels(application.name).inc(reservation.returned)
        return data


def _translate(part: compiler.Compiled, records: list[Any], market: model.Market) -> list[dict[str, Any]]:
    """v3's parts. What fits the schema can still hold a time or an id that is none."""
    try:
        return [part.map(record, market) for record in records]
    except ValueError as error:
        raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error
