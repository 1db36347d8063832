"""Limits of the arguments of supply queries (contract graphql.md §2.1).

`limit + start <= 1 100` needs no check of its own: both ranges at their ends give exactly that. The
messages for too many parts, queries and ids are our choice; those of the two ranges are the service's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from proxy.sandbox.catalog import currencies
from proxy.sandbox.graphql import countries, distributors
from proxy.sandbox.supply_behaviour import SupplyBehaviour

MAX_START = 1000
MAX_LIMIT = 100
MAX_PARTS = 100
MAX_QUERIES = 100
MAX_IDS = 100
DEFAULT_LIMIT, DEFAULT_MATCH_LIMIT = 10, 3

# Root fields that return part objects, and so are counted.
PART_FIELDS = frozenset({"supParts", "supSearch", "supSearchMpn", "supMultiMatch"})
SEARCHES = frozenset({"supSearch", "supSearchMpn"})


def violations(field: str, arguments: Mapping[str, Any], behaviour: SupplyBehaviour) -> list[str]:
    """One message for each limit that the arguments of a root field exceed."""
    messages = _of_field(field, arguments)
    return messages + _market(arguments, behaviour) if field.startswith("sup") else messages


def _market(arguments: Mapping[str, Any], behaviour: SupplyBehaviour) -> list[str]:
    messages = []
    country, currency = arguments.get("country"), arguments.get("currency")
    if country is not None and country not in countries.CODES and behaviour.unknown_countries_refused:
        messages.append(f"country {country!r} is not supported")
    if currency is not None and currency not in currencies.PER_DOLLAR and behaviour.unknown_currencies_refused:
        messages.append(f"currency {currency!r} is not supported")
    try:
        distributors.parse_duration(arguments.get("distributorApiTimeout", "0s"))
    except ValueError as error:
        messages.append(str(error))
    return messages


def _of_field(field: str, arguments: Mapping[str, Any]) -> list[str]:
    if field in SEARCHES:
        return _range(arguments.get("start"), arguments.get("limit"))
    if field == "supMultiMatch":
        return _multi_match(arguments["queries"])
    if field == "supParts" and len(arguments["ids"]) > MAX_IDS:
        return [f"the number of ids must not exceed {MAX_IDS}"]
    return []


def _range(start: int | None, limit: int | None) -> list[str]:
    messages = []
    if start is not None and not 0 <= start <= MAX_START:
        messages.append(f"start must be between 0 and {MAX_START}")
    if limit is not None and not 0 <= limit <= MAX_LIMIT:
        messages.append(f"limit must be between 0 and {MAX_LIMIT}")
    return messages


def _multi_match(queries: Sequence[Mapping[str, Any]]) -> list[str]:
    messages = dict.fromkeys(text for query in queries for text in _range(query["start"], query["limit"]))
    if len(queries) > MAX_QUERIES:
        messages[f"the number of queries must not exceed {MAX_QUERIES}"] = None
    if not messages and sum(query["limit"] for query in queries) > MAX_PARTS:
        messages[f"the sum of all limits must not exceed {MAX_PARTS}"] = None
    return sorted(messages, key=lambda text: not text.startswith("start"))
