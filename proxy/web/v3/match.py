"""/parts/match: `queries` into frozen values with their own errors, and the reply (contract v3-rest.md §3.6, §4)."""

from typing import Any

import msgspec

from proxy import errors, model
from proxy.planning import exactness

TEXTS = ("q", "mpn", "brand", "sku", "seller", "mpn_or_sku")
DEFAULTS: dict[str, Any] = {
    "q": "",
    "mpn": None,
    "brand": None,
    "sku": None,
    "seller": None,
    "mpn_or_sku": None,
    "start": 0,
    "limit": model.MATCH_LIMIT_DEFAULT,
    "reference": None,
}


def decode(queries: str | None) -> list[Any]:
    """The JSON list of `queries`. Raises BadRequest, which says what is wrong with it as a whole."""
    if not queries:
        raise errors.BadRequest('queries argument missing: a JSON list such as [{"mpn":"SN74S74N"}]')
    try:
        decoded = msgspec.json.decode(queries.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError):
        raise errors.BadRequest('queries is not valid JSON; it must be a list such as [{"mpn":"SN74S74N"}]') from None
    if not isinstance(decoded, list):
        raise errors.BadRequest(f"queries must be a JSON list of objects, not {_kind(decoded)}")
    if len(decoded) > model.MATCH_QUERIES_MAX:
        raise errors.BadRequest(f"at most {model.MATCH_QUERIES_MAX} queries a request, not {len(decoded)}")
    return decoded


def query(raw: Any) -> model.PartsMatchQuery:
    """One entry of the list; what is wrong with it becomes its `error`. Unknown keys are ignored."""
    if not isinstance(raw, dict):
        return model.PartsMatchQuery(error=f"a query must be an object, not {_kind(raw)}")
    given = {name: raw[name] for name in DEFAULTS if raw.get(name) is not None}
    reference = given.get("reference")
    try:
        return model.PartsMatchQuery(**_checked(given))
    except errors.BadRequest as error:
        return model.PartsMatchQuery(reference=reference, error=error.message)


def reply(raws: list[Any], request: model.PartsMatchRequest, outcomes: list[Any], msec: int) -> dict[str, Any]:
    """A PartsMatchResponse. `outcomes` holds items, hits and error of every query, in order."""
    return {
        "__class__": "PartsMatchResponse",
        "msec": msec,
        "request": {
            "__class__": "PartsMatchRequest",
            "queries": [_echo(raw) for raw in raws],
            "exact_only": request.exact_only,
        },
        "results": [
            {
                "__class__": "PartsMatchResult",
                "items": items,
                "hits": hits,
                "reference": asked.reference,
                "error": error,
            }
            for asked, (items, hits, error) in zip(request.queries, outcomes, strict=True)
        ],
    }


def _echo(raw: Any) -> dict[str, Any]:
    """The nine keys as they were sent, defaults where they were not."""
    echo = {"__class__": "PartsMatchQuery", **DEFAULTS}
    if isinstance(raw, dict):
        echo.update((name, raw[name]) for name in DEFAULTS if raw.get(name) is not None)
    return echo


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    for name in TEXTS:
        if not isinstance(given.get(name, ""), str):
            raise errors.BadRequest(f"{name} must be a string, not {_kind(given[name])}")
    if not any(given.get(name) for name in TEXTS):
        raise errors.BadRequest("Missing search filters")
    start, limit = (_whole(given, name) for name in ("start", "limit"))
    if limit > model.MATCH_LIMIT_MAX:
        raise errors.BadRequest(f"limit must be between 0 and {model.MATCH_LIMIT_MAX}, not {limit}")
    if start + limit > model.MATCH_WINDOW_MAX:
        raise errors.BadRequest(f"start + limit must be at most {model.MATCH_WINDOW_MAX}, not {start + limit}")
    for name in ("mpn", "mpn_or_sku"):
        _check_wildcards(name, given.get(name) or "")
    return given


def _check_wildcards(name: str, number: str) -> None:
    literals = exactness.normalise(number.replace(exactness.WILDCARD, ""))
    if exactness.WILDCARD in number and len(literals) < exactness.LITERALS_MIN:
        raise errors.BadRequest(
            f"{name} needs at least {exactness.LITERALS_MIN} letters or digits beside its wildcards"
        )


def _whole(given: dict[str, Any], name: str) -> int:
    value = given.get(name, DEFAULTS[name])
    if type(value) is not int:
        raise errors.BadRequest(f"{name} must be a whole number, not {_kind(value)}")
    if value < 0:
        raise errors.BadRequest(f"{name} must not be negative, but is {value}")
    return value


def _kind(value: Any) -> str:
    """A JSON value in words; numbers and words themselves where they are short."""
    kinds = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return kinds.get(type(value)) or msgspec.json.encode(value)[:20].decode()
