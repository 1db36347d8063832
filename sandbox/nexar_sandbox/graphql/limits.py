"""Limits of the arguments of supply queries (contract graphql.md §2.1).

`limit + start <= 1 100` follows from both ranges, which at their ends give exactly that. The messages for too many
parts, queries and ids are our choice; those of the two ranges are the service's.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexar_sandbox.behavior import Behavior
from nexar_sandbox.catalog import currencies
from nexar_sandbox.graphql import distributors

DEFAULT_LIMIT, DEFAULT_MATCH_LIMIT = 10, 3
MAX_IDS = 100

# Root fields that return part objects, and so are counted.
PART_FIELDS = frozenset({"supParts", "supSearch", "supSearchMpn", "supMultiMatch"})
SEARCHES = frozenset({"supSearch", "supSearchMpn"})
COUNTRIES = tomllib.loads(Path(__file__).with_name("countries.toml").read_text("utf-8"))
COUNTRY_CODES = frozenset(COUNTRIES["codes"].split())


def is_billed(field: str, arguments: Mapping[str, Any], behavior: Behavior) -> bool:
    """Return true if a root field needs a part limit that is not exhausted."""
    if behavior.free_counts and field in SEARCHES and arguments.get("limit") == 0:
        return False
    return field in PART_FIELDS or (not behavior.free_lists and field.startswith("sup"))


def violations(field: str, arguments: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """One message for each limit that the arguments of a root field exceed."""
    messages = _of_field(field, arguments, behavior)
    messages += _market(arguments, behavior) if field.startswith("sup") else []
    return messages if behavior.all_range_errors else messages[:1]


def _market(arguments: Mapping[str, Any], behavior: Behavior) -> list[str]:
    messages = []
    country, currency = arguments.get("country"), arguments.get("currency")
    if country is not None and country not in COUNTRY_CODES and behavior.unknown_countries_refused:
        messages.append(f"country {country!r} is not supported")
    if currency is not None and currency not in currencies.PER_DOLLAR and behavior.unknown_currencies_refused:
        messages.append(f"currency {currency!r} is not supported")
    try:
        distributors.parse_duration(arguments.get("distributorApiTimeout", "0s"))
    except ValueError as error:
        messages.append(str(error))
    return messages


def _of_field(field: str, arguments: Mapping[str, Any], behavior: Behavior) -> list[str]:
    if field in SEARCHES:
        return _range(arguments.get("start"), arguments.get("limit"), behavior)
    if field == "supMultiMatch":
        return _multi_match(arguments["queries"], behavior)
    if field == "supParts" and len(arguments["ids"]) > MAX_IDS:
        return [f"the number of ids must not exceed {MAX_IDS}"]
    return []


def _range(start: int | None, limit: int | None, behavior: Behavior) -> list[str]:
    messages = []
    if start is not None and not 0 <= start <= behavior.search_start_max:
        messages.append(f"start must be between 0 and {behavior.search_start_max}")
    if limit is not None and not 0 <= limit <= behavior.search_limit_max:
        messages.append(f"limit must be between 0 and {behavior.search_limit_max}")
    if not messages and (start or 0) + (limit or 0) > behavior.page_end_max:
        messages.append(f"the sum of start and limit must not exceed {behavior.page_end_max}")
    return messages


def _multi_match(queries: Sequence[Mapping[str, Any]], behavior: Behavior) -> list[str]:
    messages = dict.fromkeys(text for query in queries for text in _range(query["start"], query["limit"], behavior))
    if len(queries) > behavior.multi_match_queries_max:
        messages[f"the number of queries must not exceed {behavior.multi_match_queries_max}"] = None
    if not messages and sum(query["limit"] for query in queries) > behavior.multi_match_parts_max:
        messages[f"the sum of all limits must not exceed {behavior.multi_match_parts_max}"] = None
    return sorted(messages, key=lambda text: not text.startswith("start"))
