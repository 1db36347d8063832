"""Parser of the `queries` of /parts/match: frozen values, each with its own error (contract v3-rest.md §4)."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from proxy import errors, model
from proxy.planning import exact_match

TEXTS = frozenset({"q", "mpn", "brand", "sku", "seller", "mpn_or_sku"})
NUMBERS = ("mpn", "mpn_or_sku", "sku")
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


KEYS = frozenset({*DEFAULTS, "__class__"})  # clients that send an echo again send its class, too


class _NoFiltersError(errors.BadRequest):
    """A query without anything to search for."""


def decode(queries: str | None) -> list[Any]:
    """Decode the JSON list of `queries`. Raises BadRequest if it is invalid as a whole."""
    if not queries:
        raise errors.BadRequest('queries argument missing: a JSON list such as [{"mpn":"SN74S74N"}]')
    try:
        decoded = _json(queries)
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors
        raise errors.BadRequest('queries is not valid JSON; it must be a list such as [{"mpn":"SN74S74N"}]') from None
    if not isinstance(decoded, list):
        raise errors.BadRequest(f"queries must be a JSON list of objects, not {_described(decoded)}")
    # The whole request: v3's own answer is unknown, and a truncated list would silently lose queries.
    if len(decoded) > model.MATCH_QUERIES_MAX:
        raise errors.BadRequest(f"at most {model.MATCH_QUERIES_MAX} queries a request, not {len(decoded)}")
    return decoded


def _json(text: str) -> Any:
    """Decode JSON. A lone surrogate such as "\\ud800" is valid JSON but not text: it becomes a question mark."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        valid = json.dumps(json.loads(text), ensure_ascii=False)
        return msgspec.json.decode(valid.encode("utf-8", "replace"))


def parse(raw: Any) -> model.PartsMatchQuery:
    """Parse one entry of the list; a mistake in it becomes its `error`. Unknown keys are ignored if other keys can
    be searched for; else the error names them."""
    if not isinstance(raw, dict):
        return model.PartsMatchQuery(error=f"a query must be an object, not {_described(raw)}")
    fields = non_null(raw)
    reference = fields.get("reference")
    try:
        return model.PartsMatchQuery(**_checked(fields))
    except _NoFiltersError as error:
        return model.PartsMatchQuery(reference=reference, error=f"{error.message}{_suggestion(raw)}")
    except errors.BadRequest as error:
        return model.PartsMatchQuery(reference=reference, error=error.message)


def unknown_keys(raws: Iterable[Any]) -> list[str]:
    """Return the keys of queries that v3 does not have, such as `queries[0].mpm`, in order."""
    return [
        f"queries[{number}].{key}"
        for number, raw in enumerate(raws)
        if isinstance(raw, dict) and not raw.keys() <= KEYS
        for key in raw
        if key not in KEYS
    ]


def non_null(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a query that are known and not null."""
    return {name: value for name, value in raw.items() if value is not None and name in DEFAULTS}


def _suggestion(raw: dict[str, Any]) -> str:
    """Return the hint about the first unknown key, with the most similar known key if there is one."""
    key = next((key for key in raw if key not in KEYS), None)
    if key is None:
        return ""
    similar = difflib.get_close_matches(key[:40], sorted(TEXTS), 1)
    hint = f"did you mean {similar[0]!r}?" if similar else f"the keys are {', '.join(DEFAULTS)}"
    return f": unknown key {key[:40]!r}; {hint}"


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    texts = {name: value for name, value in fields.items() if name in TEXTS}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise errors.BadRequest(f"{name} must be a string, not {_described(value)}")
    if not any(map(str.strip, texts.values())):
        # v3's words (contract v3-rest.md §4).
        raise _NoFiltersError("Missing search filters")
    numbers = {name: texts[name] for name in NUMBERS if texts.get(name)}
    _check_together(texts.get("q"), numbers)
    start, limit = (_non_negative(fields, name) for name in ("start", "limit"))
    if limit > model.MATCH_LIMIT_MAX:
        raise errors.BadRequest(f"limit must be between 0 and {model.MATCH_LIMIT_MAX}, not {_described(limit)}")
    if start + limit > model.MATCH_WINDOW_MAX:
        raise errors.BadRequest(f"start + limit must be at most {model.MATCH_WINDOW_MAX}; start is {_described(start)}")
    for name, number in numbers.items():
        _check_number(name, number)
    return fields


def _check_together(q: str | None, numbers: dict[str, str]) -> None:
    """Raise BadRequest for filters that cannot be combined: none is silently dropped."""
    names = list(numbers)
    text = exact_match.normalize(q) if q else ""
    if text and any(text != exact_match.normalize(number) for number in numbers.values()):
        raise errors.BadRequest(f"q and {names[0]} cannot be combined")
    if len(names) > 1 and any(exact_match.WILDCARD in number for number in numbers.values()):
        raise errors.BadRequest(f"{names[0]} and {names[1]} cannot be combined with wildcards")


def _check_number(name: str, number: str) -> None:
    """Raise BadRequest for a number without letters or digits, or with unsupported wildcards."""
    if not any(map(str.isalnum, number)):
        raise errors.BadRequest(f"{name} has no letters or digits")
    if exact_match.WILDCARD not in number:
        return
    if name == "sku":
        raise errors.BadRequest("sku takes no wildcards; the service finds whole SKUs only")
    if len(exact_match.normalize(number)) < exact_match.LITERALS_MIN:
        raise errors.BadRequest(f"{name} needs at least {exact_match.LITERALS_MIN} letters or digits beside its *")
    # v3 supported these. Here matches would be filtered from the first few of thousands of candidates, each billed.
    if len(exact_match.normalize(exact_match.literal(number))) < exact_match.LITERALS_MIN:
        raise errors.BadRequest(
            f"{name} needs at least {exact_match.LITERALS_MIN} letters or digits in a row beside its *: "
            "the service finds no numbers by shorter pieces"
        )


def _non_negative(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name, DEFAULTS[name])
    # Not isinstance: a JSON true would pass as 1.
    if type(value) is not int:
        raise errors.BadRequest(f"{name} must be a whole number, not {_described(value)}")
    if value < 0:
        raise errors.BadRequest(f"{name} must not be negative, but is {_described(value)}")
    return value


def _described(value: Any) -> str:
    """Return a JSON value for an error message: its kind, or a number or literal, at most 20 characters."""
    kinds = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return kinds.get(type(value)) or msgspec.json.encode(value)[:20].decode()
