"""Execution plan of parts/match: assigns queries to operations, and results to queries.

One query for a single part number goes to supSearchMpn (a setting says supMultiMatch instead), one with wildcards
always; `q` goes to supSearch; everything else is batched into supMultiMatch, at most 100 parts a request
(contract graphql.md §2.1). Where the upstream does not rank matches first, they are filtered from candidates.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import structs

from proxy.model import PARTS_MAX, MappingContext, PartsMatchQuery, PartsMatchRequest
from proxy.planning import exact_match
from proxy.planning.operations import AS_SENT, Document, OperationResult, PlannedOperation, QueryResult

CANDIDATES = 20  # parts to request if upstream does not rank matches first; matches are filtered from them

NO_FACTS: frozenset[str] = frozenset()
PAGE_AS_SENT = frozenset({AS_SENT})

Chunk = tuple[tuple[int, PartsMatchQuery, int], ...]
"""Queries of one operation: the position of each in its request, and its limit."""

SingleQuery = Literal["supSearchMpn", "supMultiMatch"]


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents that select the same fields of parts."""

    multi_match: Document
    search_mpn: Document
    search: Document
    count: Document


class MatchPlan:
    """Execution plan of one request: `operations` first, then `count_operations(results)` for hits that need a
    count, then `results`."""

    def __init__(
        self,
        request: PartsMatchRequest,
        documents: Documents,
        decode: Callable[[bytes], Any],
        market: MappingContext,
        single: SingleQuery,
        *,
        batch_parts: int = PARTS_MAX,
    ) -> None:
        self._request = request
        self._documents = documents
        self._decode = decode
        self._market = {"country": market.country, "currency": market.currency}
        self._single = single
        self._batch_parts = batch_parts
        self._partial: set[int] = set()
        self._unranked: set[int] = set()
        self._narrowed: dict[int, exact_match.FilteredMatches] = {}
        self.operations = list(self._plan())

    def count_operations(self, results: dict[int, OperationResult]) -> list[PlannedOperation]:
        """Return the operations that count hits which a page of partial matches leaves open: at most one each,
        without parts."""
        return [
            self._multi(self._documents.count, ((position, self._request.queries[position], 0),))
            for position, result in results.items()
            if position in self._partial and result.error is None and not self._certain(position, result)
        ]

    def results(self, results: dict[int, OperationResult], counted: dict[int, OperationResult]) -> list[QueryResult]:
        """Return one result for each query, in the order of the request."""
        return [self._result(position, results, counted) for position in range(len(self._request.queries))]

    def _plan(self) -> Iterator[PlannedOperation]:
        queries = [(n, query) for n, query in enumerate(self._request.queries) if query.error is None]
        batched: list[tuple[int, PartsMatchQuery, int]] = []
        for position, query in queries:
            number = query.mpn or query.mpn_or_sku or ""
            # With a number, `q` is that number or empty (parsing/match_queries.py): it adds nothing.
            if query.q and not (number or query.sku):
                yield self._search(self._documents.search, position, query, query.q)
                continue
            sent = query if is_ranged(query, self._request.exact_only) else self._with_candidates(position, query)
            if exact_match.WILDCARD in number or self._is_single(query, len(queries)):
                self._partial.add(position)
                yield self._search(self._documents.search_mpn, position, sent, exact_match.literal(number))
            else:
                batched.append((position, sent, sent.limit))
        yield from (self._multi(self._documents.multi_match, chunk) for chunk in chunks(batched, self._batch_parts))

    def _with_candidates(self, position: int, query: PartsMatchQuery) -> PartsMatchQuery:
        self._unranked.add(position)
        # From the first part on: the page is cut after filtering.
        return structs.replace(query, start=0, limit=max(CANDIDATES, query.start + query.limit))

    def _is_single(self, query: PartsMatchQuery, count: int) -> bool:
        """Return whether a query goes to supSearchMpn. Not with exact_only: supMultiMatch then returns, and bills,
        fewer candidates."""
        # Several queries cost one supMultiMatch, but a supSearchMpn each.
        if count != 1 or not query.mpn or self._single != "supSearchMpn" or self._request.exact_only:
            return False
        return not (query.sku or query.brand or query.seller or query.mpn_or_sku)

    def _search(self, document: Document, position: int, query: PartsMatchQuery, q: str) -> PlannedOperation:
        variables: dict[str, Any] = {"q": q, "start": query.start, "limit": query.limit, **self._market}
        # The upstream accepts names in its id filters (contract graphql.md §2.4).
        filters_by_name = {"manufacturer_id": query.brand, "distributor_id": query.seller}
        if filters := {key: [value] for key, value in filters_by_name.items() if value}:
            variables["filters"] = filters
        return PlannedOperation(
            document, variables, query.limit, _read_search(document.name), (position,), self._decode
        )

    def _multi(self, document: Document, chunk: Chunk) -> PlannedOperation:
        return multi_match(document, chunk, self._market, self._decode)

    def _certain(self, position: int, result: OperationResult) -> bool:
        query = self._request.queries[position]
        if exact_match.WILDCARD in (query.mpn or query.mpn_or_sku or ""):
            return True  # no operation counts matches of a pattern
        return self._narrow(position, result).certain

    def _narrow(self, position: int, result: OperationResult) -> exact_match.FilteredMatches:
        """Return the matches of a query, filtered once: first to see whether a count is needed, then as its result."""
        narrowed = self._narrowed.get(position)
        if narrowed is None:
            query = self._request.queries[position]
            keep = exact_match.match_test(query, self._request.exact_only)
            narrow = exact_match.filter_candidates if position in self._unranked else exact_match.filter_ranked
            narrowed = self._narrowed[position] = narrow(query, result, keep)
        return narrowed

    def _result(
        self, position: int, results: dict[int, OperationResult], counted: dict[int, OperationResult]
    ) -> QueryResult:
        query = self._request.queries[position]
        if query.error is not None:
            return QueryResult([], 0, query.error)
        result = results[position]
        if result.error is not None:
            return QueryResult([], 0, result.error, result.failure)
        narrowed = self._narrow(position, result)
        # `hits` is never less than what the client has been shown, whatever the count says.
        shown = query.start + len(narrowed.parts) if narrowed.parts else 0
        count = counted.get(position)
        hits = count.hits if count and count.error is None else narrowed.hits
        unmatched = len(result.records) - len(narrowed.records)
        is_as_sent = not unmatched and position not in self._partial and position not in self._unranked
        facts = PAGE_AS_SENT if is_as_sent and hits == result.hits >= shown else NO_FACTS
        return QueryResult(narrowed.parts, max(hits, shown), records=narrowed.records, unmatched=unmatched, facts=facts)


def is_ranged(query: PartsMatchQuery, exact_only: bool) -> bool:
    """Return whether the upstream returns any page of a query's matches: not where they may not come first in its
    result. A query without a number has nothing to compare."""
    number = query.mpn or query.mpn_or_sku or ""
    return not (number or query.sku) or exact_match.is_ranked(number, exact_only)


def multi_match(
    document: Document,
    chunk: Chunk,
    variables: dict[str, Any],
    decode: Callable[[bytes], Any],
) -> PlannedOperation:
    """Return the operation for some queries; `variables` are those beside them."""
    queries = [_match_query(query, limit) for _, query, limit in chunk]
    parts_max = sum(limit for _, _, limit in chunk)
    positions = tuple(position for position, _, _ in chunk)
    variables = {"queries": queries, **variables}
    return PlannedOperation(document, variables, parts_max, read_multi_match, positions, decode)


def chunks(queries: list[tuple[int, PartsMatchQuery, int]], parts_max: int) -> Iterator[Chunk]:
    """Yield the queries in order, in groups of at most so many queries, and so many parts in total."""
    group: list[tuple[int, PartsMatchQuery, int]] = []
    parts = 0
    for entry in queries:
        if group and (parts + entry[2] > parts_max or len(group) == parts_max):
            yield tuple(group)
            group, parts = [], 0
        group.append(entry)
        parts += entry[2]
    if group:
        yield tuple(group)


def _match_query(query: PartsMatchQuery, limit: int) -> dict[str, Any]:
    """Return a SupPartMatchQuery (contract graphql.md §1.3). References are not sent: results come in the order of
    queries."""
    named = {
        "mpn": query.mpn,
        "sku": query.sku,
        "mpnOrSku": query.mpn_or_sku,
        "manufacturer": query.brand,
        "seller": query.seller,
    }
    return {**{key: value for key, value in named.items() if value}, "start": query.start, "limit": limit}


def read_multi_match(data: Any) -> list[OperationResult]:
    """Read the results of a supMultiMatch, one per query."""
    return [
        OperationResult([], max(match.hits, 0), match.error, records=getattr(match, "parts", []))
        for match in data.supMultiMatch
    ]


@functools.cache
def _read_search(name: str) -> Callable[[Any], list[OperationResult]]:
    def read(data: Any) -> list[OperationResult]:
        result_set = getattr(data, name)
        hits = result_set.results or []
        records: list[bytes] = [hit.part for hit in hits]
        return [OperationResult([], max(result_set.hits, 0), None, [hit.akaMpn for hit in hits], records=records)]

    return read


def behind(query: PartsMatchQuery, stored: int) -> PartsMatchQuery:
    """Return the query for what follows the first so many parts of its page."""
    return structs.replace(query, start=query.start + stored, limit=query.limit - stored) if stored else query
