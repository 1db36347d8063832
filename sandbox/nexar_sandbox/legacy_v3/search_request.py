"""Requests of */search (contract v3-rest.md §1.1), and their echo in responses (§3.6)."""

import re
from dataclasses import asdict, dataclass
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
