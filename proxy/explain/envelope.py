"""Fields of a response around its v3 objects: what the proxy makes them of."""

import re
from collections.abc import Iterable

import msgspec

from proxy.explain.explanation import ExplainedField, ExplainedOperation
from proxy.mapping.coverage import Kind
from proxy.v3.endpoints import Action, Endpoint

ITEMS: dict[Action, str] = {
    "match": "results[].items[]",
    "search": "results[].item",
    "get_multi": "<uid>",
    "get": "",
}
"""Path of the objects in a response; empty: the response is the object."""

_NAME = re.compile(r"\w+")
ECHO, MEASURED = "repeats the request, with defaults", "time that the proxy took, in milliseconds"


def of_endpoint(endpoint: Endpoint, operations: Iterable[ExplainedOperation]) -> tuple[ExplainedField, ...]:
    """Return the fields around the objects of a response, with those of their upstream paths that the operations
    select; none for an endpoint that returns objects only."""
    names = {name for each in operations for name in _NAME.findall(each.document)} | {"errors", "message"}
    return tuple(
        msgspec.structs.replace(
            field, upstream=tuple(path for path in field.upstream if names.issuperset(_NAME.findall(path)))
        )
        for field in _fields(endpoint)
    )


def _fields(endpoint: Endpoint) -> tuple[ExplainedField, ...]:
    if endpoint.action == "match":
        return _MATCH
    if endpoint.action != "search":
        return ()
    return (*_SEARCH, *_PARTS_SEARCH) if endpoint.object == "Part" else (*_SEARCH, *_LIST_SEARCH)


def _field(path: str, kind: Kind, note: str, *upstream: str) -> ExplainedField:
    return ExplainedField(path=path, kind=kind, upstream=upstream, note=note)


_MATCH = (
    _field("msec", "derived", MEASURED),
    _field("request", "derived", ECHO),
    _field("results[].items", "exact", "the matching parts, see below"),
    _field(
        "results[].hits",
        "derived",
        "without partial matches, which v3 never had; counted apart where the page leaves it open; of a number with * "
        "an upper bound",
        "supMultiMatch[].hits",
        "supSearchMpn.hits",
        "supSearch.hits",
    ),
    _field("results[].reference", "derived", "the query's own: it is not sent"),
    _field("results[].error", "exact", "or why the query is invalid", "supMultiMatch[].error", "errors[].message"),
)

_SEARCH = (
    _field("msec", "derived", MEASURED),
    _field("request", "derived", ECHO),
)

_PARTS_SEARCH = (
    _field("results[].item", "exact", "the parts of the page, see below"),
    _field("results[].snippet", "exact", "", "supSearch.results[].description"),
    _field("hits", "exact", "in a search by mpn it can be an upper bound", "supSearch.hits"),
    _field(
        "facet_results",
        "derived",
        "counts of facet[] and spec_drilldown; `missing` is null",
        *(f"supSearch.{name}[]" for name in ("manufacturerAgg", "distributorAgg", "categoryAgg", "inStockAgg")),
        "supSearch.specAggs[].buckets[]",
    ),
    _field(
        "stats_results",
        "derived",
        "of stats[]; `mean` and `stddev` are null",
        "supSearch.specAggs[].siMin",
        "supSearch.specAggs[].siMax",
    ),
    _field(
        "spec_metadata", "derived", "of the specs that are filtered by or counted", "supSearch.specAggs[].attribute"
    ),
    _field("user_country", "derived", "the application's country"),
    _field("user_currency", "derived", "the application's currency"),
)

_LIST_SEARCH = (
    _field("results[].item", "exact", "the objects of the page, see below"),
    _field("results[].snippet", "no source", "lists have no snippets; a client sees null"),
    _field("hits", "derived", "counted in the list by the proxy"),
    _field("facet_results", "derived", "counted in the list by the proxy"),
    _field("stats_results", "derived", "computed from the list by the proxy"),
    _field("spec_metadata", "constant", "{}: such objects have no specs"),
)
