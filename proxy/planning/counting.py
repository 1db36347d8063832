"""Filters, facets and stats over v3 objects at hand: plain dicts in, v3's result forms out (contract v3-rest.md §3.6).

The listings are small and here, so that everything v3 counted can be counted: nothing is estimated or left out.
"""

import statistics
from collections import Counter
from typing import Any

from proxy import errors
from proxy.model import FacetField
from proxy.planning import wildcards
from proxy.planning.lucene import Condition


def check_field(field: str, example: dict[str, Any]) -> None:
    """Raises BadRequest for a field that the objects do not have, listing those they have."""
    if field not in example or field == "__class__":
        able = ", ".join(name for name in example if name != "__class__")
        raise errors.BadRequest(f"there is no field {field[:60]!r}; there are {able}")


def passes(condition: Condition, found: dict[str, Any]) -> bool:
    """Whether an object meets a condition; of a list one element has to."""
    values = _values(found.get(condition.field))
    if condition.is_range:
        return any(_between(condition, value) for value in values)
    return any(_equal(wanted, value) for wanted in condition.values for value in values)


def facet(wanted: FacetField, objects: list[dict[str, Any]]) -> dict[str, Any]:
    """One entry of facet_results.fields, the most frequent first."""
    counts = Counter(value for each in objects for value in _values(each.get(wanted.field)))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], _text(item[0])))
    page = ordered[wanted.start : wanted.start + wanted.limit]
    return {
        "__class__": "SearchFacetResult",
        "facets": [{"value": value, "count": count} for value, count in page],
        "missing": sum(not _values(each.get(wanted.field)) for each in objects),
        "spec_drilldown_rank": None,
    }


def stats(field: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    """One entry of stats_results; the numbers are null where no object has one."""
    values = [each.get(field) for each in objects]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if objects and not numbers and any(value is not None for value in values):
        raise errors.BadRequest(f"stats: {field} holds no numbers")
    return {
        "__class__": "SearchStatsResult",
        "min": min(numbers, default=None),
        "max": max(numbers, default=None),
        "mean": statistics.fmean(numbers) if numbers else None,
        "stddev": statistics.stdev(numbers) if len(numbers) > 1 else None,
        "count": len(numbers),
        "missing": len(values) - len(numbers),
        "spec_drilldown_rank": None,
    }


def sort_key(value: Any) -> tuple[int, float, str]:
    """Numbers by size, words by letters."""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, _text(value).casefold())


def _values(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _equal(wanted: str, value: Any) -> bool:
    return wildcards.matcher(wanted)(_text(value)) if wildcards.ANY in wanted else wanted == _text(value)


def _between(condition: Condition, value: Any) -> bool:
    """Numbers are compared as numbers, everything else by its letters."""
    try:
        low, high = (None if end is None else float(end) for end in (condition.low, condition.high))
        number = float(value)
    except (TypeError, ValueError):
        text = _text(value)
        return (condition.low or "") <= text and (condition.high is None or text <= condition.high)
    return (low is None or low <= number) and (high is None or number <= high)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
