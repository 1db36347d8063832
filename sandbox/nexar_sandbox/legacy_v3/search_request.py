"""Requests of */search (contract v3-rest.md §1.1), their echo in responses, facets and statistics (§3.6)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from nexar_sandbox.legacy_v3 import criteria, query_string

# Above these a search is refused, as by the GraphQL service that came after (graphql.md §2.2). What v3 did about a
# limit of 999, which one client sends, is not on record.
MAX_START, MAX_RESULTS, DEFAULT_LIMIT = 1000, 100, 10

_FILTER = re.compile(r"filter\[fields\]\[([^\[\]]+)\]")
_FACET = re.compile(r"facet\[fields\]\[([^\[\]]+)\]\[(?:include|exclude_filter|start|limit)\]")
_STATS = re.compile(r"stats\[([^\[\]]+)\]\[(?:include|exclude_filter)\]")
_DRILLDOWN = re.compile(r"spec_drilldown\[\w+\]")


@dataclass(frozen=True, slots=True)
class CountOptions:
    """A facet (of values `start` to `start` + `limit`), statistics, or a spec_drilldown (of `limit` specs)."""

    include: bool
    exclude_filter: bool
    start: int = 0
    limit: int = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search: the page, number of hits, facets and statistics."""

    page: Sequence[Any]
    hits: int
    facets: dict[str, Any]
    facet_queries: dict[str, Any]
    stats: dict[str, Any]
    spec_metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LegacySearch:
    """A search request. `order`: fields of `sortby`, and whether they are descending."""

    q: str
    start: int
    limit: int
    sortby: str
    order: tuple[tuple[str, bool], ...]
    filters: dict[str, list[str]]
    filter_queries: list[str]
    facets: dict[str, CountOptions]
    facet_queries: list[str]
    stats: dict[str, CountOptions]
    drilldown: CountOptions | None

    @property
    def criteria(self) -> list[criteria.Criterion]:
        fields = [criteria.of_field(field, values) for field, values in self.filters.items()]
        return [*fields, *(each for query in self.filter_queries for each in criteria.of_query(query))]

    def echo(self) -> dict[str, Any]:
        stats = {
            field: {"exclude_filter": options.exclude_filter, "include": True}
            for field, options in self.stats.items()
            if options.include
        }
        echo: dict[str, Any] = {
            "stats": stats,
            "q": self.q,
            "start": self.start,
            "filter": {"fields": self.filters, "queries": self.filter_queries},
            "__class__": "SearchRequest",
            "limit": self.limit,
            "sortby": self.sortby,
            "facet": {
                "fields": {field: asdict(options) for field, options in self.facets.items()},
                "queries": self.facet_queries,
            },
        }
        if self.drilldown is not None:
            echo["spec_drilldown"] = asdict(self.drilldown)
            del echo["spec_drilldown"]["start"]
        return echo


def read(parameters: query_string.QueryString) -> LegacySearch:
    sortby = parameters.one("sortby") or "score desc"
    facet_names = (f"facet[fields][{field}]" for field in _named(parameters, _FACET))
    return LegacySearch(
        q=parameters.one("q") or "",
        start=parameters.number("start", 0, MAX_START),
        limit=parameters.number("limit", DEFAULT_LIMIT, MAX_RESULTS),
        sortby=sortby,
        order=tuple(_sort_key(each.split()) for each in sortby.split(",") if each.strip()),
        filters=_filters(parameters),
        filter_queries=parameters.all("filter[queries]"),
        facets={name[len("facet[fields][") : -1]: _count(parameters, name) for name in facet_names},
        facet_queries=list(dict.fromkeys(parameters.all("facet[queries]"))),
        stats={field: _count(parameters, f"stats[{field}]", paged=False) for field in _named(parameters, _STATS)},
        drilldown=_count(parameters, "spec_drilldown") if parameters.like(_DRILLDOWN) else None,
    )


def _sort_key(words: list[str]) -> tuple[str, bool]:
    field, direction = (*words, "asc")[:2]
    if len(words) > 2 or direction.lower() not in ("asc", "desc"):
        raise query_string.bad_request(f"sortby is not '<field> asc' or '<field> desc': {' '.join(words)[:60]}")
    return field, direction.lower() == "desc"


def _filters(parameters: query_string.QueryString) -> dict[str, list[str]]:
    filters: dict[str, list[str]] = {}
    for name, value in parameters.like(_FILTER):
        if value:
            filters.setdefault(name[1], []).append(value)
    return filters


def _named(parameters: query_string.QueryString, pattern: re.Pattern[str]) -> list[str]:
    return list(dict.fromkeys(match[1] for match, _ in parameters.like(pattern)))


def _count(parameters: query_string.QueryString, name: str, *, paged: bool = True) -> CountOptions:
    include, apart = (parameters.flag(f"{name}[{option}]") for option in ("include", "exclude_filter"))
    if not paged:
        return CountOptions(include, apart)
    start = parameters.number(f"{name}[start]", 0, MAX_START)
    return CountOptions(include, apart, start, parameters.number(f"{name}[limit]", DEFAULT_LIMIT, MAX_RESULTS))


def facet(counts: Sequence[tuple[Any, int]], missing: int, options: CountOptions) -> dict[str, Any]:
    """Return a SearchFacetResult of (value, count), most frequent first. Only a drilldown sets the rank."""
    page = counts[options.start : options.start + options.limit]
    return {
        "missing": missing,
        "facets": [{"count": count, "value": value} for value, count in page],
        "__class__": "SearchFacetResult",
        "spec_drilldown_rank": None,
    }


def stats(numbers: Mapping[float, int], missing: int) -> dict[str, Any]:
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


def by_frequency(counts: Mapping[Any, int]) -> Sequence[tuple[Any, int]]:
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
