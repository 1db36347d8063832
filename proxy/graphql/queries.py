"""Queries of root fields for parts, as the pipeline resolves them (gateway/queries.py). Pure.

Their keys are those of v3's queries wherever both ask the upstream for the same page, so that both share its records.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.gateway.old_core import GatewayRequest
from proxy.mapping.compiler import CompiledObject
from proxy.planning import documents, exact_match, match, parts
from proxy.planning.operations import (
    AS_SENT,
    COMPLETE,
    MATCHES,
    OperationResult,
    PartialResponse,
    PlannedOperation,
    QueryResult,
)
from proxy.planning.projection_cache import Fetched, ProjectionCache

ALL_DATA = frozenset({COMPLETE})  # a null beside an error is a null with an error only

_WORD = re.compile(r"\w+")

SEARCH_LIMIT = 10  # parts of a search without `limit` (contract graphql.md §2.1)
AKA_MPNS, DESCRIPTIONS = "akaMpns", "descriptions"  # of the results of a search, by their order

Results = dict[int, OperationResult]


class _Plan(NamedTuple):
    """Execution plan of operations whose results need no further request."""

    operations: list[PlannedOperation]
    read: Any

    def count_operations(self, _: Results) -> list[PlannedOperation]:
        return []

    def results(self, results: Results, _: Results) -> list[QueryResult]:
        return [self.read(n, results[n]) for n in sorted(results)]


class _Queries:
    """What all have in common: the request, the renderer of the selection, and what is fetched for it."""

    ranged: Collection[int] = ()

    def __init__(
        self,
        request: GatewayRequest,
        part: CompiledObject,
        projections: ProjectionCache,
        facts: frozenset[str] = match.NO_FACTS,
    ) -> None:
        self._fetched: Fetched = projections.fetched(part, request.known_features)
        self._projections = projections
        self._decode = part.decode
        self._context = request.context
        self._batch_parts = request.client.application.plan.batch_parts
        self.features = self._fetched.features
        self.renderer = request.renderer(part, self._fetched.fields, facts | ALL_DATA, projection=part.source)

    @property
    def _market(self) -> dict[str, Any]:
        return {"country": self._context.country, "currency": self._context.currency}

    def _query_result(self, result: OperationResult) -> QueryResult:
        """Return the result of a query that is its operation's; that of a partial response is a failure."""
        failure = result.failure or (self._partial(result.reported) if result.reported else None)
        if failure is not None:
            return QueryResult([], 0, failure.message, failure)
        return QueryResult(result.parts, result.hits, result.error, records=result.records)

    def _partial(self, reported: Sequence[model.GraphQLError]) -> errors.ServerError:
        """Return the failure of a partial response: a refusal of the plan if the errors name a feature of it."""
        message = "; ".join(dict.fromkeys(each.message for each in reported))
        paths = [each.path for each in reported if isinstance(each.path, list)]
        fields = frozenset(step for path in paths for step in path[1:] if isinstance(step, str))
        if self._projections.features_named(fields | set(_WORD.findall(message))):
            return errors.QueryRefused(message, fields=fields, reported=tuple(reported))
        return PartialResponse(message)


class MultiMatchQueries(_Queries):
    """Queries of a supMultiMatch; `options` are those of all of them."""

    def __init__(
        self,
        request: GatewayRequest,
        part: CompiledObject,
        projections: ProjectionCache,
        queries: Sequence[model.PartsMatchQuery],
        options: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(request, part, projections, frozenset({AS_SENT}))
        self._queries = queries
        self._options = options
        encoded = False if options is None else msgspec.json.encode(options, order="sorted").decode()
        self.keys = [request.match_key(encoded, query) for query in queries]
        self.ranged = range(len(queries))

    def plan(self, positions: list[int], stored: Mapping[int, int]) -> _Plan:
        sent = [match.behind(self._queries[n], stored.get(n, 0)) for n in positions]
        batched = [(place, query, query.limit) for place, query in enumerate(sent)]
        selection, variables = self._fetched.selection, self._market
        has_options = self._options is not None
        if has_options:
            variables |= {"options": self._options}
        document = self._projections.document(
            ("match", has_options, selection), lambda: documents.multi_match(selection, has_options)
        )
        operations = [
            match.multi_match(document, chunk, variables, self._decode)
            for chunk in match.chunks(batched, self._batch_parts)
        ]

        def read(place: int, result: OperationResult) -> QueryResult:
            facts = frozenset({MATCHES}) if self._are_matches(sent[place], result) else match.NO_FACTS
            return msgspec.structs.replace(self._query_result(result), facts=facts)

        return _Plan(operations, read)

    def _are_matches(self, query: model.PartsMatchQuery, result: OperationResult) -> bool:
        """Return whether v3 would leave nothing out of a page."""
        keep = exact_match.match_test(query, exact_only=False)
        return keep is None or all(keep(part, None) for part in result.parts)


class IdQueries(_Queries):
    """Parts by id, of either kind, each a query of its own."""

    def __init__(
        self, request: GatewayRequest, part: CompiledObject, projections: ProjectionCache, ids: Sequence[str]
    ) -> None:
        super().__init__(request, part, projections)
        self._ids = ids
        self.keys = [request.part_key(each) for each in ids]

    def plan(self, positions: list[int], _: Mapping[int, int]) -> _Plan:
        selection = self._fetched.selection
        document = self._projections.document(("parts by id", selection), lambda: documents.parts(selection))
        ids = [self._ids[n] for n in positions]
        operations = parts.operations(ids, document, self._decode, self._context, self._batch_parts)
        return _Plan(operations, lambda _, result: self._query_result(result))


class PageQuery(_Queries):
    """The one query of a supSearch or supSearchMpn; `arguments` are those that the client gave."""

    def __init__(
        self,
        request: GatewayRequest,
        part: CompiledObject,
        projections: ProjectionCache,
        name: str,
        arguments: Mapping[str, Any],
    ) -> None:
        super().__init__(request, part, projections)
        self._name = name
        self._arguments = arguments
        self.keys = [request.key(name, msgspec.json.encode(arguments, order="sorted").decode())]

    def plan(self, _: list[int], stored: Mapping[int, int]) -> _Plan:  # noqa: ARG002 - one entry, no pages
        selection, name = self._fetched.selection, self._name
        document = self._projections.document((name, selection), lambda: documents.found(name, selection))
        limit = self._arguments.get("limit")
        parts_max = SEARCH_LIMIT if limit is None else max(limit, 0)
        variables = {**self._arguments, **self._market}
        operation = PlannedOperation(document, variables, parts_max, self._read, (0,), self._decode)

        def read(_: int, result: OperationResult) -> QueryResult:
            return msgspec.structs.replace(self._query_result(result), details=result.result_set)

        return _Plan([operation], read)

    def _read(self, data: Any) -> list[OperationResult]:
        page = getattr(data, self._name)
        if page.results is None:
            return [OperationResult([], max(page.hits, 0))]
        details = {
            AKA_MPNS: [each.akaMpn for each in page.results],
            DESCRIPTIONS: [each.description for each in page.results],
        }
        records = [bytes(each.part) for each in page.results]
        return [OperationResult([], max(page.hits, 0), result_set=details, records=records)]
