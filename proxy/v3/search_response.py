"""Renderer of a SearchResponse (contract v3-rest.md §3.6)."""

from typing import Any

import msgspec

from proxy import model
from proxy.gateway.cache.entries import RenderedResult


def response(request: model.SearchRequest, items: list[Any], hits: int, counts: Any, msec: int) -> dict[str, Any]:
    """Return the body of a search. `counts` holds facets and statistics; only searches of parts have snippets and
    spec_metadata."""
    # Lists have no snippets, and v3 sent null there.
    snippets = getattr(counts, "snippets", None) or [None] * len(items)
    return {
        "__class__": "SearchResponse",
        "request": _echo(request),
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


def parts_response(request: model.SearchRequest, result: RenderedResult, msec: int) -> dict[str, Any]:
    """Body of a search of parts, whose items are JSON already: the list is split, the items are not decoded."""
    # Raw: each item stays the JSON that the cache holds.
    items = msgspec.json.decode(result.items, type=list[msgspec.Raw])
    return response(request, items, result.hits, result.details, msec)


def _echo(request: model.SearchRequest) -> dict[str, Any]:
    """Return the SearchRequest of a response, with defaults."""
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
            "fields": {facet.field: _facet_echo(facet) for facet in request.facets},
            "queries": list(request.facet_queries),
        },
        "stats": {field: {"include": True, "exclude_filter": exclude} for field, exclude in request.stats},
    }
    if request.drilldown is not None:
        drilldown = request.drilldown
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
