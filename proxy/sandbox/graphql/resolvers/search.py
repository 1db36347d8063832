"""The queries that return parts: supParts, supSearch, supSearchMpn, supMultiMatch (contract graphql.md §2).

Ranges are checked before any of these runs. A part is billed when a client takes it out of its answer:
`hits` alone cost nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

from graphql import GraphQLFieldResolver

from proxy.sandbox.catalog import records, search_hits
from proxy.sandbox.catalog import search as catalog_search
from proxy.sandbox.graphql import conditions, context, limits, problems, views
from proxy.sandbox.graphql.resolvers import offers

Find = Callable[[str, records.SearchConditions, str, bool], search_hits.SearchHits]


def parts(_root: None, info: context.Info, *, ids: list[str], **arguments: Any) -> list[views.PartView | None]:
    """Parts by id or by v3 uid; null where there is none."""
    market, catalog = offers.market(info, arguments), info.context.catalog
    found = (catalog.part(one) or catalog.part_by_uid(one) for one in ids)
    shown = [None if part is None else views.PartView(part, market) for part in found]
    for position, view in enumerate(shown):
        if view is not None:
            info.context.bill(view, [*info.path.as_list(), position])
    return shown


def search(_root: None, info: context.Info, **arguments: Any) -> views.ResultSet:
    """Text search."""
    return _search(info.context.catalog.search, info, arguments)


def search_mpn(_root: None, info: context.Info, **arguments: Any) -> views.ResultSet:
    """Search by part number."""
    return _search(info.context.catalog.search_mpn, info, arguments)


def _search(find: Find, info: context.Info, arguments: Mapping[str, Any]) -> views.ResultSet:
    query = arguments.get("q") or ""  # without it, all that passes the filters (contract graphql.md §1.1)
    asked = conditions.of_search(arguments)
    try:
        found = find(query, asked, arguments.get("sort") or "", arguments.get("sortDir") == "desc")
    except ValueError as error:
        raise problems.ServiceError(str(error)) from error
    market = offers.market(info, arguments)
    limit = arguments.get("limit")
    page = _page(info, found, arguments.get("start") or 0, limits.DEFAULT_LIMIT if limit is None else limit)
    hits = tuple(views.Hit(views.PartView(part, market), found.aka_of(part.id), query) for part in page)
    return views.ResultSet(found, hits, query, asked, _warnings(query))


def _page(info: context.Info, found: search_hits.SearchHits, start: int, limit: int) -> list[records.Part]:
    parts = (info.context.catalog.part(id_) for id_ in found.page(start, limit))
    return [part for part in parts if part is not None]


def _warnings(query: str) -> tuple[str, ...]:
    most = catalog_search.MOST_WORDS
    return (f"The query has more than {most} words; the rest is ignored.",) if len(query.split()) > most else ()


def multi_match(
    _root: None,
    info: context.Info,
    *,
    queries: list[dict[str, Any]],
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> list[views.Match]:
    """One answer a query, in their order."""
    market, asked = offers.market(info, arguments), conditions.of_match(options or {})
    return [_match(info, query, asked, market) for query in queries]


def _match(
    info: context.Info, query: Mapping[str, Any], asked: records.SearchConditions, market: views.Market
) -> views.Match:
    reference = query.get("reference")
    wanted = records.MatchQuery(
        mpn=query.get("mpn"),
        sku=query.get("sku"),
        mpn_or_sku=query.get("mpnOrSku"),
        manufacturer=query.get("manufacturer"),
        seller=query.get("seller"),
    )
    if wanted == records.MatchQuery():
        # The contract knows no text of this field; this one is the v3 service's.
        return views.Match(reference, 0, error="Missing search filters")
    try:
        found = info.context.catalog.match(wanted, asked)
    except ValueError as error:
        raise problems.ServiceError(str(error)) from error
    page = _page(info, found, query["start"], query["limit"])
    return views.Match(reference, found.hits, tuple(views.PartView(part, market) for part in page))


def matched_parts(match: views.Match, info: context.Info) -> tuple[views.PartView, ...]:
    """The parts of one answer, billed."""
    place = info.path.as_list()
    for position, part in enumerate(match.parts):
        info.context.bill(part, [*place, position])
    return match.parts


def hits(result: views.ResultSet, _info: context.Info) -> int:
    """All hits, not the page."""
    return result.ranked.hits


def results(result: views.ResultSet, _info: context.Info) -> tuple[views.Hit, ...]:
    """The page."""
    return result.page


def hit_part(hit: views.Hit, info: context.Info) -> views.PartView:
    """The part of one result, billed."""
    info.context.bill(hit.part, info.path.as_list())
    return hit.part


def warnings(result: views.ResultSet, _info: context.Info) -> tuple[str, ...] | None:
    """What was ignored; null for nothing."""
    return result.warnings or None


ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supParts": parts,
    "Query.supSearch": search,
    "Query.supSearchMpn": search_mpn,
    "Query.supMultiMatch": multi_match,
    "SupPartMatch.parts": matched_parts,
    "SupPartResultSet.hits": hits,
    "SupPartResultSet.total": hits,
    "SupPartResultSet.results": results,
    "SupPartResultSet.warnings": warnings,
    "SupPartResult.part": hit_part,
}
