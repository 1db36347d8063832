"""/parts/match: its queries as frozen values, each with its own error (contract v3-rest.md §4), and its response."""

import difflib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.planning import lucene, match
from proxy.v3.parameters import Parameters

TEXTS = frozenset({"q", "mpn", "brand", "sku", "seller", "mpn_or_sku"})
NUMBERS = ("mpn", "mpn_or_sku", "sku")
DEFAULTS = msgspec.structs.asdict(model.PartsMatchQuery())  # of the echo, in its order
del DEFAULTS["error"]  # this service's own
KEYS = frozenset({*DEFAULTS, "__class__"})  # clients that send an echo again send its class, too


class MatchQueries(NamedTuple):
    """Queries of a request: what was `sent` of each, without unknown keys and nulls, which the response repeats; the
    unknown keys, such as `queries[0].mpm`; and the request that they make."""

    sent: list[dict[str, Any]]
    unknown: list[str]
    request: model.PartsMatchRequest


def parse(parameters: Parameters) -> MatchQueries:
    """Parse the parameters of a request. Raises BadRequest if `queries` or `exact_only` is invalid as a whole."""
    sent, queries, unknown = [], [], []
    for number, raw in enumerate(_decode(parameters.text("queries"))):
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


def response(asked: MatchQueries, results: Sequence[Any], msec: int) -> dict[str, Any]:
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


def _decode(queries: str | None) -> list[Any]:
    """Decode the JSON list of `queries`. Raises BadRequest if it is invalid as a whole."""
    if not queries:
        raise errors.BadRequest('queries argument missing: a JSON list such as [{"mpn":"SN74S74N"}]')
    try:
        try:
            decoded = msgspec.json.decode(queries)
        except (msgspec.DecodeError, UnicodeEncodeError):
            # A lone surrogate such as "\\ud800" is valid JSON but not text: it becomes a question mark.
            valid = json.dumps(json.loads(queries), ensure_ascii=False)
            decoded = msgspec.json.decode(valid.encode("utf-8", "replace"))
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors
        raise errors.BadRequest('queries is not valid JSON; it must be a list such as [{"mpn":"SN74S74N"}]') from None
    if not isinstance(decoded, list):
        raise errors.BadRequest(f"queries must be a JSON list of objects, not {_described(decoded)}")
    # The whole request: v3's own answer is unknown, and a truncated list would silently lose queries.
    if len(decoded) > model.MATCH_QUERIES_MAX:
        raise errors.BadRequest(f"at most {model.MATCH_QUERIES_MAX} queries a request, not {len(decoded)}")
    return decoded


def _mistake(raw: dict[str, Any], fields: dict[str, Any]) -> str | None:
    """Return what is wrong with a query. Unknown keys are ignored if other keys can be searched for; else they are
    named."""
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
    q, numbers = texts.get("q", ""), {name: texts[name] for name in NUMBERS if texts.get(name)}
    together = _mistake_together(q, numbers) if q or len(numbers) > 1 else None
    return together or _mistake_in_page(fields) or _mistake_in_numbers(numbers)


def _mistake_together(q: str, numbers: dict[str, str]) -> str | None:
    """Return what is wrong with filters that cannot be combined: none is silently dropped."""
    names, text = list(numbers), match.normalize(q)
    # Beside an MPN the service searches for both; SKUs and patterns are no words of its text.
    is_mpn = names == ["mpn"] and lucene.ANY not in numbers["mpn"]
    if text and not is_mpn and any(text != match.normalize(number) for number in numbers.values()):
        return f"q and {names[0]} cannot be combined"
    if len(names) > 1 and any(lucene.ANY in number for number in numbers.values()):
        return f"{names[0]} and {names[1]} cannot be combined with wildcards"
    return None


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
    """Return what is wrong with numbers without letters or digits, or with unsupported wildcards."""
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
