"""/parts/match (contract v3-rest.md §4): queries by part number, SKU or text, each with its own result."""

import json
from typing import Any, NamedTuple

from nexar_sandbox.catalog import matching, records, store
from nexar_sandbox.legacy_v3 import criteria, query_string

MOST_QUERIES, LIMIT, MAX_ITEMS, MAX_REACHED = 20, 3, 20, 100
# Letters and digits that a number with a wildcard needs.
MIN_LITERAL = 3

_DEFAULTS: dict[str, Any] = {
    "q": "",
    "sku": None,
    "limit": LIMIT,
    "reference": None,
    "mpn_or_sku": None,
    "mpn": None,
    "brand": None,
    "start": 0,
    "seller": None,
}
_TEXTS = ("q", "mpn", "brand", "sku", "seller", "mpn_or_sku")


class MatchResult(NamedTuple):
    """Result of one query: the page and the number of hits, or an error."""

    page: list[records.Part]
    hits: int
    error: str | None = None


class _InvalidQueryError(Exception):
    """An invalid query, with the reason; the other queries are still executed."""


def read(queries: str | None) -> list[dict[str, Any]]:
    """Return the queries with all keys of the echo, defaults where they were not sent."""
    if not queries:
        raise query_string.bad_request("queries argument is missing")
    try:
        queries_ = json.loads(queries, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise query_string.bad_request("queries is not JSON") from None
    if not isinstance(queries_, list) or len(queries_) > MOST_QUERIES:
        raise query_string.bad_request(f"queries is not a list of at most {MOST_QUERIES} queries")
    return [_with_defaults(each) for each in queries_]


def echo(query: dict[str, Any]) -> dict[str, Any]:
    return {**{name: query[name] for name in _DEFAULTS}, "__class__": "PartsMatchQuery"}


class LegacyMatcher:
    def __init__(self, catalog: store.Catalog) -> None:
        self._catalog = catalog

    def answer(self, query: dict[str, Any], *, exact_only: bool) -> MatchResult:
        try:
            _check(query)
        except _InvalidQueryError as mistake:
            return MatchResult([], 0, str(mistake))
        hits = self._hits(query, exact_only=exact_only)
        return MatchResult(hits[query["start"] : query["start"] + query["limit"]], len(hits))

    def _hits(self, query: dict[str, Any], *, exact_only: bool) -> list[records.Part]:
        """Return the parts that meet all conditions of the query, best first."""
        mpn, sku, either = query["mpn"], query["sku"], query["mpn_or_sku"]
        # Numbers with a wildcard are compared with a pattern, others are looked up.
        patterns = [number for number in (mpn, either) if number and "*" in number]
        plain = records.MatchQuery(
            mpn=None if mpn in patterns else mpn or None,
            sku=sku or None,
            mpn_or_sku=None if either in patterns else either or None,
            manufacturer=query["brand"] or None,
            seller=query["seller"] or None,
        )
        matches = [self._like(pattern, query, exact_only=exact_only) for pattern in patterns]
        if plain.mpn or plain.sku or plain.mpn_or_sku:
            matches.append(self._equal(plain, exact_only=exact_only))
        if query["q"].strip():
            matches.append(self._catalog.parts_of(self._catalog.search(query["q"], _conditions(query))))
        # A brand or a seller alone.
        if not matches:
            matches.append(self._catalog.parts_of(self._catalog.match(plain, records.SearchConditions())))
        first, *others = ({part.id: part for part in some} for some in matches)
        return [part for id_, part in first.items() if all(id_ in other for other in others)]

    def _equal(self, plain: records.MatchQuery, *, exact_only: bool) -> list[records.Part]:
        """Match by letters and digits, case-insensitively; with `exact_only`, by all characters."""
        found = self._catalog.parts_of(self._catalog.match(plain, records.SearchConditions()))
        return [part for part in found if not exact_only or self._is_exact(part, plain)]

    def _is_exact(self, part: records.Part, plain: records.MatchQuery) -> bool:
        mpns = {part.mpn, *part.aka_mpns}
        skus = {offer.sku for seller in self._catalog.sellers_of(part) for offer in seller.offers}
        return (
            (plain.mpn is None or plain.mpn in mpns)
            and (plain.sku is None or plain.sku in skus)
            and (plain.mpn_or_sku is None or plain.mpn_or_sku in mpns | skus)
        )

    def _like(self, pattern: str, query: dict[str, Any], *, exact_only: bool) -> list[records.Part]:
        """Match part numbers by a pattern with the wildcard *."""
        compared = str if exact_only else matching.normalize
        pieces = pattern.split("*")
        like = criteria.like("*".join(map(compared, pieces)))
        # Parts whose number has the longest piece are found; the pattern is compared with their numbers only.
        longest = max(pieces, key=lambda piece: len(matching.normalize(piece)))
        found = self._catalog.parts_of(self._catalog.search_mpn(longest, _conditions(query)))
        return [part for part in found if any(like(compared(number)) for number in (part.mpn, *part.aka_mpns))]


def _no_number(text: str) -> None:
    # Python reads NaN and Infinity, which JSON does not have.
    raise ValueError(f"{text} is no JSON")


def _with_defaults(query: Any) -> dict[str, Any]:
    present = {name: value for name, value in query.items() if value is not None} if isinstance(query, dict) else {}
    complete = {**_DEFAULTS, **{name: present[name] for name in _DEFAULTS if name in present}}
    # An error of this query alone: the others are executed.
    return complete if isinstance(query, dict) else {**complete, "": "a query is an object"}


def _check(query: dict[str, Any]) -> None:
    if "" in query:
        raise _InvalidQueryError(query[""])
    for name in _TEXTS:
        if query[name] is not None and not isinstance(query[name], str):
            raise _InvalidQueryError(f"{name} is not a string")
    if not any((query[name] or "").strip() for name in _TEXTS):
        raise _InvalidQueryError("Missing search filters")
    _check_page(query)
    for name in ("mpn", "sku", "mpn_or_sku"):
        if query[name]:
            _check_number(name, query[name])


def _check_page(query: dict[str, Any]) -> None:
    start, limit = query["start"], query["limit"]
    for name in ("start", "limit"):
        if type(query[name]) is not int or query[name] < 0:
            raise _InvalidQueryError(f"{name} is not an integer from 0 on")
    if limit > MAX_ITEMS:
        raise _InvalidQueryError(f"limit is more than {MAX_ITEMS}")
    if start + limit > MAX_REACHED:
        raise _InvalidQueryError(f"start and limit are more than {MAX_REACHED} together")


def _check_number(name: str, number: str) -> None:
    letters = len(matching.normalize(number))
    if not letters:
        raise _InvalidQueryError(f"{name} has no letters or digits")
    if "*" in number and name == "sku":
        raise _InvalidQueryError("sku has a wildcard")
    if "*" in number and letters < MIN_LITERAL:
        raise _InvalidQueryError(f"{name} has fewer than {MIN_LITERAL} letters and digits beside its wildcard")


def _conditions(query: dict[str, Any]) -> records.SearchConditions:
    named = (("manufacturer_id", query["brand"]), ("distributor_id", query["seller"]))
    return records.SearchConditions(tuple((key, (name,)) for key, name in named if name))
