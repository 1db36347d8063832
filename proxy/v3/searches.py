"""Searches of parts, brands, sellers and categories: parameters (contract v3-rest.md §1.1) and response."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from proxy import errors, model
from proxy.v3.parameters import Bound, Parameters

FILTER = re.compile(r"filter\[fields\]\[([^\[\]]+)\]")
FACET = re.compile(r"facet\[fields\]\[([^\[\]]+)\]\[(?:include|exclude_filter|start|limit)\]")
STATS = re.compile(r"stats\[([^\[\]]+)\]\[(?:include|exclude_filter)\]")


def parse(parameters: Parameters) -> model.SearchRequest:
    """Parse a search. Raises BadRequest, which names the parameter and what it accepts."""
    most, default = model.SEARCH_LIMIT_MAX, model.SEARCH_LIMIT_DEFAULT
    filtered = [text for text in parameters.texts("filter[queries]") if text]
    # Results are keyed by the text of the query, so that a repetition adds nothing.
    queried = list(dict.fromkeys(filter(None, parameters.texts("facet[queries]"))))
    faceted, measured = _fields(parameters, "facet", FACET), _fields(parameters, "stats", STATS)
    _check_bounds(parameters, filtered, queried, len(faceted) + len(measured))
    try:
        limit = parameters.whole("limit", default, most)
    except errors.BadRequest as error:
        # What v3 did with more is not known (contract v3-rest.md §1.1). A page of 100 would silently lose results of a
        # client that continues at start + limit.
        more = f"for more results send limit={most}, then start={most} and so on"
        raise errors.BadRequest(f"{error.message}; {more}") from None
    drilldown = None
    if parameters.names("spec_drilldown["):  # else it is not echoed (contract v3-rest.md §3.6)
        drilldown = model.Drilldown(
            parameters.flag("spec_drilldown[include]"),
            parameters.flag("spec_drilldown[exclude_filter]"),
            parameters.whole("spec_drilldown[limit]", default, most),
        )
    return model.SearchRequest(
        q=parameters.text("q") or "",
        start=parameters.whole("start", 0, model.SEARCH_START_MAX),
        limit=limit,
        sortby=parameters.text("sortby") or "score desc",
        filters=tuple(_filters(parameters)),
        filter_queries=tuple(filtered),
        facets=tuple(_facet(parameters, field) for field in faceted),
        facet_queries=tuple(queried),
        stats=tuple(
            (field, parameters.flag(f"stats[{field}][exclude_filter]"))
            for field in measured
            if parameters.flag(f"stats[{field}][include]")
        ),
        drilldown=drilldown,
    )


def _check_bounds(parameters: Parameters, filtered: list[str], queried: list[str], fields: int) -> None:
    """Raise BadRequest for more fields, queries or counts than the bounds allow."""
    Bound.Q.check(len(parameters.text("q") or ""))
    # Commas are counted, because nothing has been split yet.
    Bound.SORT_KEYS.check((parameters.text("sortby") or "").count(",") + 1)
    Bound.FILTERS.check(len(parameters.names("filter[fields]")))
    Bound.FILTER_QUERIES.check(len(filtered))
    Bound.COUNTS.check(fields + len(queried))
    Bound.QUERIES_LENGTH.check(sum(map(len, (*filtered, *queried))))


def _filters(parameters: Parameters) -> list[tuple[str, tuple[str, ...]]]:
    """`filter[fields][brand.name][]=X`, the last brackets optional."""
    filters = []
    for name in parameters.names("filter["):
        field = FILTER.fullmatch(name)
        values = tuple(value for value in parameters.texts(name) if value)
        if field and values:
            Bound.FILTER_VALUES.check(len(values), f"{name}[]")
            Bound.FILTER_LENGTH.check(max(map(len, values)), f"{name}[]")
            filters.append((field[1], values))
    return filters


def unknown_filters(parameters: Parameters) -> tuple[str, ...]:
    """Return the parameters that look like a filter and are none, such as `filter[value]`: v3 ignored what it did not
    know, but the response has to name them, because it lacks the filter."""
    names = parameters.names("filter")
    return tuple(name for name in names if name != "filter[queries]" and not FILTER.fullmatch(name))


def _fields(parameters: Parameters, kind: str, option: re.Pattern[str]) -> list[str]:
    """Return the distinct fields of options such as `facet[fields][x][include]`; unknown options are ignored."""
    matches = (option.fullmatch(name) for name in parameters.names(f"{kind}["))
    return list(dict.fromkeys(each[1] for each in matches if each))


def _facet(parameters: Parameters, field: str) -> model.FacetField:
    name = f"facet[fields][{field}]"
    return model.FacetField(
        field,
        parameters.flag(f"{name}[include]"),
        parameters.flag(f"{name}[exclude_filter]"),
        parameters.whole(f"{name}[start]", 0, model.SEARCH_START_MAX),
        parameters.whole(f"{name}[limit]", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX),
    )


def response(request: model.SearchRequest, items: Sequence[Any], hits: int, counts: Any, msec: int) -> dict[str, Any]:
    """Return the body of a search (contract v3-rest.md §3.6). `counts` holds facets and statistics; only searches of
    parts have snippets and spec_metadata."""
    echo = {
        "__class__": "SearchRequest",
        "q": request.q,
        "start": request.start,
        "limit": request.limit,
        "sortby": request.sortby,
        "filter": {
            "fields": {field: list(values) for field, values in request.filters},
            "queries": list(request.filter_queries),
        },
        "facet": {
            "fields": {options.pop("field"): options for options in map(structs.asdict, request.facets)},
            "queries": list(request.facet_queries),
        },
        "stats": {field: {"include": True, "exclude_filter": exclude} for field, exclude in request.stats},
    }
    if request.drilldown is not None:
        echo["spec_drilldown"] = structs.asdict(request.drilldown)
    # Lists have no snippets, and v3 sent null there.
    snippets = getattr(counts, "snippets", None) or [None] * len(items)
    return {
        "__class__": "SearchResponse",
        "request": echo,
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
