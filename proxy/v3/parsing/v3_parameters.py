"""Parameters of v3's endpoints as data, for explanations and the documentation (contract v3-rest.md §1.1, §2, §4).

Limits and defaults are the constants that their readers use.
"""

from typing import NamedTuple

from proxy import model
from proxy.v3 import bounds
from proxy.v3.endpoints import Endpoint

NAMES = "list of string"


class Parameter(NamedTuple):
    """One parameter, by the name it is sent under; its value and meaning in words."""

    name: str
    value: str
    meaning: str


def of(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """Return the parameters of an endpoint, without the global ones."""
    if endpoint.action == "search":
        return (*SEARCH, *DRILLDOWN) if endpoint.object == "Part" else SEARCH
    return {"match": MATCH, "get_multi": GET_MULTI, "get": GET}[endpoint.action]


def _whole(maximum: int, default: int) -> str:
    return f"0 to {maximum}, default `{default}`"


APIKEY = Parameter("apikey", "string, required", "identifies the client: a key of an application in the configuration")

GLOBALS = (
    Parameter("include[]", NAMES, "adds fields that are hidden otherwise; unknown names are ignored"),
    Parameter("show[]", NAMES, "keeps only these fields; dotted paths such as `offers.sku` reach inside"),
    Parameter("hide[]", NAMES, "drops these fields; dotted paths too"),
    Parameter("slice[<field>]", "range", "keeps a part of a list, as in Python: `[0:5]` or `0:5`; dotted paths too"),
    Parameter("pretty_print", "boolean", "keys in alphabetical order, four spaces, `\\uXXXX` beyond ASCII"),
    Parameter(
        "callback",
        "string",
        "JSONP: the reply becomes a call of this JavaScript function; empty is plain JSON. "
        f"A name, dotted at will, or `?`, of at most {bounds.CALLBACK.maximum} letters",
    ),
    Parameter("suppress_status_codes", "boolean", "errors come with status 200"),
    Parameter("userkey", "string", "ignored, as every unknown parameter"),
)

GET = (Parameter("uid", "string, required", "in the path: 16 hex digits"),)

_UIDS = f"the uids, {bounds.UIDS.maximum} different ones at most; what is not known is left out of the reply"
GET_MULTI = (Parameter("uid[]", f"{NAMES}, required", _UIDS), Parameter("uids[]", NAMES, "read as `uid[]`"))

MATCH = (
    Parameter("queries", "JSON, required", f"a JSON list of at most {model.MATCH_QUERIES_MAX} queries, see below"),
    Parameter("exact_only", "boolean", "punctuation and case count"),
)

QUERY = (
    Parameter("q", "string", "free text; beside `mpn` both must match"),
    Parameter(
        "mpn",
        "string",
        "the maker's part number; `*` stands for anything, beside at least 3 letters or digits in a row",
    ),
    Parameter("brand", "string", "only parts of this brand"),
    Parameter("sku", "string", "a seller's number"),
    Parameter("seller", "string", "only parts that this seller offers; their offers are all shown"),
    Parameter(
        "mpn_or_sku",
        "string",
        "either number; `*` stands for anything, beside at least 3 letters or digits in a row",
    ),
    Parameter(
        "start",
        _whole(model.MATCH_WINDOW_MAX, 0),
        f"parts to leave out; `start` + `limit` is at most {model.MATCH_WINDOW_MAX}",
    ),
    Parameter("limit", _whole(model.MATCH_LIMIT_MAX, model.MATCH_LIMIT_DEFAULT), "parts at most"),
    Parameter("reference", "any", "the client's own, returned as it came, of any JSON type"),
)

# Shared by facets and stats, whose options mean the same.
_APART = "counts without the filters on its own field"
_TOGETHER = f"; {bounds.COUNTS.maximum} facets, facet queries and stats a request at most"
_LIMIT = _whole(model.SEARCH_LIMIT_MAX, model.SEARCH_LIMIT_DEFAULT)
_START = _whole(model.SEARCH_START_MAX, 0)

SEARCH = (
    Parameter("q", "string", "words; empty finds everything"),
    Parameter("start", _START, "results to leave out"),
    Parameter("limit", _LIMIT, "results at most; more is a 400"),
    Parameter("sortby", "string, default `score desc`", "`<field> asc` or `<field> desc`, several by comma"),
    Parameter("filter[fields][<field>][]", NAMES, "only what has one of these values"),
    Parameter(
        "filter[queries][]",
        NAMES,
        "`<field>:<value>`, `<field>:[1 TO 5]`, `<field>:(a OR b)`, joined by AND; others are a 400 with the reason; "
        f"{bounds.FILTER_QUERIES.maximum} a request at most, of {bounds.QUERY_LENGTH.maximum} characters",
    ),
    Parameter("facet[fields][<field>][include]", "boolean", f"counts the field's values{_TOGETHER}"),
    Parameter("facet[fields][<field>][exclude_filter]", "boolean", _APART),
    Parameter("facet[fields][<field>][start]", _START, "values to leave out"),
    Parameter("facet[fields][<field>][limit]", _LIMIT, "values at most"),
    Parameter("facet[queries][]", NAMES, "counts the hits of a filter query"),
    Parameter("stats[<field>][include]", "boolean", "smallest, largest and more of a field's numbers"),
    Parameter("stats[<field>][exclude_filter]", "boolean", _APART),
)

DRILLDOWN = (
    Parameter("spec_drilldown[include]", "boolean", "facets of the specs that narrow the search best, 10 values each"),
    Parameter("spec_drilldown[exclude_filter]", "boolean", "counts without filters on specs"),
    Parameter("spec_drilldown[limit]", _LIMIT, "specs at most"),
)
