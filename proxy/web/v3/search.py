"""The search set of parameters (contract v3-rest.md §1.1) into a frozen request, and SearchResponse (§3.6)."""

import re
from typing import Any

import msgspec

from proxy import bounds, errors, model
from proxy.gateway.cache.entries import Answer
from proxy.kit.encoding import RawJson
from proxy.parameters import Parameters

FILTER = re.compile(r"filter\[fields\]\[([^\[\]]+)\]")
FACET = re.compile(r"facet\[fields\]\[([^\[\]]+)\]\[(?:include|exclude_filter|start|limit)\]")
STATS = re.compile(r"stats\[([^\[\]]+)\]\[(?:include|exclude_filter)\]")


def request(parameters: Parameters) -> model.SearchRequest:
    """The request. Raises BadRequest, naming the parameter and what it accepts."""
    _check_numbers(parameters)
    return model.SearchRequest(
        q=parameters.text("q") or "",
        start=parameters.whole("start", 0, model.SEARCH_START_MAX),
        limit=_limit(parameters),
        sortby=parameters.text("sortby") or "score desc",
        filters=tuple(_filters(parameters)),
        filter_queries=tuple(_queries(parameters, "filter")),
        facets=tuple(_facet(parameters, field) for field in _counted(parameters, "facet", FACET)),
        facet_queries=tuple(dict.fromkeys(_queries(parameters, "facet"))),
        stats=tuple(_stats(parameters)),
        drilldown=_drilldown(parameters),
    )


def response(asked: model.SearchRequest, items: list[Any], hits: int, counts: Any, msec: int) -> dict[str, Any]:
    """A SearchResponse. `counts` has v3's counts; snippets and spec_metadata are of parts only."""
    snippets = getattr(counts, "snippets", None) or [None] * len(items)
    return {
        "__class__": "SearchResponse",
        "request": _echo(asked),
        "results": [
            {"__class__": "SearchResult", "item": item, "snippet": snippet}
            for item, snippet in zip(items, snippets, strict=True)
        ],
        "hits": hits,
        "msec": msec,
        "facet_results": counts.facet_results,
        "stats_results": counts.stats_results,
        "spec_metadata": getattr(counts, "spec_metadata", {}),
    }


def parts_response(asked: model.SearchRequest, answer: Answer, msec: int) -> dict[str, Any]:
    """The same of an answer that is encoded already: its items are taken apart, not read."""
    items = [RawJson(bytes(item)) for item in msgspec.json.decode(answer.items, type=list[msgspec.Raw])]
    return response(asked, items, answer.hits, answer.beside, msec)


def _limit(parameters: Parameters) -> int:
    """`limit`, refused above 100. What v3 did with more is not known (contract v3-rest.md §1.1). A page of 100 would
    lose results without a word where a client goes on at start + limit; a 400 loses none, and says what to send.
    """
    try:
        return parameters.whole("limit", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX)
    except errors.BadRequest as error:
        most = model.SEARCH_LIMIT_MAX
        raise errors.BadRequest(
            f"{error.message}; for more results send limit={most}, then start={most} and so on"
        ) from None


def _check_numbers(parameters: Parameters) -> None:
    """Raise BadRequest for more than a search may hold."""
    facets, stats = _counted(parameters, "facet", FACET), _counted(parameters, "stats", STATS)
    filtered, counted = _queries(parameters, "filter"), set(_queries(parameters, "facet"))
    bounds.Q.check(len(parameters.text("q") or ""))
    bounds.SORT_KEYS.check((parameters.text("sortby") or "").count(",") + 1)
    bounds.FILTERS.check(len(parameters.names("filter[fields]")))
    bounds.FILTER_QUERIES.check(len(filtered))
    bounds.COUNTS.check(len(facets) + len(stats) + len(counted))
    bounds.QUERIES_LENGTH.check(sum(map(len, (*filtered, *counted))))


def _queries(parameters: Parameters, kind: str) -> list[str]:
    """The texts of `filter[queries]` or `facet[queries]`."""
    return [text for text in parameters.texts(f"{kind}[queries]") if text]


def _filters(parameters: Parameters) -> list[tuple[str, tuple[str, ...]]]:
    """`filter[fields][brand.name][]=X`, the last brackets at will. What is spelled another way is refused: without its
    filter a reply would be another's."""
    found = []
    for name in parameters.names("filter["):
        if name == "filter[queries]":
            continue
        field = FILTER.fullmatch(name)
        if field is None:
            raise errors.BadRequest(f"{name[:60]} must be like filter[fields][brand.name][]")
        if values := tuple(value for value in parameters.texts(name) if value):
            bounds.FILTER_VALUES.check(len(values), f"{name}[]")
            bounds.FILTER_LENGTH.check(max(map(len, values)), f"{name}[]")
            found.append((field[1], values))
    return found


def _counted(parameters: Parameters, kind: str, option: re.Pattern[str]) -> list[str]:
    """The fields that options such as `facet[fields][x][include]` speak of, each once; others are ignored."""
    found = (option.fullmatch(name) for name in parameters.names(f"{kind}["))
    return list(dict.fromkeys(each[1] for each in found if each))


def _facet(parameters: Parameters, field: str) -> model.FacetField:
    name = f"facet[fields][{field}]"
    return model.FacetField(
        field,
        parameters.flag(f"{name}[include]"),
        parameters.flag(f"{name}[exclude_filter]"),
        parameters.whole(f"{name}[start]", 0, model.SEARCH_START_MAX),
        parameters.whole(f"{name}[limit]", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX),
    )


def _stats(parameters: Parameters) -> list[tuple[str, bool]]:
    fields = _counted(parameters, "stats", STATS)
    asked = [field for field in fields if parameters.flag(f"stats[{field}][include]")]
    return [(field, parameters.flag(f"stats[{field}][exclude_filter]")) for field in asked]


def _drilldown(parameters: Parameters) -> model.Drilldown | None:
    """spec_drilldown is in the echo only where it is used (contract v3-rest.md §3.6)."""
    if not parameters.names("spec_drilldown["):
        return None
    return model.Drilldown(
        parameters.flag("spec_drilldown[include]"),
        parameters.flag("spec_drilldown[exclude_filter]"),
        parameters.whole("spec_drilldown[limit]", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX),
    )


def _echo(asked: model.SearchRequest) -> dict[str, Any]:
    """A SearchRequest as v3 repeated it, defaults filled in."""
    echo = {
        "__class__": "SearchRequest",
        "q": asked.q,
        "start": asked.start,
        "limit": asked.limit,
        "sortby": asked.sortby,
        "filter": {
            "fields": {field: list(values) for field, values in asked.filters},
            "queries": list(asked.filter_queries),
        },
        "facet": {
            "fields": {facet.field: _facet_echo(facet) for facet in asked.facets},
            "queries": list(asked.facet_queries),
        },
        "stats": {field: {"include": True, "exclude_filter": apart} for field, apart in asked.stats},
    }
    if asked.drilldown is not None:
        drilldown = asked.drilldown
        echo["spec_drilldown"] = {
            "include": drilldown.include,
            "exclude_filter": drilldown.exclude_filter,
            "limit": drilldown.limit,
        }
    return echo


def _facet_echo(facet: model.FacetField) -> dict[str, Any]:
    return {
        "include": facet.include,
        "exclude_filter": facet.exclude_filter,
        "start": facet.start,
        "limit": facet.limit,
    }
