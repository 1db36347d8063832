"""The `filters` map and its companions, turned into the catalog's Conditions (contract graphql.md §2.4).

Only the shape is checked here; what a key or a value means is the catalog's to judge.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.sandbox.catalog import records
from proxy.sandbox.graphql import problems

# A filter on mere existence is what the service cannot do, though the catalog can.
_MERE_EXISTENCE = re.compile(r"\(\s*__\s*\)")


def of_search(arguments: Mapping[str, Any]) -> records.SearchConditions:
    """From the arguments of a search. Raises ServiceError naming the filter."""
    return records.SearchConditions(
        filters=_filters(arguments.get("filters") or {}), in_stock_only=bool(arguments.get("inStockOnly"))
    )


def of_match(options: Mapping[str, Any]) -> records.SearchConditions:
    """From the options of supMultiMatch. Raises ServiceError naming the filter."""
    return records.SearchConditions(
        filters=_filters(options.get("filters") or {}),
        in_stock_only=bool(options.get("requireStockAvailable")),
        authorized_only=bool(options.get("requireAuthorizedSellers")),
    )


def _filters(given: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((key, tuple(_texts(key, value))) for key, value in given.items() if value is not None)


def _texts(key: str, value: Any) -> Iterable[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise problems.ServiceError(f"filter {key} must be a list of strings, not {value!r}")
        if _MERE_EXISTENCE.fullmatch(str(item)):
            raise problems.ServiceError(f"filter {key} has no range {item!r}: a bound is needed")
        yield str(item)
