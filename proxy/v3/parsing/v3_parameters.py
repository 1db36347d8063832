"""Parameters of v3's endpoints as data, for explanations and the documentation.

Limits and defaults are the constants that their readers use; a test compares names and kinds with the parameters that
handlers read.
"""

from dataclasses import dataclass
from typing import Any, Literal

from proxy import model
from proxy.v3 import bounds
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries

Kind = Literal["text", "texts", "flag", "whole", "slice", "queries", "any"]
FIELD = "<field>"  # stands for the name of a field


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, by the name it is sent under (contract v3-rest.md §1.1, §2, §4). `default` is its value if absent;
    `maximum` is the end of a whole number's range, which begins with 0."""

    name: str
    kind: Kind
    meaning: str
    default: Any = None
    maximum: int | None = None
    required: bool = False

    @property
    def head(self) -> str | None:
        """The name before the field, such as `facet[fields]`; None for a parameter without a field."""
        head, bracket, _ = self.name.partition(f"[{FIELD}]")
        return head if bracket else None


def of(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """Return the parameters of an endpoint, without the global ones."""
    if endpoint.action == "search":
        return (*SEARCH, *DRILLDOWN) if endpoint.object == "Part" else SEARCH
    return {"match": MATCH, "get_multi": GET_MULTI, "get": GET}[endpoint.action]


APIKEY = Parameter(
    "apikey", "text", "identifies the client: a key of an application in the configuration", required=True
)

GLOBALS = (
    Parameter("include[]", "texts", "adds fields that are hidden otherwise; unknown names are ignored"),
    Parameter("show[]", "texts", "keeps only these fields; dotted paths such as `offers.sku` reach inside"),
    Parameter("hide[]", "texts", "drops these fields; dotted paths too"),
    Parameter(f"slice[{FIELD}]", "slice", "keeps a part of a list, as in Python: `[0:5]` or `0:5`; dotted paths too"),
    Parameter("pretty_print", "flag", "keys in alphabetical order, four spaces, `\\uXXXX` beyond ASCII", False),
    Parameter(
        "callback",
        "text",
        "JSONP: the reply becomes a call of this JavaScript function; empty is plain JSON. "
        f"A name, dotted at will, of at most {bounds.CALLBACK.maximum} letters",
    ),
    Parameter("suppress_status_codes", "flag", "errors come with status 200", False),
    Parameter("userkey", "text", "ignored, as every unknown parameter"),
)

GET = (Parameter("uid", "text", "in the path: 16 hex digits", required=True),)

GET_MULTI = (
    Parameter(
        "uid[]",
        "texts",
        f"the uids, {bounds.UIDS.maximum} different ones at most; what is not known is left out of the reply",
        required=True,
    ),
    Parameter("uids[]", "texts", "read as `uid[]`"),
)

MATCH = (
    Parameter(
        "queries",
        "queries",
        f"a JSON list of at most {model.MATCH_QUERIES_MAX} queries, see below",
        required=True,
    ),
    Parameter("exact_only", "flag", "punctuation and case count", False),
)

_NAMED = {
    "q": "free text, for what has no part number",
    "mpn": "the maker's part number; `*` stands for anything, beside at least 3 letters or digits in a row",
    "brand": "only parts of this brand",
    "sku": "a seller's number",
    "seller": "only parts that this seller offers; their offers are all shown",
    "mpn_or_sku": "either number; `*` stands for anything, beside at least 3 letters or digits in a row",
}

QUERY = (
    *(Parameter(name, "text", meaning, match_queries.DEFAULTS[name]) for name, meaning in _NAMED.items()),
    Parameter(
        "start",
        "whole",
        f"parts to leave out; `start` + `limit` is at most {model.MATCH_WINDOW_MAX}",
        match_queries.DEFAULTS["start"],
        model.MATCH_WINDOW_MAX,
    ),
    Parameter("limit", "whole", "parts at most", match_queries.DEFAULTS["limit"], model.MATCH_LIMIT_MAX),
    Parameter("reference", "any", "the client's own, returned as it came, of any JSON type"),
)

# Shared by facets and stats, whose options mean the same.
_APART = "counts without the filters on its own field"
_TOGETHER = f"; {bounds.COUNTS.maximum} facets, facet queries and stats a request at most"

SEARCH = (
    Parameter("q", "text", "words; empty finds everything", model.SearchRequest().q),
    Parameter("start", "whole", "results to leave out", model.SearchRequest().start, model.SEARCH_START_MAX),
    Parameter("limit", "whole", "results at most; more is a 400", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX),
    Parameter("sortby", "text", "`<field> asc` or `<field> desc`, several by comma", model.SearchRequest().sortby),
    Parameter(f"filter[fields][{FIELD}][]", "texts", "only what has one of these values"),
    Parameter(
        "filter[queries][]",
        "texts",
        "`<field>:<value>`, `<field>:[1 TO 5]`, `<field>:(a OR b)`, joined by AND; others are a 400 with the reason; "
        f"{bounds.FILTER_QUERIES.maximum} a request at most, of {bounds.QUERY_LENGTH.maximum} characters",
    ),
    Parameter(f"facet[fields][{FIELD}][include]", "flag", f"counts the field's values{_TOGETHER}", False),
    Parameter(f"facet[fields][{FIELD}][exclude_filter]", "flag", _APART, False),
    Parameter(f"facet[fields][{FIELD}][start]", "whole", "values to leave out", 0, model.SEARCH_START_MAX),
    Parameter(
        f"facet[fields][{FIELD}][limit]",
        "whole",
        "values at most",
        model.FacetField("").limit,
        model.SEARCH_LIMIT_MAX,
    ),
    Parameter("facet[queries][]", "texts", "counts the hits of a filter query"),
    Parameter(f"stats[{FIELD}][include]", "flag", "smallest, largest and more of a field's numbers", False),
    Parameter(f"stats[{FIELD}][exclude_filter]", "flag", _APART, False),
)

DRILLDOWN = (
    Parameter(
        "spec_drilldown[include]",
        "flag",
        "facets of the specs that narrow the search best, of 10 values each",
        False,
    ),
    Parameter("spec_drilldown[exclude_filter]", "flag", "counts without filters on specs", False),
    Parameter("spec_drilldown[limit]", "whole", "specs at most", model.Drilldown().limit, model.SEARCH_LIMIT_MAX),
)
