"""Root fields of clients as queries of the core, and their values from its answers. Pure.

Queries are those of v3 wherever both need the same list of the upstream, so that both find what the other has paid for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proxy import errors
from proxy.gateway.core import Answer
from proxy.model import PARTS_MAX
from proxy.planning import queries
from proxy.planning.queries import Query

MULTI_MATCH, PARTS = "supMultiMatch", "supParts"
SEARCHES: tuple[queries.SearchRoot, ...] = ("supSearch", "supSearchMpn")
# What is known of them beside the fields of parts.
KNOWN = {MULTI_MATCH, PARTS, *SEARCHES} | {
    *(f"{MULTI_MATCH}.{name}" for name in ("reference", "hits", "error", "parts")),
    *(f"{root}.hits" for root in SEARCHES),
    *(f"{root}.results{name}" for root in SEARCHES for name in ("", ".part", ".akaMpn", ".description")),
}
# Arguments with values under which results are those of one caller or moment.
PRIVATE = ("distributorApi", "customPricingCredentials")
# Limits of the service, whose own errors say what is wrong with others (contract graphql.md §2.1).
SEARCH_LIMIT, SEARCH_START_MAX, MATCH_END_MAX = 10, 1_000, 1_000

_NUMBERS = ("mpn", "sku", "mpnOrSku")
_CRITERIA = (*_NUMBERS, "manufacturer", "seller")
_decode = msgspec.json.Decoder().decode


def parts_max(name: str, arguments: Mapping[str, Any]) -> int:
    """Return how many parts a root field that selects parts costs at most."""
    if name == MULTI_MATCH:
        return sum(max(query["limit"], 0) for query in arguments["queries"])
    return len(arguments["ids"]) if name == PARTS else max(_limit(arguments), 0)


def is_private(arguments: Mapping[str, Any]) -> bool:
    """Return whether nothing of a root field may be stored."""
    return any(arguments.get(name) for name in PRIVATE)


def of_root(name: str, arguments: Mapping[str, Any]) -> list[Query] | None:
    """Return the queries of a root field; None where the core has none for its arguments."""
    if is_private(arguments):
        return None
    if name == MULTI_MATCH:
        return _matches(arguments)
    if name == PARTS:
        ids = arguments["ids"]
        return [*map(queries.part, ids)] if 0 < len(ids) <= PARTS_MAX and all(ids) else None
    start, limit = arguments.get("start") or 0, _limit(arguments)
    if not (0 <= start <= SEARCH_START_MAX and 0 < limit <= PARTS_MAX):
        return None
    criteria = {each: arguments.get(each) or None for each in ("q", "filters", "sort", "sortDir", "inStockOnly")}
    return [queries.search(root, start, start + limit, criteria) for root in SEARCHES if root == name]


def value(name: str, arguments: Mapping[str, Any], asked: Sequence[Query], answers: Sequence[Answer]) -> Any:
    """Return the value of a root field as the upstream has it. Raises UpstreamUnreadable."""
    found = [_page(query, answer) for query, answer in zip(asked, answers, strict=True)]
    if name == PARTS:
        return [page[0]["part"] if page else None for page in found]
    hits = [answer.result.hits if answer.result else 0 for answer in answers]
    if name != MULTI_MATCH:
        return {"hits": hits[0], "results": found[0] if hits[0] else None}  # null without hits, as the upstream's
    return [
        {
            "reference": query.get("reference"),
            "hits": number,
            "error": str(answer.error) if answer.error else None,
            "parts": [each["part"] for each in page],
        }
        for query, number, answer, page in zip(arguments["queries"], hits, answers, found, strict=True)
    ]


def _matches(arguments: Mapping[str, Any]) -> list[Query] | None:
    asked = arguments["queries"]
    options = {name: value for name, value in (arguments.get("options") or {}).items() if value}
    if not (0 < sum(query["limit"] for query in asked) <= PARTS_MAX and all(map(_is_plain, asked))):
        return None
    return [
        queries.matching(
            query["start"],
            query["start"] + query["limit"],
            mpn_or_sku=query.get("mpnOrSku"),
            options=options,
            **{name: query.get(name) for name in _CRITERIA if name != "mpnOrSku"},
        )
        for query in asked
    ]


def _is_plain(query: Mapping[str, Any]) -> bool:
    given = [query[name] for name in _CRITERIA if query.get(name) is not None]
    has_number = any(query.get(name) for name in _NUMBERS)
    start, limit = query["start"], query["limit"]
    return has_number and all(map(queries.fold, given)) and start >= 0 < limit and start + limit <= MATCH_END_MAX


def _page(query: Query, answer: Answer) -> list[dict[str, Any]]:
    """Return the elements of a query's list, as a search has them."""
    if answer.result is None:
        return []
    page = slice(query.start - answer.first, query.end - answer.first)
    found = zip(answer.result.items[page], answer.result.bodies[page], strict=True)
    try:
        return [{"part": _decode(body), "akaMpn": hit.aka_mpn, "description": hit.description} for hit, body in found]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise errors.UpstreamUnreadable(f"the upstream sent a part that cannot be read: {error}") from error


def _limit(arguments: Mapping[str, Any]) -> int:
    limit = arguments.get("limit")
    return SEARCH_LIMIT if limit is None else int(limit)
