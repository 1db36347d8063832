"""Queries of spreadsheets as a query set of the gateway: cache keys, renderer, and execution plan. Pure.

A query is one element of a supMultiMatch, with limit 1 for a part. The fields are those of mappings/sheet.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proxy.gateway.old_core import Client, GatewayRequest, ResponseMetadata
from proxy.mapping import compiler, loader
from proxy.model import PARTS_MAX, MappingContext, Projection
from proxy.planning import documents, match
from proxy.planning.operations import Document, OperationResult, PlannedOperation, QueryResult
from proxy.planning.projection_cache import Fetched
from proxy.tools.sheet.parts import Part, PartOfSource, PartQuery

BATCH = PARTS_MAX  # parts of one upstream request at most

_FOLDER, _PART, _SOURCE = "sheet", "SheetPart", "SheetSource"

decode_parts = msgspec.json.Decoder(list[Part]).decode
decode_sources = msgspec.json.Decoder(tuple[PartOfSource, ...]).decode


class _Compiled(NamedTuple):
    part: compiler.CompiledObject
    fetched: Fetched


class PartView:
    """Compiled mapping of parts for spreadsheets, in the plan of one application."""

    def __init__(self, mappings: loader.Mappings, folder: Path, site: str, features: frozenset[str]) -> None:
        self.projection = Projection(features=features)
        view = loader.load_view(mappings, folder / _FOLDER, site, _PART, _SOURCE)
        self._compiled: list[_Compiled] = []
        for root in (_PART, _SOURCE):
            part = compiler.compile_object(view, root, self.projection)
            self._compiled.append(_Compiled(part, Fetched(part.selection, part.fields, features)))
        self._documents: dict[tuple[str, bool], Document] = {}

    def compiled(self, query: PartQuery) -> _Compiled:
        """Return the mapping of the parts that a query looks up."""
        return self._compiled[query.sources]

    def document(self, query: PartQuery) -> Document:
        """Return the document for queries in a currency. One for each, although the texts are equal: operations with
        the same document are merged, and share their variables."""
        key = query.currency, query.sources
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = documents.multi_match(self.compiled(query).part.selection)
        return document


class PartQueries:
    """Queries with the same currency that look up the same; implements QuerySet."""

    ranged: Collection[int] = ()

    def __init__(self, request: GatewayRequest, queries: Sequence[PartQuery], view: PartView) -> None:
        market = request.context
        self._queries = queries
        self._market = {"country": market.country, "currency": market.currency}
        self._document = view.document(queries[0])
        part, fetched = view.compiled(queries[0])
        self._decode = part.decode
        kind = "sheet sources" if queries[0].sources else "sheet"
        self.keys = [
            request.key(kind, market.country, market.currency, query.mpn, query.manufacturer, query.sku)
            for query in queries
        ]
        self.features = fetched.features
        self.renderer = request.renderer(part, fetched.fields)

    def plan(self, positions: list[int], _: Mapping[int, int]) -> "PartPlan":
        return PartPlan([self._queries[n] for n in positions], self._document, self._decode, self._market)


class PartPlan(NamedTuple):
    """Execution plan of some queries; implements ExecutionPlan."""

    queries: Sequence[PartQuery]
    document: Document
    decode: Callable[[bytes], Any]
    market: dict[str, str]

    @property
    def operations(self) -> list[PlannedOperation]:
        size = BATCH // self.queries[0].parts_max
        firsts = range(0, len(self.queries), size)
        return [self._operation(range(first, min(first + size, len(self.queries)))) for first in firsts]

    def count_operations(self, _: dict[int, OperationResult]) -> list[PlannedOperation]:
        return []  # the service counts all matches, whatever the limit

    def results(self, results: Mapping[int, OperationResult], _: Mapping[int, OperationResult]) -> list[QueryResult]:
        ordered = [results[n] for n in range(len(self.queries))]
        return [QueryResult(each.parts, each.hits, each.error, each.failure, records=each.records) for each in ordered]

    def _operation(self, positions: range) -> PlannedOperation:
        variables = {"queries": [_match_query(self.queries[n]) for n in positions], **self.market}
        parts = sum(self.queries[n].parts_max for n in positions)
        return PlannedOperation(self.document, variables, parts, match.read_multi_match, tuple(positions), self.decode)


def gateway_request(client: Client, view: PartView, currency: str, since: float) -> GatewayRequest:
    """Return the request that carries queries in a currency; its time begins at `since`."""
    context = MappingContext(client.application.context.country, currency)
    return GatewayRequest(client, view.projection, context, ResponseMetadata(since), is_whole=False)


def by_currency(queries: Sequence[PartQuery]) -> list[list[PartQuery]]:
    """Return the distinct queries in groups of one upstream request, with the same currency and kind, in the order of
    their first queries: a line needs all its currencies, and a budget that covers half of the queries shall complete
    half of the lines."""
    groups: list[list[PartQuery]] = []
    last: dict[tuple[str, bool], list[PartQuery]] = {}
    for query in dict.fromkeys(queries):
        key = query.currency, query.sources
        group = last.get(key)
        if group is None or len(group) == BATCH // query.parts_max:
            group = last[key] = []
            groups.append(group)
        group.append(query)
    return groups


def _match_query(query: PartQuery) -> dict[str, Any]:
    """Return a SupPartMatchQuery (contract graphql.md §1.3)."""
    criteria = {"mpn": query.mpn, "sku": query.sku, "manufacturer": query.manufacturer}
    return {**{name: value for name, value in criteria.items() if value}, "start": 0, "limit": query.parts_max}
