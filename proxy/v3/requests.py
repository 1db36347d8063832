"""Requests of parts/match and of searches: their parameters as frozen values, each query of a match with its own error,
and the bodies of their responses (contract v3-rest.md §1.1, §3.6, §4). Pure."""

import difflib
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.planning import lucene, match
from proxy.v3.encoding import Bound, Parameters

TEXTS = frozenset({"q", "mpn", "brand", "sku", "seller", "mpn_or_sku"})
NUMBERS = ("mpn", "mpn_or_sku", "sku")
DEFAULTS = msgspec.structs.asdict(model.PartsMatchQuery())  # of the echo, in its order
del DEFAULTS["error"]  # this service's own
KEYS = frozenset({*DEFAULTS, "__class__"})  # clients that send an echo again send its class, too

FILTER = re.compile(r"filter\[fields\]\[([^\[\]]+)\]")
FACET = re.compile(r"facet\[fields\]\[([^\[\]]+)\]\[(?:include|exclude_filter|start|limit)\]")
STATS = re.compile(r"stats\[([^\[\]]+)\]\[(?:include|exclude_filter)\]")


class MatchQueries(NamedTuple):
    """Queries of a request: what was `sent` of each, without unknown keys and nulls, which the response repeats; the
    unknown keys, such as `queries[0].mpm`; and the request that they make."""

    sent: list[dict[str, Any]]
    unknown: list[str]
    request: model.PartsMatchRequest


def parse_match(parameters: Parameters) -> MatchQueries:
    """Parse the parameters of a match. Raises BadRequest if `queries` or `exact_only` is invalid as a whole."""
    given = parameters.text("queries")
    if not given:
        raise errors.BadRequest('queries argument missing: a JSON list such as [{"mpn":"SN74S74N"}]')
    try:
        try:
            decoded = msgspec.json.decode(given)
        except (msgspec.DecodeError, UnicodeEncodeError):
            # A lone surrogate such as "\\ud800" is valid JSON but not text: it becomes a question mark.
            valid = json.dumps(json.loads(given), ensure_ascii=False)
            decoded = msgspec.json.decode(valid.encode("utf-8", "replace"))
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors
        raise errors.BadRequest('queries is not valid JSON; it must be a list such as [{"mpn":"SN74S74N"}]') from None
    if not isinstance(decoded, list):
        raise errors.BadRequest(f"queries must be a JSON list of objects, not {_described(decoded)}")
    # The whole request: v3's own answer is unknown, and a truncated list would silently lose queries.
    if len(decoded) > model.MATCH_QUERIES_MAX:
        raise errors.BadRequest(f"at most {model.MATCH_QUERIES_MAX} queries a request, not {len(decoded)}")
    sent, queries, unknown = [], [], []
    for number, raw in enumerate(decoded):
        fields: dict[str, Any] = {}
        if isinstance(raw, dict):
            fields = {name: value for name, value in raw.items() if value is not None and name in DEFAULTS}
            unknown += [f"queries[{number}].{key}" for key in raw if key not in KEYS]
            mistake = _mistake(raw, fields)
        else:
            mistake = f"a query must be an object, not {_described(raw)}"
        sent.append(fields)
        asked = {"reference": fields.get("reference"), "error": mistake} if mistake else fields
        queries.append(model.PartsMatchQuery(**asked))
    return MatchQueries(sent, unknown, model.PartsMatchRequest(tuple(queries), parameters.flag("exact_only")))


def match_response(asked: MatchQueries, results: Sequence[Any], msec: int) -> dict[str, Any]:
    """Return the body of a response (contract v3-rest.md §3.6): items, hits and error of each query, in their order."""
    return {
        "__class__": "PartsMatchResponse",
        "msec": msec,
        "request": {
            "__class__": "PartsMatchRequest",
            "queries": [{"__class__": "PartsMatchQuery", **DEFAULTS, **fields} for fields in asked.sent],
            "exact_only": asked.request.exact_only,
        },
        "results": [
            {
                "__class__": "PartsMatchResult",
                "items": result.items,
                "hits": result.hits,
                "reference": query.reference,
                "error": result.error,
            }
            for query, result in zip(asked.request.queries, results, strict=True)
        ],
    }


def parse_search(parameters: Parameters) -> model.SearchRequest:
    """Parse a search. Raises BadRequest, which names the parameter and what it accepts."""
    most, default = model.SEARCH_LIMIT_MAX, model.SEARCH_LIMIT_DEFAULT
    filtered = [text for text in parameters.texts("filter[queries]") if text]
    # Results are keyed by the text of the query, so that a repetition adds nothing.
    queried = list(dict.fromkeys(filter(None, parameters.texts("facet[queries]"))))
    # The fields of `facet[fields][x][include]` and other options, each once; unknown options are ignored.
    faceted = [*dict.fromkeys(each[1] for each in map(FACET.fullmatch, parameters.names("facet[")) if each)]
    measured = [*dict.fromkeys(each[1] for each in map(STATS.fullmatch, parameters.names("stats[")) if each)]
    Bound.Q.check(len(parameters.text("q") or ""))
    Bound.SORT_KEYS.check((parameters.text("sortby") or "").count(",") + 1)  # nothing has been split yet
    Bound.FILTERS.check(len(parameters.names("filter[fields]")))
    Bound.FILTER_QUERIES.check(len(filtered))
    Bound.COUNTS.check(len(faceted) + len(measured) + len(queried))
    Bound.QUERIES_LENGTH.check(sum(map(len, (*filtered, *queried))))
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


def search_response(
    request: model.SearchRequest, items: Sequence[Any], hits: int, counts: Any, msec: int
) -> dict[str, Any]:
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
            "fields": {options.pop("field"): options for options in map(msgspec.structs.asdict, request.facets)},
            "queries": list(request.facet_queries),
        },
        "stats": {field: {"include": True, "exclude_filter": exclude} for field, exclude in request.stats},
    }
    if request.drilldown is not None:
        echo["spec_drilldown"] = msgspec.structs.asdict(request.drilldown)
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


def _mistake(raw: dict[str, Any], fields: dict[str, Any]) -> str | None:
    """Return what is wrong with a query. Unknown keys are named if no other can be searched for."""
    texts: dict[str, str] = {}
    for name, value in fields.items():
        if name in TEXTS:
            if not isinstance(value, str):
                return f"{name} must be a string, not {_described(value)}"
            texts[name] = value
    if not any(map(str.strip, texts.values())):
        missing = "Missing search filters"  # v3's words (contract v3-rest.md §4)
        unknown = next((key for key in raw if key not in KEYS), None)
        if unknown is None:
            return missing
        similar = difflib.get_close_matches(unknown[:40], sorted(TEXTS), 1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"the keys are {', '.join(DEFAULTS)}"
        return f"{missing}: unknown key {unknown[:40]!r}; {hint}"
    q, numbers = texts.get("q"), {name: texts[name] for name in NUMBERS if texts.get(name)}
    if q or len(numbers) > 1:  # what cannot be combined: nothing is silently dropped
        names, words, is_pattern = list(numbers), match.normalize(q or ""), lucene.ANY in "".join(numbers.values())
        # Beside an MPN the service searches for both; SKUs and patterns are no words of its text.
        is_mpn = names == ["mpn"] and not is_pattern
        if words and not is_mpn and any(words != match.normalize(number) for number in numbers.values()):
            return f"q and {names[0]} cannot be combined"
        if len(names) > 1 and is_pattern:
            return f"{names[0]} and {names[1]} cannot be combined with wildcards"
    mistake = _mistake_in_page(fields) if "start" in fields or "limit" in fields else None
    return mistake or _mistake_in_numbers(numbers)


def _mistake_in_page(fields: dict[str, Any]) -> str | None:
    start, limit = page = fields.get("start", 0), fields.get("limit", model.MATCH_LIMIT_DEFAULT)
    for name, value in zip(("start", "limit"), page, strict=True):
        # Not isinstance: a JSON true would pass as 1.
        if type(value) is not int:
            return f"{name} must be a whole number, not {_described(value)}"
        if value < 0:
            return f"{name} must not be negative, but is {_described(value)}"
    if limit > model.MATCH_LIMIT_MAX:
        return f"limit must be between 0 and {model.MATCH_LIMIT_MAX}, not {_described(limit)}"
    if start + limit > model.MATCH_WINDOW_MAX:
        return f"start + limit must be at most {model.MATCH_WINDOW_MAX}; start is {_described(start)}"
    return None


def _mistake_in_numbers(numbers: dict[str, str]) -> str | None:
    shortest = match.LITERALS_MIN
    for name, number in numbers.items():
        if not any(map(str.isalnum, number)):
            return f"{name} has no letters or digits"
        if lucene.ANY not in number:
            continue
        if name == "sku":
            return "sku takes no wildcards; the service finds whole SKUs only"
        if len(match.normalize(number)) < shortest:
            return f"{name} needs at least {shortest} letters or digits beside its *"
        # v3 supported these. Here matches would be filtered from the first few of thousands of candidates, each billed.
        if len(match.normalize(match.literal(number))) < shortest:
            return (
                f"{name} needs at least {shortest} letters or digits in a row beside its *: "
                "the service finds no numbers by shorter pieces"
            )
    return None


def _described(value: Any) -> str:
    """Return a JSON value for an error message: its kind, or a number or literal, at most 20 characters."""
    kinds = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return kinds.get(type(value)) or msgspec.json.encode(value)[:20].decode()


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


def _facet(parameters: Parameters, field: str) -> model.FacetField:
    name = f"facet[fields][{field}]"
    return model.FacetField(
        field,
        parameters.flag(f"{name}[include]"),
        parameters.flag(f"{name}[exclude_filter]"),
        parameters.whole(f"{name}[start]", 0, model.SEARCH_START_MAX),
        parameters.whole(f"{name}[limit]", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX),
    )
