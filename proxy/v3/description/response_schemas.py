"""Envelopes of v3's responses as data: request echo, results, counts, errors (contract v3-rest.md §3.6, §5).

Read by surface_page.py and openapi.py; tests validate real responses against it. show[] and hide[] do not apply to
envelopes.
"""

from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class ResponseField:
    """Field of an envelope: its JSON schema and its description. `parts_only`: only in searches of parts."""

    name: str
    schema: Schema
    meaning: str
    parts_only: bool = False


@dataclass(frozen=True, slots=True)
class ResponseObject:
    """Object of a response. All fields are always present, except those in `optional`. `class_` is its `__class__`."""

    name: str
    fields: tuple[ResponseField, ...]
    class_: str | None = None
    optional: frozenset[str] = frozenset()

    def schema(self) -> Schema:
        """Return its JSON schema."""
        properties = {"__class__": {"const": self.class_}} if self.class_ else {}
        properties |= {field.name: {**field.schema, "description": field.meaning} for field in self.fields}
        required = [name for name in properties if name not in self.optional]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def ref(name: str) -> Schema:
    """Return a reference to a schema of the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def by_key(schema: Schema) -> Schema:
    """Return the schema of an object whose keys are data."""
    return {"type": "object", "additionalProperties": schema}


def either(*schemas: Schema) -> Schema:
    """Return a schema that accepts any of these."""
    return {"anyOf": list(schemas)}


def answer(endpoint: Endpoint) -> Schema:
    """Return the schema of the body of an endpoint's 200."""
    return {
        "match": ref("PartsMatchResponse"),
        "search": ref(f"{endpoint.object}SearchResponse"),
        "get_multi": by_key(ref(endpoint.object)),
        "get": ref(endpoint.object),
    }[endpoint.action]


def components() -> dict[str, Schema]:
    """Return all envelopes as schemas by name; those of a search once for each kind of object."""
    schemas = {each.name: each.schema() for each in ALL if each not in SEARCHED}
    for name in SEARCHABLE:
        schemas |= {f"{name}{each.name}": _of(name, each).schema() for each in SEARCHED}
    return schemas


def _of(name: str, envelope: ResponseObject) -> ResponseObject:
    """Return the envelope of a search for one kind of object."""
    schemas = {"results": list_of(ref(f"{name}SearchResult")), "item": ref(name)}
    shown = [field for field in envelope.fields if name == "Part" or not field.parts_only]
    fields = tuple(replace(field, schema=schemas.get(field.name, field.schema)) for field in shown)
    return replace(envelope, fields=fields)


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
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__ and each != errors.ExpiredKey]
    return [leaf for each in below for leaf in _leaves(each)] if below else [kind]


MATCH = (
    ResponseObject(
        "PartsMatchResponse",
        (
            ResponseField("msec", WHOLE, "milliseconds that the proxy took"),
            ResponseField("request", ref("PartsMatchRequest"), "the request, with defaults"),
            ResponseField("results", list_of(ref("PartsMatchResult")), "one for each query, in their order"),
        ),
        "PartsMatchResponse",
    ),
    ResponseObject(
        "PartsMatchRequest",
        (
            ResponseField("queries", list_of(ref("PartsMatchQuery")), "as they were sent, with defaults filled in"),
            ResponseField("exact_only", FLAG, "as it was understood"),
        ),
        "PartsMatchRequest",
    ),
    ResponseObject(
        "PartsMatchQuery",
        tuple(
            ResponseField(name, ANY, "as it was sent, of any JSON type; else the default")
            for name in match_queries.DEFAULTS
        ),
        "PartsMatchQuery",
    ),
    ResponseObject(
        "PartsMatchResult",
        (
            ResponseField("items", list_of(ref("Part")), "the page of parts"),
            ResponseField(
                "hits",
                WHOLE,
                "all matches, of a number with `*` the most there can be; 0 where the query has an error",
            ),
            ResponseField("reference", ANY, "the query's own, of the same JSON type"),
            ResponseField("error", either(TEXT, NULL), "what is wrong with this query; the others have results"),
        ),
        "PartsMatchResult",
    ),
)


SEARCHABLE = ("Part", "Brand", "Category", "Seller")
NUMBER: Schema = either({"type": "number"}, NULL)
COUNT: Schema = either(WHOLE, NULL)
_LISTS_ONLY = "of brands, categories and sellers; null of parts, because the service does not compute it"

SEARCHED = (
    ResponseObject(
        "SearchResponse",
        (
            ResponseField("request", ref("SearchRequest"), "the request, with defaults"),
            ResponseField("results", list_of(ref("SearchResult")), "the page"),
            ResponseField("hits", WHOLE, "all that was found"),
            ResponseField("msec", WHOLE, "milliseconds that the proxy took"),
            ResponseField("facet_results", ref("FacetResults"), "the requested counts"),
            ResponseField("stats_results", by_key(ref("SearchStatsResult")), "by field"),
            ResponseField(
                "spec_metadata",
                by_key(ref("SearchSpecMetadata")),
                "by key, for each spec that was counted or filtered by",
            ),
            ResponseField("user_country", TEXT, "parts only: the `country` of the configuration", parts_only=True),
            ResponseField("user_currency", TEXT, "parts only: the `currency` of the configuration", parts_only=True),
        ),
        "SearchResponse",
    ),
    ResponseObject(
        "SearchResult",
        (
            ResponseField("item", either(*(ref(name) for name in SEARCHABLE)), "what was found"),
            ResponseField("snippet", either(TEXT, NULL), "of parts the service's description, else null as in v3"),
        ),
        "SearchResult",
    ),
)

SEARCH = (
    *SEARCHED,
    ResponseObject(
        "SearchRequest",
        (
            ResponseField("q", TEXT, "as it was sent"),
            ResponseField("start", WHOLE, "with its default"),
            ResponseField("limit", WHOLE, "with its default"),
            ResponseField("sortby", TEXT, "with its default"),
            ResponseField("filter", ref("FilterEcho"), "as it was sent"),
            ResponseField("facet", ref("FacetEcho"), "as it was understood"),
            ResponseField("stats", by_key(ref("StatsOptions")), "by field"),
            ResponseField("spec_drilldown", ref("DrilldownOptions"), "only where it was requested"),
        ),
        "SearchRequest",
        optional=frozenset({"spec_drilldown"}),
    ),
    ResponseObject(
        "FilterEcho",
        (
            ResponseField("fields", by_key(list_of(TEXT)), "values by field; a single one is a list too"),
            ResponseField("queries", list_of(TEXT), "as they were sent"),
        ),
    ),
    ResponseObject(
        "FacetEcho",
        (
            ResponseField("fields", by_key(ref("FacetOptions")), "by field"),
            ResponseField("queries", list_of(TEXT), "as they were sent"),
        ),
    ),
    ResponseObject(
        "FacetOptions",
        (
            ResponseField("include", FLAG, "with its default"),
            ResponseField("exclude_filter", FLAG, "with its default"),
            ResponseField("start", WHOLE, "with its default"),
            ResponseField("limit", WHOLE, "with its default"),
        ),
    ),
    ResponseObject(
        "StatsOptions",
        (
            ResponseField("include", FLAG, "true: others are not echoed"),
            ResponseField("exclude_filter", FLAG, "with its default"),
        ),
    ),
    ResponseObject(
        "DrilldownOptions",
        (
            ResponseField("include", FLAG, "with its default"),
            ResponseField("exclude_filter", FLAG, "with its default"),
            ResponseField("limit", WHOLE, "with its default"),
        ),
    ),
    ResponseObject(
        "FacetResults",
        (
            ResponseField(
                "fields", by_key(ref("SearchFacetResult")), "by field; spec_drilldown adds the specs it found"
            ),
            ResponseField("queries", by_key(ref("FacetCount")), "by filter query"),
        ),
    ),
    ResponseObject(
        "SearchFacetResult",
        (
            ResponseField(
                "facets", list_of(ref("FacetValue")), "the values, the most frequent first; none where it cannot count"
            ),
            ResponseField("missing", COUNT, f"how many have no value, {_LISTS_ONLY}; 0 where nothing is found"),
            ResponseField("spec_drilldown_rank", COUNT, "1 for the best spec of a spec_drilldown, else null"),
        ),
        "SearchFacetResult",
    ),
    ResponseObject(
        "FacetValue",
        (
            ResponseField("value", {"type": ["string", "number", "boolean"]}, "of parts always a string"),
            ResponseField("count", WHOLE, "how many have it"),
        ),
    ),
    ResponseObject(
        "FacetCount",
        (ResponseField("count", COUNT, "how many hits pass the query; null where the service cannot tell"),),
    ),
    ResponseObject(
        "SearchStatsResult",
        (
            ResponseField("min", NUMBER, "the smallest number, of specs in SI base units"),
            ResponseField("max", NUMBER, "the largest number"),
            ResponseField("mean", NUMBER, f"the average, {_LISTS_ONLY}"),
            ResponseField("stddev", NUMBER, f"the spread, {_LISTS_ONLY}"),
            ResponseField("count", COUNT, "how many numbers there are; null of parts with 1000 different ones or more"),
            ResponseField("missing", COUNT, f"how many have none, {_LISTS_ONLY}; 0 where nothing is found"),
            ResponseField("spec_drilldown_rank", COUNT, "1 for the best spec of a spec_drilldown, else null"),
        ),
        "SearchStatsResult",
    ),
    ResponseObject(
        "SearchSpecMetadata",
        (
            ResponseField("key", TEXT, "v3's name of the spec"),
            ResponseField("name", TEXT, "the spec's name for people"),
            ResponseField("datatype", {"enum": ["string", "integer", "decimal"]}, "as in SpecMetadata"),
            ResponseField("unit", either(ref("SearchSpecUnit"), NULL), "null where the spec has none"),
        ),
        "SpecMetadata",
    ),
    ResponseObject(
        "SearchSpecUnit",
        (ResponseField("name", TEXT, "such as `ohms`"), ResponseField("symbol", either(TEXT, NULL), "such as `Ω`")),
        "UnitOfMeasurement",
    ),
)

ERRORS = tuple(
    ResponseObject(name, (ResponseField("message", TEXT, "what is wrong, in words"),), name)
    for name in ("ClientErrorResponse", "ServerErrorResponse")
)

ALL = (*MATCH, *SEARCH, *ERRORS)
