"""Indexes of a list: the words of its names, and the values of its fields (contract v3-rest.md §3.6).

Objects are numbers. Work over all values is done in slices: a function that yields is driven by its caller, so that
other requests are served in between.
"""

import re
import statistics
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Set
from itertools import chain, filterfalse, pairwise
from typing import Any

from proxy import errors
from proxy.kit import slices
from proxy.kit.slices import Slices
from proxy.model import FacetField
from proxy.planning import wildcards
from proxy.planning.lucene import Condition

WORD = re.compile(r"\w+")
LAST = "\U0010ffff"  # sorts behind every letter


class WordIndex:
    """Index of the words in names, by object number. An object can have several names, in lower case."""

    def __init__(self, names: list[tuple[str, ...]]) -> None:
        self._every = frozenset(range(len(names)))
        self._words: dict[str, list[int]] = defaultdict(list)
        self._names: dict[str, list[int]] = defaultdict(list)
        for number, object_names in enumerate(names):
            for name in object_names:
                self._names[name].append(number)
            for word in set(chain.from_iterable(map(WORD.findall, object_names))):
                self._words[word].append(number)
        self._sorted = sorted(self._words)

    def beginning(self, text: str) -> Slices[Set[int]]:
        """Return the numbers of all objects that have, for each word of a text, a word that begins with it."""
        matching: Set[int] = self._every
        for start in _longest(WORD.findall(text)):
            first, last = bisect_left(self._sorted, start), bisect_left(self._sorted, start + LAST)
            matching &= frozenset(chain.from_iterable(map(self._words.__getitem__, self._sorted[first:last])))
            yield
            if not matching:
                break
        return matching

    def like(self, pattern: str) -> Slices[Set[int]]:
        """Return the numbers of all objects with a name, or a word in a name, that matches a pattern as a whole."""
        matches, matching = wildcards.matcher(pattern), set[int]()
        for holders in (self._names, self._words):
            for batch in slices.sliced(holders):
                matching.update(chain.from_iterable(map(holders.__getitem__, filter(matches, batch))))
                yield
        return matching


class Column:
    """Values of one field, by object number."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self._each = [_each(value) for value in values]
        holders: dict[Any, list[int]] = defaultdict(list)
        for number, elements in enumerate(self._each):
            for value in elements:
                holders[value].append(number)
        self._holders = {value: holders[value] for value in sorted(holders, key=_text)}
        self._ranks = _ranks(values)

    def passing(self, condition: Condition) -> Slices[Set[int]]:
        """Return the objects that meet a condition; for a list, one element must meet it."""
        passes, numbers = _test(condition), set[int]()
        for batch in slices.sliced(self._holders):
            numbers.update(chain.from_iterable(map(self._holders.__getitem__, filter(passes, batch))))
            yield
        return numbers

    def facet(self, options: FacetField, objects: Set[int]) -> dict[str, Any]:
        """Return one entry of facet_results.fields, the most frequent value first, then in the order of texts."""
        counts = Counter(chain.from_iterable(map(self._each.__getitem__, objects)))
        distinct = sorted(filter(counts.__contains__, self._holders), key=counts.__getitem__, reverse=True)
        return {
            "__class__": "SearchFacetResult",
            "facets": [
                {"value": value, "count": counts[value]}
                for value in distinct[options.start : options.start + options.limit]
            ],
            "missing": sum(not self._each[number] for number in objects),
            "spec_drilldown_rank": None,
        }

    def stats(self, field: str, objects: Set[int]) -> dict[str, Any]:
        """Return one entry of stats_results; null if no object has a number. Raises BadRequest for text values."""
        present = [value for number in objects if (value := self._values[number]) is not None]
        numbers = list(filter(_is_number, present))
        # Values, but no number: a text field. Without any value at all the statistics are null.
        if present and not numbers:
            raise errors.BadRequest(f"stats: {field} holds no numbers")
        return {
            "__class__": "SearchStatsResult",
            "min": min(numbers, default=None),
            "max": max(numbers, default=None),
            "mean": statistics.fmean(numbers) if numbers else None,
            "stddev": statistics.stdev(numbers) if len(numbers) > 1 else None,
            "count": len(numbers),
            "missing": len(objects) - len(numbers),
            "spec_drilldown_rank": None,
        }

    def ordered(self, numbers: list[int], descending: bool) -> list[int]:
        """Sort objects by value, numbers by size and texts alphabetically; those without a value come last. Stable."""
        having = sorted(filter(self._ranks.__contains__, numbers), key=self._ranks.__getitem__, reverse=descending)
        return having + list(filterfalse(self._ranks.__contains__, numbers))


def check_field(field: str, example: dict[str, Any]) -> None:
    """Raise BadRequest for a field that the objects do not have, listing those they have."""
    if field not in example or field == "__class__":
        fields = ", ".join(name for name in example if name != "__class__")
        raise errors.BadRequest(f"there is no field {field[:60]!r}; there are {fields}")


def _ranks(values: list[Any]) -> dict[int, int]:
    """Return the rank of each object's value among all values; equal values have the same rank."""
    keys = {number: _sort_key(value) for number, value in enumerate(values) if value is not None}
    places = {key: place for place, key in enumerate(sorted(set(keys.values())))}
    return {number: places[key] for number, key in keys.items()}


def _sort_key(value: Any) -> tuple[int, float, str]:
    """Return a key that sorts numbers by size, texts alphabetically."""
    return (0, value, "") if isinstance(value, int | float) else (1, 0.0, _text(value).casefold())


def _each(value: Any) -> list[Any]:
    """Return the values of an object's field as a list; nested objects as text."""
    if value is None:
        return []
    return [
        _text(each) if isinstance(each, dict | list) else each
        for each in (value if isinstance(value, list) else [value])
    ]


def _test(condition: Condition) -> Callable[[Any], bool]:
    """Return the test whether a value meets a condition; in a range numbers are compared as numbers, others as text."""
    plain = frozenset(value for value in condition.values if wildcards.ANY not in value)
    like = [wildcards.matcher(value) for value in dict.fromkeys(condition.values) if wildcards.ANY in value]
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


def _is_number(value: Any) -> bool:
    # bool is an int in Python.
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _longest(words: Iterable[str]) -> list[str]:
    """Return the words that are not a prefix of another: an object that has the longer word has the prefix, too."""
    ordered = sorted(set(words))
    return [word for word, after in pairwise([*ordered, ""]) if not after.startswith(word)]
