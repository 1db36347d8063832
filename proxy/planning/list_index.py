"""Indexes of a list: the words of its names, and the values of its fields (contract v3-rest.md §3.6).

A set of objects is a mask: an integer with one byte for each object, 1 where it is in the set. So sets are intersected
and counted at once, however many filters there are. Work over all values is done in slices: a function that yields is
driven by its caller, so that other requests are served in between.
"""

import re
import statistics
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain, compress, filterfalse, pairwise
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

    def beginning(self, text: str) -> Slices[frozenset[int]]:
        """Return the numbers of all objects that have, for each word of a text, a word that begins with it."""
        matching = self._every
        for start in _longest(WORD.findall(text)):
            first, last = bisect_left(self._sorted, start), bisect_left(self._sorted, start + LAST)
            matching &= frozenset(chain.from_iterable(map(self._words.__getitem__, self._sorted[first:last])))
            yield
            if not matching:
                break
        return matching

    def like(self, pattern: str) -> Slices[frozenset[int]]:
        """Return the numbers of all objects with a name, or a word in a name, that matches a pattern as a whole."""
        matches, matching = wildcards.matcher(pattern), set[int]()
        for holders in (self._names, self._words):
            for batch in slices.sliced(holders):
                matching.update(chain.from_iterable(map(holders.__getitem__, filter(matches, batch))))
                yield
        return frozenset(matching)


class Column:
    """Values of one field, by object number."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self._each = [_each(value) for value in values]
        self._holders: dict[Any, list[int]] = defaultdict(list)
        for number, elements in enumerate(self._each):
            for value in elements:
                self._holders[value].append(number)
        self._texts: dict[str, list[Any]] = defaultdict(list)  # in order of the texts
        for value in sorted(self._holders, key=_text):
            self._texts[_text(value)].append(value)
        self._numbers = [(value, _number(value), text) for text, equal in self._texts.items() for value in equal]
        self._missing = mask(number for number, elements in enumerate(self._each) if not elements)
        self._present = mask(number for number, value in enumerate(values) if value is not None)
        self._measured = mask(number for number, value in enumerate(values) if _is_number(value))
        self._ranks = _ranks(values)

    def passing(self, condition: Condition) -> Slices[int]:
        """Return the mask of the objects that meet a condition; for a list, one element must meet it."""
        numbers: set[int] = set()
        for values in self._fitting(condition):
            numbers.update(chain.from_iterable(self._holders[value] for value in values))
            yield
        return mask(numbers)

    def facet(self, options: FacetField, objects: int) -> dict[str, Any]:
        """Return one entry of facet_results.fields, the most frequent value first."""
        counts = Counter(chain.from_iterable(compress(self._each, self._bytes(objects))))
        # Both sorts are stable: values with the same count stay in the order of their texts.
        distinct = list(filter(counts.__contains__, self._ordered))
        distinct.sort(key=counts.__getitem__, reverse=True)
        return {
            "__class__": "SearchFacetResult",
            "facets": [
                {"value": value, "count": counts[value]}
                for value in distinct[options.start : options.start + options.limit]
            ],
            "missing": (objects & self._missing).bit_count(),
            "spec_drilldown_rank": None,
        }

    def stats(self, field: str, objects: int) -> dict[str, Any]:
        """Return one entry of stats_results; null if no object has a number. Raises BadRequest for text values."""
        numbers = list(compress(self._values, self._bytes(objects & self._measured)))
        # Values, but no number: a text field. Without any value at all the statistics are null.
        if not numbers and objects & self._present:
            raise errors.BadRequest(f"stats: {field} holds no numbers")
        return {
            "__class__": "SearchStatsResult",
            "min": min(numbers, default=None),
            "max": max(numbers, default=None),
            "mean": statistics.fmean(numbers) if numbers else None,
            "stddev": statistics.stdev(numbers) if len(numbers) > 1 else None,
            "count": len(numbers),
            "missing": objects.bit_count() - len(numbers),
            "spec_drilldown_rank": None,
        }

    def ordered(self, numbers: list[int], descending: bool) -> list[int]:
        """Sort objects by value, numbers by size and texts alphabetically; those without a value come last. Stable."""
        having = sorted(filter(self._ranks.__contains__, numbers), key=self._ranks.__getitem__, reverse=descending)
        return having + list(filterfalse(self._ranks.__contains__, numbers))

    @cached_property
    def _ordered(self) -> list[Any]:
        """All distinct values in the order of their texts."""
        return list(chain.from_iterable(self._texts.values()))

    def _fitting(self, condition: Condition) -> Iterator[list[Any]]:
        """Yield the distinct values that meet a condition, in slices."""
        if condition.is_range:
            between = _between(condition)
            yield from ([each[0] for each in batch if between(*each)] for batch in slices.sliced(self._numbers))
            return
        plain = dict.fromkeys(value for value in condition.values if wildcards.ANY not in value)
        yield [value for text in plain for value in self._texts.get(text, ())]
        for pattern in dict.fromkeys(value for value in condition.values if wildcards.ANY in value):
            like = wildcards.matcher(pattern)
            for batch in slices.sliced(self._texts):
                yield [value for text in filter(like, batch) for value in self._texts[text]]

    def _bytes(self, objects: int) -> bytes:
        return objects.to_bytes(len(self._values), "little")


def mask(numbers: Iterable[int]) -> int:
    """Return the mask of these objects."""
    members = set(numbers)
    return int.from_bytes(bytes(map(members.__contains__, range(max(members, default=-1) + 1))), "little")


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


def _between(condition: Condition) -> Callable[[Any, float | None, str], bool]:
    """Return the test whether a value is in a range: numbers are compared as numbers, other values as text."""
    low, high = condition.low, condition.high
    minimum, maximum = _number(low), _number(high)
    numeric = (low is None or minimum is not None) and (high is None or maximum is not None)

    def between(_: Any, number: float | None, text: str) -> bool:
        if not numeric or number is None:
            return (low or "") <= text and (high is None or text <= high)
        return (minimum is None or minimum <= number) and (maximum is None or number <= maximum)

    return between


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
