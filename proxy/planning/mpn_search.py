"""Execution plan of a parts/search filtered by part number, which supSearch cannot do: a supMultiMatch.

It ignores punctuation and case, v3's filter did not: parts whose number is the same to the letter are picked from what
it finds. It can neither count nor sort; a number that fits more parts than are asked for makes `hits` an upper bound.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from proxy import errors
from proxy.mapping import paths
from proxy.mapping.tables import Tables
from proxy.model import PARTS_MAX, EncodedOperation, MappingContext, SearchRequest
from proxy.planning import facets, lucene, match, queries, search_filters
from proxy.planning.documents import Document
from proxy.planning.lucene import Condition, FilterCondition
from proxy.planning.queries import Page, Query
from proxy.planning.search_support import SupportedRequest

MPNS_MAX = 20  # of one search, as queries of one match: each is looked for among at least 5 candidates
FIELD = "mpn"

Count = Callable[[frozenset[str]], Document]  # makes the document that counts a search, with some aggregations


def filtered_mpns(tables: Tables, filters: Iterable[FilterCondition]) -> tuple[str, ...] | None:
    """Return the part numbers that pass all filters by number; None without such a filter. Raises BadRequest."""
    conditions = [each.condition for each in filters if is_mpn_filter(tables, each.condition)]
    if not conditions:
        return None
    for each in conditions:
        _check(each)
    first, *further = (dict.fromkeys(each.values) for each in conditions)
    mpns = tuple(value for value in first if all(value in values for values in further))
    if len(mpns) > MPNS_MAX:
        raise errors.BadRequest(
            f"filter[fields][{FIELD}][] takes at most {MPNS_MAX} numbers, not {len(mpns)}; send several requests"
        )
    return mpns


def is_mpn_filter(tables: Tables, condition: Condition) -> bool:
    """Return whether a condition filters by part number."""
    field = tables.search.get(condition.field)
    return field is not None and field.number and not search_filters.is_always_true(tables, condition)


def candidate_limit(count: int, start: int, limit: int) -> int:
    """Return how many candidates to request for each of `count` numbers; together at most what one operation may
    return."""
    # With limit=0 only hits are wanted: no candidates.
    return min(PARTS_MAX // count, max(match.CANDIDATES, start + limit)) if count and limit else 0


class MpnSearchPlan:
    """Execution plan of one page: a query for each number. It costs all candidates that are found, not only those on
    the page. `reads_numbers`: of each part it reads what it is filtered and sorted by."""

    reads_numbers = True

    def __init__(
        self, supported: SupportedRequest, tables: Tables, mpns: tuple[str, ...], conditions: list[Condition]
    ) -> None:
        """Check the request. Raises BadRequest for an unsupported filter, and for `q` with a number filter."""
        _check_q(supported.request.q, mpns)
        self._request = supported.request
        # A number of punctuation only matches nothing, and the upstream may refuse it.
        self._mpns = tuple(number for number in mpns if match.normalize(number))
        self._criteria = search_filters.translate(tables, conditions)
        self._sorting = _sorting(tables, supported.request)
        ignored = supported.request.sortby != SearchRequest().sortby and self._sorting is None
        sortby = supported.request.sortby.partition(" ")[0]
        self._empty = supported.without_counts()
        self.unsupported = (*self._empty.names, *([f"sortby={sortby}"] if ignored else []))

    def queries(self) -> list[Query]:
        """Return a query for each number; none if it is known that nothing matches."""
        if self._criteria.finds_nothing:
            return []
        limit = candidate_limit(len(self._mpns), self._request.start, self._request.limit)
        options = {"filters": self._criteria.filters, "requireStockAvailable": self._criteria.in_stock_only}
        given = {name: value for name, value in options.items() if value}
        return [queries.matching(0, limit, mpn=number, options=given) for number in self._mpns]

    def count_operations(self, _: Count, __: MappingContext) -> dict[int, EncodedOperation]:
        """Return no operations that count: it counts nothing but the hits."""
        return {}

    def page(self, found: Sequence[Page]) -> Page:
        """Return the page of what was found by each number. Candidates that were not returned may differ in
        punctuation, but count as hits."""
        matches = [
            element
            for number, each in zip(self._mpns, found, strict=bool(found))
            for element in each.elements
            if element.part.mpn == number
        ]
        if self._sorting is not None:
            value, descending = self._sorting
            matches.sort(key=lambda element: str(value(element.part)).casefold(), reverse=descending)
        # Those that were not returned cannot be compared.
        hits = len(matches) + sum(max(0, each.hits - len(each.elements)) for each in found)
        return Page(matches[self._request.start : self._request.start + self._request.limit], hits)

    def details(self, page: Page, _: Mapping[int, Any]) -> facets.SearchDetails:
        """Return the details of the page: all counts are empty."""
        snippets = [each.part.shortDescription for each in page.elements]
        details = facets.SearchDetails(snippets, {"fields": {}, "queries": {}}, {}, {})
        return details.with_empty(self._empty.facets, self._empty.stats, self._empty.queries)


def _sorting(tables: Tables, request: SearchRequest) -> tuple[Any, bool] | None:
    """Return the sort key of a part, and whether the order is descending; None for a field that the records do not
    have."""
    name, direction = lucene.order(request.sortby)
    field = tables.search.get(name)
    if field is None or field.path is None:
        return None
    return attrgetter(".".join(step.name for step in paths.parse(field.path).steps)), direction == "desc"


def _check(condition: Condition) -> None:
    if condition.is_range:
        raise errors.BadRequest(f"{condition.field} has no ranges; the service has them for specs only")
    if any(lucene.ANY in value for value in condition.values):
        raise errors.BadRequest(
            f'{condition.field}: a filter takes whole numbers; ask /parts/match for {{"mpn": "SN74*"}} instead'
        )


def _check_q(q: str, mpns: tuple[str, ...]) -> None:
    """Raise BadRequest if `q` is anything but the number: nothing else is known to contain its words."""
    number_in_q = match.normalize(q)
    if number_in_q and any(number_in_q != match.normalize(number) for number in mpns):
        raise errors.BadRequest(
            f"q and a filter by {FIELD} cannot be combined, because the service finds parts by either; "
            f"leave q out, or put its words into filters such as brand.name"
        )
