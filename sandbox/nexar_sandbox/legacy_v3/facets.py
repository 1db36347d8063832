"""Facets and statistics as v3 objects (contract v3-rest.md §3.6), and ordering of values."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from nexar_sandbox.legacy_v3 import criteria, search_request

Object = dict[str, Any]
Counts = Sequence[tuple[Any, int]]


def facet(counts: Counts, missing: int, options: search_request.CountOptions) -> Object:
    """Return a SearchFacetResult of (value, count), most frequent first. Only a drilldown sets the rank."""
    page = counts[options.start : options.start + options.limit]
    return {
        "missing": missing,
        "facets": [{"count": count, "value": value} for value, count in page],
        "__class__": "SearchFacetResult",
        "spec_drilldown_rank": None,
    }


def stats(numbers: Mapping[float, int], missing: int) -> Object:
    """Return a SearchStatsResult of numbers with how often each occurs; null where there are none."""
    count = sum(numbers.values())
    # Exact, as if every number were written out: a search may have a million.
    total = sum((Fraction(number) * often for number, often in numbers.items()), Fraction())
    squares = sum((Fraction(number) ** 2 * often for number, often in numbers.items()), Fraction())
    variance = (squares - total**2 / count) / (count - 1) if count > 1 else None
    return {
        "count": count,
        "min": min(numbers, default=None),
        # Rounded once.
        "stddev": None if variance is None else float((Decimal(variance.numerator) / variance.denominator).sqrt()),
        "__class__": "SearchStatsResult",
        "mean": float(total) / count if count else None,
        "missing": missing,
        "max": max(numbers, default=None),
        "spec_drilldown_rank": None,
    }


def by_frequency(counts: Mapping[Any, int]) -> Counts:
    """Most frequent first, ties by value."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], criteria.text(pair[0])))


def several(value: Any) -> list[Any]:
    """Return the values of a field as a list; null is empty."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def sort_key(value: Any) -> tuple[int, float, str]:
    """Numbers by value, before texts in alphabetical order."""
    is_number = isinstance(value, int | float)
    return (0, float(value), "") if is_number else (1, 0.0, criteria.text(value).casefold())


def ordered(objects: list[Any], keys: Iterable[tuple[Any, bool]]) -> list[Any]:
    """Sort by several keys; missing values come last. A key of None is the score, which is the given order (reversed if
    ascending)."""
    # The last key first: sorting is stable, so earlier keys prevail.
    for key, downwards in reversed(list(keys)):
        if key is None:
            objects = objects if downwards else objects[::-1]
            continue
        with_value = [each for each in objects if key(each) is not None]
        without = [each for each in objects if key(each) is None]
        objects = sorted(with_value, key=lambda each: sort_key(key(each)), reverse=downwards) + without
    return objects
