"""v3 as data: its endpoints with their parameters (contract v3-rest.md §1.1, §2, §4), and what a path that is none may
have meant. Pure.

The web serves the endpoints, comparisons name requests by them, explanations and the reference page describe them.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from proxy import model
from proxy.v3.encoding import Bound

PREFIXES = ("/v3", "/api/v3")
Action = Literal["match", "search", "get_multi", "get"]


class Parameter(NamedTuple):
    """One parameter, by the name it is sent under; its value and meaning in words."""

    name: str
    value: str
    meaning: str


NAMES = "list of string"


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
        f"A name, dotted at will, or `?`, of at most {Bound.CALLBACK.maximum} letters",
    ),
    Parameter("suppress_status_codes", "boolean", "errors come with status 200"),
    Parameter("userkey", "string", "ignored, as every unknown parameter"),
)

GET = (Parameter("uid", "string, required", "in the path: 16 hex digits"),)

_UIDS = f"the uids, {Bound.UIDS.maximum} different ones at most; what is not known is left out of the reply"
GET_MULTI = (Parameter("uid[]", f"{NAMES}, required", _UIDS), Parameter("uids[]", NAMES, "read as `uid[]`"))

MATCH = (
    Parameter("queries", "JSON, required", f"a JSON list of at most {model.MATCH_QUERIES_MAX} queries, see below"),
    Parameter("exact_only", "boolean", "punctuation and case count"),
)

_ANY = "`*` stands for anything, beside at least 3 letters or digits in a row"

QUERY = (
    Parameter("q", "string", "free text; beside `mpn` both must match"),
    Parameter("mpn", "string", f"the maker's part number; {_ANY}"),
    Parameter("brand", "string", "only parts of this brand"),
    Parameter("sku", "string", "a seller's number"),
    Parameter("seller", "string", "only parts that this seller offers; their offers are all shown"),
    Parameter("mpn_or_sku", "string", f"either number; {_ANY}"),
    Parameter(
        "start",
        f"0 to {model.MATCH_WINDOW_MAX}, default `0`",
        f"parts to leave out; `start` + `limit` is at most {model.MATCH_WINDOW_MAX}",
    ),
    Parameter("limit", f"0 to {model.MATCH_LIMIT_MAX}, default `{model.MATCH_LIMIT_DEFAULT}`", "parts at most"),
    Parameter("reference", "any", "the client's own, returned as it came, of any JSON type"),
)

# Shared by facets and stats, whose options mean the same.
_APART = "counts without the filters on its own field"
_TOGETHER = f"; {Bound.COUNTS.maximum} facets, facet queries and stats a request at most"
_LIMIT = f"0 to {model.SEARCH_LIMIT_MAX}, default `{model.SEARCH_LIMIT_DEFAULT}`"
_START = f"0 to {model.SEARCH_START_MAX}, default `0`"

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
        f"{Bound.FILTER_QUERIES.maximum} a request at most, of {Bound.QUERY_LENGTH.maximum} characters",
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


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of v3. `object` is the v3 object that it returns, `cost` says in words what it costs in parts.
    `parameters` are its own, without the global ones."""

    path: str
    object: str
    action: Action
    cost: str
    parameters: tuple[Parameter, ...] = ()
    alias_of: str | None = None


FREE = "nothing: the Nexar API lists them free of charge"
FOUND = "one part for each known uid"
LISTED: tuple[tuple[Action, tuple[Parameter, ...]], ...]
LISTED = ("search", SEARCH), ("get_multi", GET_MULTI), ("get", GET)

ENDPOINTS = (
    Endpoint(
        "/parts/match",
        "Part",
        "match",
        "the parts returned; with wildcards, `q` beside a number, `exact_only` or `single_query` as `supSearchMpn` "
        "also those removed",
        MATCH,
    ),
    Endpoint(
        "/parts/search",
        "Part",
        "search",
        "the parts returned, at most `limit`, by `mpn` all candidates; counts nothing",
        (*SEARCH, *DRILLDOWN),
    ),
    Endpoint("/parts/get_multi", "Part", "get_multi", FOUND, GET_MULTI),
    Endpoint("/parts/{uid}", "Part", "get", FOUND, GET),
    *(
        Endpoint(f"/{path}/{'{uid}' if action == 'get' else action}", name, action, FREE, parameters)
        for path, name in (("brands", "Brand"), ("categories", "Category"), ("sellers", "Seller"))
        for action, parameters in LISTED
    ),
    Endpoint("/seller/{uid}", "Seller", "get", FREE, GET, alias_of="/sellers/{uid}"),  # one client's slip, contract §1
)
PATTERNS = [(re.compile(each.path.replace("{uid}", "([^/]+)") + "/?"), each) for each in ENDPOINTS]


def of(path: str) -> Endpoint | None:
    """Return the endpoint of a path without prefix; None where there is none."""
    return next((each for pattern, each in PATTERNS if pattern.fullmatch(path)), None)


NO_SUCH_PATH = "there is no such path"
V4_PATHS = "POST /api/v4/endpoint (GraphQL) and GET /api/v4/rest/parts/match"
REASONS = {None: NO_SUCH_PATH, "3": NO_SUCH_PATH, "4": f"{NO_SUCH_PATH}; v4's paths are {V4_PATHS}"}  # by version
PREFIX = re.compile(r"(/api)?(?:/v(\d{1,2}))?(?:/rest)?(?=/|$)")  # octopart.com/api/v4/rest was an API of its own
UID = re.compile(r"[0-9a-f]{16}")
PATH_MAX = 200  # characters that are compared
WORD_MAX = 24  # letters of a word that are compared
SIMILARITY_MIN = 0.75  # difflib's ratio
PATHS = [each.path for each in ENDPOINTS if each.alias_of is None]
SYNONYMS = {"manufacturers": "brands", "distributors": "sellers", "suppliers": "sellers"}
OBJECTS = [*{path.split("/")[1] for path in PATHS}, *SYNONYMS]
ACTIONS = {path.rpartition("/")[2] for path in PATHS} - {"{uid}"}


def no_such_path(path: str) -> str:
    """Return the message for a path that v3 does not have, decoded and without query: it suggests similar ones, after a
    dozen comparisons of short words. It never repeats the path, which may hold an API key."""
    text = path[:PATH_MAX].lower()
    prefix = PREFIX.match(text)
    api, version = prefix.groups() if prefix else (None, None)
    words = [word[:WORD_MAX] for word in text[prefix.end() if prefix else 0 :].split("/") if word]
    reason = REASONS.get(version, f"v{version} is not served here, only v3 and v4")
    name = _closest(words[0], OBJECTS) if words else None
    if name is None:
        return f"{reason}; v3's paths begin with {' or '.join(PREFIXES)}"
    similar = [path for path in PATHS if path.startswith(f"/{SYNONYMS.get(name, name)}/")]
    action = _closest(words[1], [path.rpartition("/")[2] for path in similar]) if len(words) > 1 else None
    # A uid behind an object is right where it is; other words are a misspelt action.
    if action is None and len(words) > 1 and UID.fullmatch(words[1]):
        action = "{uid}"
    similar = [path for path in similar if path.endswith(f"/{action}")] if action else similar
    return f"{reason}; use {' or '.join(PREFIXES[api is not None] + each for each in similar)}"


def instead_of_uid(path: str, uid: str) -> str | None:
    """Return the message for a path whose uid looks like an action, such as /sellers/searches; None if it does not."""
    if UID.fullmatch(uid.lower()) or _closest(uid[:WORD_MAX].lower(), ACTIONS) is None:
        return None
    return no_such_path(path)


def _closest(word: str, words: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, sorted(words), 1, SIMILARITY_MIN)), None)
