"""Words of the names in a list, and v3's counts of the values of a field (contract v3-rest.md §3.6)."""

import re
import statistics
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import chain
from typing import Any

from proxy import errors
from proxy.model import FacetField
from proxy.planning import lucene
from proxy.planning.lucene import Condition

WORD = re.compile(r"\w+")
LAST = "\U0010ffff"  # sorts behind every letter


class WordIndex:
    """Index of the words in names, by object number. An object can have several names, in lower case."""

    def __init__(self, names: Sequence[tuple[str, ...]]) -> None:
        self._every = frozenset(range(len(names)))
        self._holders: dict[str, set[int]] = defaultdict(set)  # of a word, or of a whole name
        words: set[str] = set()
        for number, object_names in enumerate(names):
            found = {*chain.from_iterable(map(WORD.findall, object_names))}
            words |= found
            for text in {*found, *object_names}:
                self._holders[text].add(number)
        self._words = sorted(words)

    def beginning(self, text: str) -> Set[int]:
        """Return the numbers of all objects that have, for each word of a text, a word that begins with it."""
        matching: Set[int] = self._every
        for start in WORD.findall(text):
            first, last = bisect_left(self._words, start), bisect_left(self._words, start + LAST)
            matching &= frozenset(chain.from_iterable(map(self._holders.__getitem__, self._words[first:last])))
        return matching

    def like(self, pattern: str) -> Set[int]:
        """Return the numbers of all objects with a name, or a word in a name, that matches a pattern as a whole."""
        matches = lucene.matcher(pattern)
        return set(chain.from_iterable(numbers for text, numbers in self._holders.items() if matches(text)))


def facet(options: FacetField, values: Iterable[Any]) -> dict[str, Any]:
    """Return one entry of facet_results.fields, the most frequent value first, then in the order of texts."""
    each = [listed(value) for value in values]
    counts = Counter(chain.from_iterable(each))
    distinct = sorted(sorted(counts, key=_text), key=counts.__getitem__, reverse=True)
    return {
        "__class__": "SearchFacetResult",
        "facets": [
            {"value": value, "count": counts[value]}
            for value in distinct[options.start : options.start + options.limit]
        ],
        "missing": sum(not elements for elements in each),
        "spec_drilldown_rank": None,
    }


def stats(field: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return one entry of stats_results; null if no object has a number. Raises BadRequest for text values."""
    # bool is an int in Python.
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    # Values, but no number: a text field. Without any value at all the statistics are null.
    if not numbers and any(value is not None for value in values):
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
    """Return a key that sorts numbers by size, texts alphabetically."""
    return (0, value, "") if isinstance(value, int | float) else (1, 0.0, _text(value).casefold())


def listed(value: Any) -> list[Any]:
    """Return the values of an object's field as a list; nested objects as text."""
    if value is None:
        return []
    return [
        _text(each) if isinstance(each, dict | list) else each
        for each in (value if isinstance(value, list) else [value])
    ]


def meeting(condition: Condition) -> Callable[[Any], bool]:
    """Return the test whether a value meets a condition; in a range numbers are compared as numbers, others as text."""
    plain = frozenset(value for value in condition.values if lucene.ANY not in value)
    like = [lucene.matcher(value) for value in dict.fromkeys(condition.values) if lucene.ANY in value]
    low, high = condition.low, condition.high
    minimum, maximum = _number(low), _number(high)
    numeric = (low is None or minimum is not None) and (high is None or maximum is not None)

    def is_equal(value: Any) -> bool:
        text = _text(value)
        return text in plain or any(matches(text) for matches in like)

    def is_between(value: Any) -> bool:
        number = _number(value) if numeric else None
        if number is None:
            text = _text(value)
            return (low or "") <= text and (high is None or text <= high)
        return (minimum is None or minimum <= number) and (maximum is None or number <= maximum)

    return is_between if condition.is_range else is_equal


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
