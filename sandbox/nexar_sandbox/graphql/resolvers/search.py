"""Queries that return parts, and completions and spelling corrections (contract graphql.md §2).

Argument ranges are checked before these resolvers run (limits.py). A part is billed when the client selects it: `hits`
alone is not billed. Of filters only the types are checked here; the catalog checks keys and values.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphql import GraphQLFieldResolver

from nexar_sandbox import behavior as behaviors
from nexar_sandbox.catalog import records
from nexar_sandbox.catalog import search as catalog_search
from nexar_sandbox.graphql import context, errors, limits, views
from nexar_sandbox.graphql.resolvers import offers

Find = Callable[[str, records.SearchConditions, str, bool], records.SearchHits]


def parts(_root: None, info: context.Info, *, ids: list[str], **arguments: Any) -> list[views.PartView | None]:
    """Parts by id or by v3 uid; null where there is none."""
    market, behavior = offers.market(info, arguments), info.context.behavior
    parts_ = [_part(id_, info) for id_ in (ids if behavior.parts_in_order else reversed(ids))]
    views_ = [
        None if part is None else views.PartView(part, market)
        for part in parts_
        if part is not None or behavior.unknown_parts_are_null
    ]
    for position, view in enumerate(views_):
        if view is not None:
            info.context.bill(view, [*info.path.as_list(), position])
    return views_


def _part(id_: str, info: context.Info) -> records.Part | None:
    catalog, behavior = info.context.catalog, info.context.behavior
    part = catalog.part(id_)
    if part is None and (part := catalog.part_by_uid(id_)) is not None:
        is_own = part.v3uid == id_.lower()
        return part if (behavior.uids_lead_to_parts if is_own else behavior.redirected_uids_lead_to_parts) else None
    return part


def _search(find: Find, info: context.Info, arguments: Mapping[str, Any]) -> views.SupPartResultSet:
    query = arguments.get("q") or ""  # without it, all that passes the filters (contract graphql.md §1.1)
    conditions = search_conditions(arguments, info.context.behavior)
    try:
        search_hits_ = find(query, conditions, arguments.get("sort") or "", arguments.get("sortDir") == "desc")
    except ValueError as error:
        raise errors.ServiceError(str(error)) from error
    market = offers.market(info, arguments)
    start, limit = arguments.get("start") or 0, arguments.get("limit")
    if limit is None or (limit == 0 and not info.context.behavior.zero_limit_empties_page):
        limit = limits.DEFAULT_LIMIT
    page = _page(info, search_hits_, start if info.context.behavior.search_start_obeyed else 0, limit)
    hits = tuple(
        views.SupPartResult(views.PartView(part, market), search_hits_.aka_of(part.id), query) for part in page
    )
    warnings = _warnings(query) if info.context.behavior.long_queries_warned else ()
    return views.SupPartResultSet(search_hits_, hits, query, conditions, start, warnings)


def _page(info: context.Info, hits: records.SearchHits, start: int, limit: int) -> list[records.Part]:
    parts = (info.context.catalog.part(id_) for id_ in hits.page(start, limit))
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
) -> list[views.SupPartMatch]:
    behavior = info.context.behavior
    market, conditions = offers.market(info, arguments), match_conditions(options or {}, behavior)
    if not behavior.equal_queries_separate:
        queries = [query for position, query in enumerate(queries) if query not in queries[:position]]
    matches = [_match(info, query, conditions, market) for query in queries]
    return matches if behavior.matches_in_order else matches[::-1]


def _match(
    info: context.Info, query: Mapping[str, Any], conditions: records.SearchConditions, market: views.Market
) -> views.SupPartMatch:
    behavior = info.context.behavior
    reference = query.get("reference") if behavior.references_echoed else None
    match_query = records.MatchQuery(
        mpn=query.get("mpn"),
        sku=query.get("sku"),
        mpn_or_sku=query.get("mpnOrSku"),
        manufacturer=query.get("manufacturer"),
        seller=query.get("seller"),
    )
    if match_query == records.MatchQuery():
        # The contract knows no text of this field; that of the sandbox is the v3 service's.
        return views.SupPartMatch(reference, 0, error=behavior.empty_match_error)
    try:
        hits = info.context.catalog.match(match_query, conditions)
    except ValueError as error:
        raise errors.ServiceError(str(error)) from error
    start = query["start"] if behavior.match_start_obeyed else 0
    limit = query["limit"] or (0 if behavior.zero_match_limit_empties_page else limits.DEFAULT_MATCH_LIMIT)
    page = _page(info, hits, start, limit)
    return views.SupPartMatch(reference, hits.hits, tuple(views.PartView(part, market) for part in page))


def matched_parts(match: views.SupPartMatch, info: context.Info) -> tuple[views.PartView, ...]:
    """Return the billed parts of one result."""
    place = info.path.as_list()
    for position, part in enumerate(match.parts):
        info.context.bill(part, [*place, position])
    return match.parts


def hits(result: views.SupPartResultSet, info: context.Info) -> int:
    """All hits, not the page."""
    before = 0 if info.context.behavior.hits_count_all else result.start
    return max(result.hits.hits - before, 0)


def hit_part(hit: views.SupPartResult, info: context.Info) -> views.PartView:
    """Return the part of one result, billed."""
    info.context.bill(hit.part, info.path.as_list())
    return hit.part


# A filter on mere existence is what the service cannot do, though the catalog can.
_MERE_EXISTENCE = re.compile(r"\(\s*__\s*\)")


def search_conditions(arguments: Mapping[str, Any], behavior: behaviors.SupplyBehavior) -> records.SearchConditions:
    """From the arguments of a search. Raises ServiceError naming the filter."""
    return records.SearchConditions(
        filters=_filters(arguments.get("filters") or {}),
        in_stock_only=bool(arguments.get("inStockOnly")) and behavior.in_stock_filters,
        search_rules=behavior,
    )


def match_conditions(options: Mapping[str, Any], behavior: behaviors.SupplyBehavior) -> records.SearchConditions:
    """From the options of supMultiMatch. Raises ServiceError naming the filter."""
    return records.SearchConditions(
        filters=_filters((options.get("filters") if behavior.match_filters_obeyed else None) or {}),
        in_stock_only=bool(options.get("requireStockAvailable")) and behavior.match_stock_obeyed,
        authorized_only=bool(options.get("requireAuthorizedSellers")) and behavior.match_authorized_obeyed,
        search_rules=behavior,
    )


def _filters(arguments: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((key, tuple(_texts(key, value))) for key, value in arguments.items() if value is not None)


def _texts(key: str, value: Any) -> Iterable[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise errors.ServiceError(f"filter {key} must be a list of strings, not {value!r}")
        if _MERE_EXISTENCE.fullmatch(str(item)):
            raise errors.ServiceError(f"filter {key} has no range {item!r}: a bound is needed")
        yield str(item)


_WORD = re.compile(r"[^\W_]+")


def suggest(
    _root: None,
    info: context.Info,
    q: str,
    categoryId: str | None = None,  # noqa: N803 (the schema's argument names)
    partNumbersOnly: bool | None = None,  # noqa: N803
) -> tuple[records.Suggestion, ...]:
    return info.context.catalog.suggest(q, categoryId or None, part_numbers_only=bool(partNumbersOnly))


def description(hit: views.SupPartResult, info: context.Info) -> str:
    return highlighted(hit.part.record.short_description, hit.query, info.context.behavior.highlight_tag)


def highlighted(text: str, query: str, tag: str = "strong") -> str:
    """`text` with an element around the words of `query`; the last of them may be the beginning of a word.

    Nothing is escaped: the text is the catalog's own.
    """
    terms = [word.lower() for word in _WORD.findall(query)]
    if not terms:
        return text
    terms_, last = set(terms), terms[-1]

    def mark(match: re.Match[str]) -> str:
        word = match[0].lower()
        return f"<{tag}>{match[0]}</{tag}>" if word in terms_ or word.startswith(last) else match[0]

    return _WORD.sub(mark, text)


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supParts": parts,
    "Query.supSearch": lambda _, info, **arguments: _search(info.context.catalog.search, info, arguments),
    "Query.supSearchMpn": lambda _, info, **arguments: _search(info.context.catalog.search_mpn, info, arguments),
    "Query.supMultiMatch": multi_match,
    "SupPartMatch.parts": matched_parts,
    "SupPartResultSet.hits": hits,
    "SupPartResultSet.total": hits,
    "SupPartResultSet.results": lambda result, _: result.page,
    "SupPartResultSet.warnings": lambda result, _: result.warnings or None,
    "SupPartResult.part": hit_part,
    "Query.supSuggest": suggest,
    "Query.supSpellingCorrection": lambda _, info, q: info.context.catalog.spelling(q),
    "SupPartResult._cacheId": lambda hit, _: views.cache_id("hit", hit.part.record.id, hit.query, *hit.part.market.key),
    "SupPartResult.description": description,
    "SupPartResult.explain": lambda _hit, _info: "",  # always (contract graphql.md §1.2)
}
