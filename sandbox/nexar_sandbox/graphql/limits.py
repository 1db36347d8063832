"""Limits of the arguments of supply queries (contract graphql.md §2.1).

`limit + start <= 1 100` follows from both ranges, which at their ends give exactly that. The messages for too many
parts, queries and ids are our choice; those of the two ranges are the service's.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexar_sandbox.catalog import units

DEFAULT_LIMIT = 10
MAX_START, MAX_LIMIT, MAX_IDS, MAX_QUERIES = 1000, 100, 100, 100

# Root fields that return part objects, and so are counted.
PART_FIELDS = frozenset({"supParts", "supSearch", "supSearchMpn", "supMultiMatch"})
COUNTRIES = tomllib.loads(Path(__file__).with_name("countries.toml").read_text("utf-8"))
COUNTRY_CODES = frozenset(COUNTRIES["codes"].split())
_DURATION = re.compile(r"(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+", re.ASCII)


def violations(field: str, arguments: Mapping[str, Any]) -> list[str]:
    """One message for each limit that the arguments of a root field exceed."""
    return [*_of_field(field, arguments), *(_market(arguments) if field.startswith("sup") else ())]


def _market(arguments: Mapping[str, Any]) -> list[str]:
    messages = []
    country, currency = arguments.get("country"), arguments.get("currency")
    if country is not None and country not in COUNTRY_CODES:
        messages.append(f"country {country!r} is not supported")
    if currency is not None and currency not in units.PER_DOLLAR:
        messages.append(f"currency {currency!r} is not supported")
    timeout = arguments.get("distributorApiTimeout", "0s")
    if not _DURATION.fullmatch(timeout):
        messages.append(f"distributorApiTimeout {timeout!r} is not a duration such as 3s or 500ms")
    return messages


def _of_field(field: str, arguments: Mapping[str, Any]) -> list[str]:
    if field in ("supSearch", "supSearchMpn"):
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
    if not messages and sum(query["limit"] for query in queries) > MAX_LIMIT:
        messages[f"the sum of all limits must not exceed {MAX_LIMIT}"] = None
    return sorted(messages, key=lambda text: not text.startswith("start"))
