"""A search among the objects of one class: filters, order, facets and statistics (contract v3-rest.md §1.1, §3.6).

Everything is read from one object after the other: there are 5 000 at most.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from nexar_sandbox.legacy_v3 import criteria, query_string
from nexar_sandbox.legacy_v3.criteria import Criterion
from nexar_sandbox.legacy_v3.search_request import CountOptions, LegacySearch

Object = dict[str, Any]
Predicate = Callable[[Any], bool]
Counted = tuple[int, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class SearchField:
    """A field of objects. `values` reads those of an object, `others` further ones that a filter accepts, `counted`
    those of its facet: each has a place, and stands for one value or for several. `sort` is that by which it is sorted,
    upwards or downwards. `meets` makes another filter."""

    values: Callable[[Any], list[Any]]
    others: Callable[[Any], Iterable[Any]] = lambda _object: ()
    counted: Callable[[Any], list[Counted]] | None = None
    sort: Callable[[Any, bool], Any] | None = None
    meets: Callable[[Criterion], Predicate] | None = None

    def predicate(self, criterion: Criterion) -> Predicate:
        if self.meets is not None:
            return self.meets(criterion)
        return lambda each: any(map(criterion.holds, (*self.values(each), *self.others(each))))

    def counts(self, each: Any) -> Iterable[Counted]:
        return dict.fromkeys(self.counted(each) if self.counted else [(0, (value,)) for value in self.values(each)])

    def sort_value(self, each: Any, downwards: bool) -> Any:
        return self.sort(each, downwards) if self.sort else next(iter(self.values(each)), None)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search: the page, number of hits, facets and statistics."""

    page: Sequence[Any]
    hits: int
    facets: Object
    facet_queries: Object
    stats: Object
    spec_metadata: Object = field(default_factory=dict)


class ObjectSearch:
    """The search of a request among objects that match its text, best first.

    `find` returns the field with a name. Objects are counted in the order of `number`, and of equal counts the first
    value comes first; without it in the order of the values. Objects that are sorted by one field are, where it is
    equal, in the order of `best`.
    """

    def __init__(
        self,
        request: LegacySearch,
        matching: list[Any],
        find: Callable[[str], SearchField],
        number: Callable[[Any], int] | None = None,
        best: Callable[[Any], int] | None = None,
    ) -> None:
        self._request, self._matching, self._find = request, matching, find
        self._number, self._best = number, best

    def result(self) -> SearchResult:
        request, found = self._request, self.passing(self._request.criteria)
        page = self._ordered(found)[request.start : request.start + request.limit]
        return SearchResult(
            page,
            len(found),
            {
                name: self.facet(name, self._counted(name, options), options)
                for name, options in _included(request.facets)
            },
            {query: {"count": len(self.passing(criteria.of_query(query), found))} for query in request.facet_queries},
            {name: self.stats(name, self._counted(name, options)) for name, options in _included(request.stats)},
        )

    def passing(self, filters: Iterable[Criterion], objects: list[Any] | None = None) -> list[Any]:
        """Return the objects that meet criteria: of those that match the text, unless some are given."""
        objects = self._matching if objects is None else objects
        for each in filters:
            objects = list(filter(self._find(each.field).predicate(each), objects))
        return objects

    def facet(self, name: str, objects: list[Any], options: CountOptions) -> Object:
        """Return a SearchFacetResult. Only a drilldown sets the rank."""
        counted = self._find(name).counts
        values = [counted(each) for each in (sorted(objects, key=self._number) if self._number else objects)]
        totals: Counter[Any] = Counter()
        for (_, texts), count in sorted(Counter(chain(*values)).most_common(), key=lambda pair: pair[0][0]):
            totals.update(dict.fromkeys(texts, count))
        counts = totals.most_common()
        if self._number is None:
            counts.sort(key=lambda pair: (-pair[1], criteria.text(pair[0])))
        return {
            "missing": sum(not some for some in values),
            "facets": [
                {"count": count, "value": value}
                for value, count in counts[options.start : options.start + options.limit]
            ],
            "__class__": "SearchFacetResult",
            "spec_drilldown_rank": None,
        }

    def stats(self, name: str, objects: list[Any]) -> Object:
        """Return a SearchStatsResult; null where there are no numbers."""
        values = [self._find(name).values(each) for each in objects]
        numbers = [number for some in values for number in some]
        if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
            raise query_string.bad_request(f"stats: {name[:60]} has no numbers")
        return _statistics(numbers, sum(not some for some in values))

    def _counted(self, name: str, options: CountOptions) -> list[Any]:
        """Return the objects of a facet or statistic, which may exclude the field's own filter."""
        filters = self._request.criteria
        return self.passing(each for each in filters if not (options.exclude_filter and each.field == name))

    def _ordered(self, objects: list[Any]) -> list[Any]:
        """Sort by the keys of the request; missing values come last. The score is the given order, reversed if
        ascending."""
        order = self._request.order
        best = self._best if all(key == ("score", True) for key in order[1:]) else None
        # The last key first: sorting is stable, so earlier keys prevail.
        for name, downwards in reversed(order):
            if name == "score":
                objects = objects if downwards else objects[::-1]
                continue
            read = self._find(name).sort_value
            values = [(read(each, downwards), each) for each in objects]
            if best is not None and any(value is not None for value, _ in values):
                values.sort(key=lambda pair: best(pair[1]))
            having = sorted(
                (pair for pair in values if pair[0] is not None), key=lambda pair: _sort_key(pair[0]), reverse=downwards
            )
            objects = [each for _, each in having] + [each for value, each in values if value is None]
        return objects


def _included(options: Mapping[str, CountOptions]) -> list[tuple[str, CountOptions]]:
    return [(name, each) for name, each in options.items() if each.include]


def _sort_key(value: Any) -> tuple[int, float, str]:
    """Numbers by value, before texts in alphabetical order."""
    is_number = isinstance(value, int | float)
    return (0, float(value), "") if is_number else (1, 0.0, criteria.text(value).casefold())


def _statistics(numbers: Sequence[float], missing: int) -> Object:
    return {
        "count": len(numbers),
        "min": min(numbers, default=None),
        "stddev": statistics.stdev(numbers) if len(numbers) > 1 else None,
        "__class__": "SearchStatsResult",
        "mean": statistics.fmean(numbers) if numbers else None,
        "missing": missing,
        "max": max(numbers, default=None),
        "spec_drilldown_rank": None,
    }
