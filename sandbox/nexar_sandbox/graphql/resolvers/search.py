"""Queries that return parts, and completions and spelling corrections (contract graphql.md §2).

Argument ranges are checked before these resolvers run (limits.py). A part is billed when the client selects it: `hits`
alone is not billed. Of filters only the types are checked here; the catalog checks keys and values.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import records
from nexar_sandbox.catalog import search as catalog_search
from nexar_sandbox.graphql import context, errors, limits
from nexar_sandbox.graphql.resolvers import offers

Find = Callable[[str, records.SearchConditions, str, bool], records.SearchHits]


def parts(_root: None, info: context.Info, *, ids: list[str], **arguments: Any) -> list[context.PartView | None]:
    """Parts by id or by v3 uid; null where there is none."""
    market, catalog = offers.market(arguments), info.context.catalog
    found = [catalog.part(id_) or catalog.part_by_uid(id_) for id_ in ids]
    part_views = [None if part is None else context.PartView(part, market) for part in found]
    for position, view in enumerate(part_views):
        if view is not None:
            info.context.bill(view, [*info.path.as_list(), position])
    return part_views


def _search(find: Find, info: context.Info, arguments: Mapping[str, Any]) -> context.SupPartResultSet:
    query = arguments.get("q") or ""  # without it, all that passes the filters (contract graphql.md §1.1)
    conditions = search_conditions(arguments)
    try:
        search_hits_ = find(query, conditions, arguments.get("sort") or "", arguments.get("sortDir") == "desc")
    except ValueError as error:
        raise errors.ServiceError(str(error)) from error
    market = offers.market(arguments)
    start, limit = arguments.get("start") or 0, arguments.get("limit")
    page = _page(info, search_hits_, start, limits.DEFAULT_LIMIT if limit is None else limit)
    hits = tuple(
        context.SupPartResult(context.PartView(part, market), search_hits_.aka_of(part.id), query) for part in page
    )
    return context.SupPartResultSet(search_hits_, hits, query, conditions, _warnings(query))


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
) -> list[context.SupPartMatch]:
    market, conditions = offers.market(arguments), match_conditions(options or {})
    return [_match(info, query, conditions, market) for query in queries]


def _match(
    info: context.Info, query: Mapping[str, Any], conditions: records.SearchConditions, market: context.Market
) -> context.SupPartMatch:
    reference = query.get("reference")
    match_query = records.MatchQuery(
        mpn=query.get("mpn"),
        sku=query.get("sku"),
        mpn_or_sku=query.get("mpnOrSku"),
        manufacturer=query.get("manufacturer"),
        seller=query.get("seller"),
    )
    if match_query == records.MatchQuery():
        # The contract knows no text of this field; that of the sandbox is the v3 service's.
        return context.SupPartMatch(reference, 0, error="Missing search filters")
    try:
        hits = info.context.catalog.match(match_query, conditions)
    except ValueError as error:
        raise errors.ServiceError(str(error)) from error
    page = _page(info, hits, query["start"], query["limit"])
    return context.SupPartMatch(reference, hits.hits, tuple(context.PartView(part, market) for part in page))


def matched_parts(match: context.SupPartMatch, info: context.Info) -> tuple[context.PartView, ...]:
    """Return the billed parts of one result."""
    place = info.path.as_list()
    for position, part in enumerate(match.parts):
        info.context.bill(part, [*place, position])
    return match.parts


def hit_part(hit: context.SupPartResult, info: context.Info) -> context.PartView:
    """Return the part of one result, billed."""
    info.context.bill(hit.part, info.path.as_list())
    return hit.part


# A filter on mere existence is what the service cannot do, though the catalog can.
_MERE_EXISTENCE = re.compile(r"\(\s*__\s*\)")


def search_conditions(arguments: Mapping[str, Any]) -> records.SearchConditions:
    """From the arguments of a search. Raises ServiceError naming the filter."""
    return records.SearchConditions(_filters(arguments.get("filters") or {}), bool(arguments.get("inStockOnly")))


def match_conditions(options: Mapping[str, Any]) -> records.SearchConditions:
    """From the options of supMultiMatch. Raises ServiceError naming the filter."""
    return records.SearchConditions(
        filters=_filters(options.get("filters") or {}),
        in_stock_only=bool(options.get("requireStockAvailable")),
        authorized_only=bool(options.get("requireAuthorizedSellers")),
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


def highlighted(text: str, query: str) -> str:
    """`text` with `<strong>` around the words of `query`; the last of them may be the beginning of a word.

    Nothing is escaped: the text is the catalog's own.
    """
    terms = [word.lower() for word in _WORD.findall(query)]
    if not terms:
        return text

    def mark(match: re.Match[str]) -> str:
        word = match[0].lower()
        return f"<strong>{match[0]}</strong>" if word in terms or word.startswith(terms[-1]) else match[0]

    return _WORD.sub(mark, text)


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supParts": parts,
    "Query.supSearch": lambda _, info, **arguments: _search(info.context.catalog.search, info, arguments),
    "Query.supSearchMpn": lambda _, info, **arguments: _search(info.context.catalog.search_mpn, info, arguments),
    "Query.supMultiMatch": multi_match,
    "SupPartMatch.parts": matched_parts,
    # All hits, not the page.
    "SupPartResultSet.hits": lambda result, _: result.hits.hits,
    "SupPartResultSet.total": lambda result, _: result.hits.hits,
    # Null without hits, as clients expect it (contract graphql.md §1.2).
    "SupPartResultSet.results": lambda result, _: result.page if result.hits.hits else None,
    "SupPartResultSet.warnings": lambda result, _: result.warnings or None,
    "SupPartResult.part": hit_part,
    "Query.supSuggest": suggest,
    "Query.supSpellingCorrection": lambda _, info, q: info.context.catalog.spelling(q),
    "SupPartResult._cacheId": lambda hit, _: context.cache_id("hit", hit.part.record.id, hit.query, *hit.part.market),
    "SupPartResult.description": lambda hit, _: highlighted(hit.part.record.short_description, hit.query),
    "SupPartResult.explain": lambda _hit, _info: "",  # always (contract graphql.md §1.2)
}
