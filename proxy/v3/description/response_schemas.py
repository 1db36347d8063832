"""JSON schemas of what is around v3's objects in responses: request echo, results, counts, errors (contract v3-rest.md
§3.6, §5).

Part of the OpenAPI description, by which tests validate real responses. show[] and hide[] do not apply to them.
"""

from collections.abc import Collection, Mapping
from typing import Any

from proxy import errors
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries

Schema = dict[str, Any]
ErrorType = type[errors.BridgeError]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}
# an empty schema accepts everything
ANY: Schema = {}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_key(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def answer(endpoint: Endpoint) -> Schema:
    return {
        "match": ref("PartsMatchResponse"),
        "search": ref(f"{endpoint.object}SearchResponse"),
        "get_multi": by_key(ref(endpoint.object)),
        "get": ref(endpoint.object),
    }[endpoint.action]


def components() -> dict[str, Schema]:
    """Return the schemas by name; those around the results of a search once for each kind of object."""
    schemas = dict(SHARED)
    for name in SEARCHABLE:
        schemas |= _search(name)
    return schemas


def error_types() -> list[ErrorType]:
    """Return every error that a client can get, sorted by status."""
    kinds = [*_leaves(errors.ClientError), *_leaves(errors.ServerError), errors.ServerError]
    return sorted(kinds, key=lambda kind: kind.status)


def error_statuses(endpoint: Endpoint) -> list[int]:
    """Return the error statuses of a GET."""
    # get_multi leaves unknown uids out; a GET is never a 405.
    only = {404: endpoint.action == "get", 405: False}
    return [status for status in dict.fromkeys(kind.status for kind in error_types()) if only.get(status, True)]


def _leaves(kind: ErrorType) -> list[ErrorType]:
    """Return the leaf classes below `kind` in errors.py. Subclasses in other packages look the same to a client."""
    # A leaf is what a client can tell: the classes above it only group. An expired key is refused like an unknown one.
    below = [
        subclass
        for subclass in kind.__subclasses__()
        if subclass.__module__ == errors.__name__ and subclass != errors.ExpiredKey
    ]
    return [leaf for subclass in below for leaf in _leaves(subclass)] if below else [kind]


def _object(
    fields: Mapping[str, tuple[Schema, str]], class_name: str | None = None, optional: Collection[str] = ()
) -> Schema:
    """Return the schema of an object, whose fields have a schema and a meaning. All are always present, except
    `optional` ones. `class_name` is its `__class__`."""
    properties: dict[str, Schema] = {"__class__": {"const": class_name}} if class_name else {}
    properties |= {name: {**schema, "description": meaning} for name, (schema, meaning) in fields.items()}
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


SEARCHABLE = ("Part", "Brand", "Category", "Seller")
NUMBER: Schema = either({"type": "number"}, NULL)
COUNT: Schema = either(WHOLE, NULL)
_LISTS_ONLY = "of brands, categories and sellers; null of parts, because the service does not compute it"

ERRORS = ("ClientErrorResponse", "ServerErrorResponse")

SHARED: dict[str, Schema] = {
    "PartsMatchResponse": _object(
        {
            "msec": (WHOLE, "milliseconds that the proxy took"),
            "request": (ref("PartsMatchRequest"), "the request, with defaults"),
            "results": (list_of(ref("PartsMatchResult")), "one for each query, in their order"),
        },
        "PartsMatchResponse",
    ),
    "PartsMatchRequest": _object(
        {
            "queries": (list_of(ref("PartsMatchQuery")), "as they were sent, with defaults filled in"),
            "exact_only": (FLAG, "as it was understood"),
        },
        "PartsMatchRequest",
    ),
    "PartsMatchQuery": _object(
        {name: (ANY, "as it was sent, of any JSON type; else the default") for name in match_queries.DEFAULTS},
        "PartsMatchQuery",
    ),
    "PartsMatchResult": _object(
        {
            "items": (list_of(ref("Part")), "the page of parts"),
            "hits": (WHOLE, "all matches, of a number with `*` the most there can be; 0 where the query has an error"),
            "reference": (ANY, "the query's own, of the same JSON type"),
            "error": (either(TEXT, NULL), "what is wrong with this query; the others have results"),
        },
        "PartsMatchResult",
    ),
    "SearchRequest": _object(
        {
            "q": (TEXT, "as it was sent"),
            "start": (WHOLE, "with its default"),
            "limit": (WHOLE, "with its default"),
            "sortby": (TEXT, "with its default"),
            "filter": (ref("FilterEcho"), "as it was sent"),
            "facet": (ref("FacetEcho"), "as it was understood"),
            "stats": (by_key(ref("StatsOptions")), "by field"),
            "spec_drilldown": (ref("DrilldownOptions"), "only where it was requested"),
        },
        "SearchRequest",
        optional={"spec_drilldown"},
    ),
    "FilterEcho": _object(
        {
            "fields": (by_key(list_of(TEXT)), "values by field; a single one is a list too"),
            "queries": (list_of(TEXT), "as they were sent"),
        }
    ),
    "FacetEcho": _object(
        {
            "fields": (by_key(ref("FacetOptions")), "by field"),
            "queries": (list_of(TEXT), "as they were sent"),
        }
    ),
    "FacetOptions": _object(
        {
            "include": (FLAG, "with its default"),
            "exclude_filter": (FLAG, "with its default"),
            "start": (WHOLE, "with its default"),
            "limit": (WHOLE, "with its default"),
        }
    ),
    "StatsOptions": _object(
        {
            "include": (FLAG, "true: others are not echoed"),
            "exclude_filter": (FLAG, "with its default"),
        }
    ),
    "DrilldownOptions": _object(
        {
            "include": (FLAG, "with its default"),
            "exclude_filter": (FLAG, "with its default"),
            "limit": (WHOLE, "with its default"),
        }
    ),
    "FacetResults": _object(
        {
            "fields": (by_key(ref("SearchFacetResult")), "by field; spec_drilldown adds the specs it found"),
            "queries": (by_key(ref("FacetCount")), "by filter query"),
        }
    ),
    "SearchFacetResult": _object(
        {
            "facets": (list_of(ref("FacetValue")), "the values, the most frequent first; none where it cannot count"),
            "missing": (COUNT, f"how many have no value, {_LISTS_ONLY}; 0 where nothing is found"),
            "spec_drilldown_rank": (COUNT, "1 for the best spec of a spec_drilldown, else null"),
        },
        "SearchFacetResult",
    ),
    "FacetValue": _object(
        {
            "value": ({"type": ["string", "number", "boolean"]}, "of parts always a string"),
            "count": (WHOLE, "how many have it"),
        }
    ),
    "FacetCount": _object(
        {
            "count": (COUNT, "how many hits pass the query; null where the service cannot tell"),
        }
    ),
    "SearchStatsResult": _object(
        {
            "min": (NUMBER, "the smallest number, of specs in SI base units"),
            "max": (NUMBER, "the largest number"),
            "mean": (NUMBER, f"the average, {_LISTS_ONLY}"),
            "stddev": (NUMBER, f"the spread, {_LISTS_ONLY}"),
            "count": (COUNT, "how many numbers there are; null of parts with 1000 different ones or more"),
            "missing": (COUNT, f"how many have none, {_LISTS_ONLY}; 0 where nothing is found"),
            "spec_drilldown_rank": (COUNT, "1 for the best spec of a spec_drilldown, else null"),
        },
        "SearchStatsResult",
    ),
    "SearchSpecMetadata": _object(
        {
            "key": (TEXT, "v3's name of the spec"),
            "name": (TEXT, "the spec's name for people"),
            "datatype": ({"enum": ["string", "integer", "decimal"]}, "as in SpecMetadata"),
            "unit": (either(ref("SearchSpecUnit"), NULL), "null where the spec has none"),
        },
        "SpecMetadata",
    ),
    "SearchSpecUnit": _object(
        {
            "name": (TEXT, "such as `ohms`"),
            "symbol": (either(TEXT, NULL), "such as `Ω`"),
        },
        "UnitOfMeasurement",
    ),
    **{name: _object({"message": (TEXT, "what is wrong, in words")}, name) for name in ERRORS},
}


LOCALE = {
    "user_country": (TEXT, "the `country` of the configuration"),
    "user_currency": (TEXT, "the `currency` of the configuration"),
}


def _search(name: str) -> dict[str, Schema]:
    """Return the schemas around the results of a search for one kind of object."""
    return {
        f"{name}SearchResponse": _object(
            {
                "request": (ref("SearchRequest"), "the request, with defaults"),
                "results": (list_of(ref(f"{name}SearchResult")), "the page"),
                "hits": (WHOLE, "all that was found"),
                "msec": (WHOLE, "milliseconds that the proxy took"),
                "facet_results": (ref("FacetResults"), "the requested counts"),
                "stats_results": (by_key(ref("SearchStatsResult")), "by field"),
                "spec_metadata": (
                    by_key(ref("SearchSpecMetadata")),
                    "by key, for each spec that was counted or filtered by",
                ),
            }
            | (LOCALE if name == "Part" else {}),
            "SearchResponse",
        ),
        f"{name}SearchResult": _object(
            {
                "item": (ref(name), "what was found"),
                "snippet": (either(TEXT, NULL), "of parts the service's description, else null as in v3"),
            },
            "SearchResult",
        ),
    }
