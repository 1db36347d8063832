"""Queries of parts/match: which lists of the core they need, and what v3 shows of these lists (contract v3-rest.md §4).

A number with wildcards goes to supSearchMpn, and so does the only query of a request if a setting says so; `q` goes to
supSearch, also beside an MPN, everything else to supMultiMatch.

v3 never matched a substring of an MPN, but supSearchMpn does: such results are filtered out here. Punctuation and case
are ignored, unless exact_only; `*` stands for anything. Upstream ranks exact matches first: the first part that is not
exact ends them, so `hits` needs no further request. Where it does not, they are filtered from candidates.

A parts/search filtered by part number, which supSearch cannot do, is a supMultiMatch, too. v3's filter ignored neither
punctuation nor case: parts whose number is the same to the letter are picked from what it finds. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from proxy import errors
from proxy.mapping import paths
from proxy.mapping.rules import Tables
from proxy.model import (
    PARTS_MAX,
    EncodedOperation,
    MappingContext,
    PartsMatchQuery,
    PartsMatchRequest,
    SearchRequest,
)
from proxy.planning import documents, facets, lucene, queries, search_filters
from proxy.planning.lucene import ANY, Condition, FilterCondition
from proxy.planning.queries import Element, Page, Query

CANDIDATES = 20  # parts to request if upstream does not rank matches first; matches are filtered from them
LITERALS_MIN = 3  # characters beside wildcards: contract v3-rest.md §4
MPN_FIELD = "mpn"
MPNS_MAX = 20  # of one search, as queries of one match: each is looked for among at least 5 candidates

SingleQuery = Literal["supSearchMpn", "supMultiMatch"]
MatchTest = Callable[[Any, str | None], bool]


class FilteredMatches(NamedTuple):
    """Matches of one query. `certain`: `hits` is exact, or nothing counts the matches; else it is an upper bound."""

    elements: Sequence[Element]
    hits: int
    certain: bool


class MatchPlan(NamedTuple):
    """Execution plan of one query: what is `asked` of the core, and the test that a part of its result must pass; None
    if all pass. `is_page`: the upstream returns any page of the matches, else they are filtered from candidates.
    `is_counted`: a page may leave open how many there are."""

    query: PartsMatchQuery
    asked: Query
    test: MatchTest | None
    is_page: bool
    is_counted: bool

    def shown(self, hits: int, elements: Sequence[Element]) -> FilteredMatches:
        """Return what v3 shows of the elements that were asked for, of so many hits."""
        first, test = self.query.start, self.test
        matches = elements if test is None else [each for each in elements if test(each.part, each.hit.aka_mpn)]
        if not self.is_page:  # among candidates: there may be more
            return FilteredMatches(matches[first : first + self.query.limit], len(matches), certain=True)
        if test is None:
            return FilteredMatches(matches, hits, certain=True)
        end = first + len(matches)
        # The page holds a part that does not match: behind it there are no further matches.
        is_last = len(matches) < len(elements)
        certain = bool(matches) or first == 0 if is_last else end >= hits and (bool(matches) or not hits)
        return FilteredMatches(matches, end if is_last else hits, certain or not self.is_counted)

    def count_operation(self, market: MappingContext) -> EncodedOperation:
        """Return the operation that counts the parts that match, without parts."""
        counted = {"mpn": queries.fold(self.query.mpn or ""), "start": self.query.start, "limit": 0}
        variables = {"queries": [counted], "country": market.country, "currency": market.currency}
        return documents.MATCH_COUNT.operation(variables, 0)


def plans(request: PartsMatchRequest, single_query: SingleQuery) -> list[MatchPlan]:
    """Plan the valid queries of a request. `single_query` is where a number goes that is asked for alone: not with
    exact_only, for which supMultiMatch returns, and bills, fewer candidates."""
    valid = [query for query in request.queries if query.error is None]
    is_single = len(valid) == 1 and not request.exact_only and single_query == "supSearchMpn"
    return [plan(query, request.exact_only, is_single=is_single) for query in valid]


def plan(query: PartsMatchQuery, exact_only: bool, *, is_single: bool = False) -> MatchPlan:
    """Plan one query of parts/match. `is_single`: by supSearchMpn if it has but a number."""
    number, q = query.mpn or query.mpn_or_sku or "", query.q
    # A `q` narrows the matches of an MPN, unless it is the number itself.
    beside = q if q and query.mpn and normalize(q) not in ("", normalize(query.mpn)) else ""
    # Matches may not come first in the upstream's result: where punctuation counts, which it ignores, beside a `q`, and
    # if a pattern has a wildcard elsewhere than at its end. A query without a number has nothing to compare.
    is_page = not (number or query.sku) or not (exact_only or beside or ANY in number.rstrip(ANY))
    # Matches are filtered from candidates then, whichever page is asked for.
    start, end = query.start if is_page else 0, query.start + query.limit
    end = end if is_page else max(CANDIDATES, end)
    is_single = is_single and bool(query.mpn) and not (query.sku or query.brand or query.seller or query.mpn_or_sku)
    is_counted = False
    if beside or (q and not (number or query.sku)) or ANY in number or is_single:
        # The upstream accepts names in its id filters (contract graphql.md §2.4).
        named = {"manufacturer_id": query.brand, "distributor_id": query.seller}
        filters = {name: [value] for name, value in named.items() if value}
        text = f"{beside} {number}" if beside else literal(number) if ANY in number else number or q
        root: queries.SearchRoot = "supSearchMpn" if number and not beside else "supSearch"
        asked = queries.of_list(root, start, end, {"q": text, "filters": filters or None})
        # A search has partial matches among its hits, too. No operation counts the matches of a pattern.
        is_counted = root == "supSearchMpn" and ANY not in number
    else:
        asked = queries.matching(
            start,
            end,
            mpn=query.mpn,
            mpn_or_sku=query.mpn_or_sku,
            sku=query.sku,
            manufacturer=query.brand,
            seller=query.seller,
        )
    return MatchPlan(query, asked, _test(query, exact_only), is_page, is_counted)


def normalize(number: str) -> str:
    """Return letters and digits in upper case: the form for comparisons that ignore punctuation."""
    return "".join(filter(str.isalnum, number)).upper()


def literal(pattern: str) -> str:
    """Return the longest piece of a number with wildcards: the search text of a partial search."""
    return max(pattern.split(ANY), key=lambda piece: len(normalize(piece)))


def _test(query: PartsMatchQuery, exact_only: bool) -> MatchTest | None:
    """Return the test that a part of a result must pass; None if all pass: a SKU is left to the upstream."""
    mpn, number = query.mpn, query.mpn or query.mpn_or_sku or ""
    if ANY in number:
        prepare = str if exact_only else normalize
        is_like = lucene.matcher(ANY.join(map(prepare, number.split(ANY))))
        return lambda part, aka: is_like(prepare(part.mpn)) or bool(aka and is_like(prepare(aka)))
    if exact_only:
        return partial(_is_exact, query) if number or query.sku else None
    if not mpn:
        return None
    # Most requests name the number as upstream spells it: equal texts need not be normalized.
    return lambda part, aka: part.mpn == mpn or normalize(mpn) in map(normalize, (part.mpn, aka or "", *part.akaMpns))


def _is_exact(query: PartsMatchQuery, part: Any, aka: str | None) -> bool:
    """Return whether a part has each number of a query to the letter."""
    mpns = (part.mpn, aka, *part.akaMpns)
    if query.mpn and query.mpn not in mpns:
        return False
    for sku, others in ((query.sku, ()), (query.mpn_or_sku, mpns)):
        if sku and sku not in others and all(sku != offer.sku for seller in part.sellers for offer in seller.offers):
            return False
    return True


def filtered_mpns(tables: Tables, filters: Iterable[FilterCondition]) -> tuple[tuple[str, ...] | None, list[Condition]]:
    """Return the part numbers that pass all filters by number, None without such a filter, and the conditions of the
    other filters. Raises BadRequest."""
    mpns: list[str] | None = None
    others: list[Condition] = []
    for _, each in filters:
        field = tables.search.get(each.field)
        if field is None or not field.number or search_filters.is_always_true(tables, each):
            others.append(each)
            continue
        if each.is_range:
            raise errors.BadRequest(f"{each.field} has no ranges; the service has them for specs only")
        if any(ANY in value for value in each.values):
            raise errors.BadRequest(
                f'{each.field}: a filter takes whole numbers; ask /parts/match for {{"mpn": "SN74*"}} instead'
            )
        accepted = dict.fromkeys(each.values)
        mpns = [value for value in (accepted if mpns is None else mpns) if value in accepted]
    if mpns is not None and len(mpns) > MPNS_MAX:
        raise errors.BadRequest(
            f"filter[fields][{MPN_FIELD}][] takes at most {MPNS_MAX} numbers, not {len(mpns)}; send several requests"
        )
    return None if mpns is None else tuple(mpns), others


def candidate_limit(count: int, start: int, limit: int) -> int:
    """Return how many candidates to request for each of `count` numbers: together at most those of one operation."""
    # With limit=0 only hits are wanted: no candidates.
    return min(PARTS_MAX // count, max(CANDIDATES, start + limit)) if count and limit else 0


class MpnSearchPlan:
    """Execution plan of one page: a query for each number. It costs all candidates that are found, not only those on
    the page, counts nothing, and sorts what it found; a number that fits more parts than are asked for makes `hits` an
    upper bound. There are no `queries` if it is known that nothing matches. `reads_numbers`: of each part it reads what
    it is filtered and sorted by."""

    reads_numbers = True
    counted: Sequence[tuple[facets.CountGroup, facets.AggregationRequest]] = ()

    def __init__(
        self, supported: facets.SupportedRequest, tables: Tables, mpns: tuple[str, ...], conditions: list[Condition]
    ) -> None:
        """Check the request. Raises BadRequest for an unsupported filter, and for a `q` that is anything but the
        number: nothing else is known to contain its words."""
        self._request = supported.request
        in_q = normalize(self._request.q)
        if in_q and any(in_q != normalize(number) for number in mpns):
            raise errors.BadRequest(
                f"q and a filter by {MPN_FIELD} cannot be combined, because the service finds parts by either; "
                f"leave q out, or put its words into filters such as brand.name"
            )
        # A number of punctuation only matches nothing, and the upstream may refuse it.
        self._mpns = tuple(number for number in mpns if normalize(number))
        criteria = search_filters.translate(tables, conditions)
        limit = candidate_limit(len(self._mpns), self._request.start, self._request.limit)
        names = {"filters": "filters", "inStockOnly": "requireStockAvailable"}
        options = {names[name]: value for name, value in criteria.variables.items()}
        asked = () if criteria.finds_nothing else self._mpns
        self.queries = [queries.matching(0, limit, mpn=number, options=options) for number in asked]
        name, direction = lucene.order(self._request.sortby)
        field = tables.search.get(name)
        self._value: Callable[[Any], Any] | None = None  # that parts are sorted by; None where the records lack it
        self._is_descending = direction == "desc"
        if field is not None and field.path is not None:
            self._value = attrgetter(".".join(step.name for step in paths.parse(field.path).steps))
        ignored = self._request.sortby != SearchRequest().sortby and self._value is None
        self.supported = supported
        self.unsupported = (*supported.names, *([f"sortby={name}"] if ignored else []))

    def page(self, found: Sequence[Page]) -> Page:
        """Return the page of what was found by each number. Candidates that were not returned count as hits."""
        matches = [
            element
            for number, each in zip(self._mpns, found, strict=bool(found))
            for element in each.elements
            if element.part.mpn == number
        ]
        if (value := self._value) is not None:
            matches.sort(key=lambda element: str(value(element.part)).casefold(), reverse=self._is_descending)
        # Those that were not returned cannot be compared.
        hits = len(matches) + sum(max(0, each.hits - len(each.elements)) for each in found)
        return Page(matches[self._request.start : self._request.start + self._request.limit], hits)

    def details(self, page: Page, _: Mapping[int, Any]) -> facets.SearchDetails:
        """Return the details of the page: all counts are empty."""
        snippets = [each.part.shortDescription for each in page.elements]
        details = facets.SearchDetails(snippets, {"fields": {}, "queries": {}}, {}, {})
        return details.with_empty(self.supported)
