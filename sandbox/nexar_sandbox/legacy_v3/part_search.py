"""/parts/search (contract v3-rest.md §1.1, §3.6): search for parts, with facets and statistics."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nexar_sandbox.catalog import records, store
from nexar_sandbox.legacy_v3 import criteria, part_fields, query_string, search_request, spec_names
from nexar_sandbox.legacy_v3.search_request import CountOptions, LegacySearch, SearchResult

Object = dict[str, Any]
Counts = Sequence[tuple[Any, int]]
# A spec_drilldown looks at so many of the best hits, and finds so many specs.
_LOOKED_AT, _SUGGESTED = 100, 8


class Drilldown(NamedTuple):
    """Result of a spec_drilldown: the rank of each field, facets, and statistics."""

    ranks: dict[str, int]
    facets: Object
    stats: Object


class PartSearch:
    def __init__(self, catalog: store.Catalog, fields: part_fields.PartFields) -> None:
        self._catalog, self._fields = catalog, fields

    def search(self, search: LegacySearch) -> SearchResult:
        filters_ = search.criteria
        hits = self._hits(search, filters_)
        facets = {
            field: self._facet(field, self._over(search, options, field.__eq__), options)
            for field, options in search.facets.items()
            if options.include
        }
        stats = {
            field: self._stats(field, self._over(search, options, field.__eq__))
            for field, options in search.stats.items()
            if options.include
        }
        drilled = self._drilldown(search)
        all_counts = {**drilled.facets, **facets}, {**drilled.stats, **stats}
        for name, rank in drilled.ranks.items():
            for results in all_counts:
                if name in results:
                    results[name] = {**results[name], "spec_drilldown_rank": rank}
        return SearchResult(
            hits.page(search.start, search.limit),
            hits.hits,
            all_counts[0],
            {query: {"count": self._count(search, query)} for query in search.facet_queries},
            all_counts[1],
            self._metadata([*(each.field for each in filters_), *all_counts[0], *all_counts[1]]),
        )

    def _hits(self, search: LegacySearch, filters_: list[criteria.Criterion]) -> records.SearchHits:
        conditions, inside, left = self._fields.conditions(filters_)
        named = [(None if name == "score" else self._fields.of(name), downwards) for name, downwards in search.order]
        order = [(field, downwards) for field, downwards in named if field is None or not field.is_empty]
        (first, downwards), *other_keys = order or [(None, True)]
        key = first.sort_key(downwards) if first is not None else ""
        alone = key and all(pair == (None, True) for pair in other_keys)
        try:
            sort = key if alone else ""
            hits = self._catalog.search(search.q, conditions, sort, bool(sort) and downwards)
        except ValueError as error:
            raise query_string.bad_request(str(error)) from None
        for rows in inside:
            hits = hits.intersect(rows)
        if left:
            hits = self._passing(hits, left)
        if not alone and order not in ([], [(None, True)]):
            keys = [(field and self._key(field, down), down) for field, down in order]
            hits = self._catalog.hits_for(search_request.ordered(list(hits.ids), keys))
        return hits

    def _passing(self, hits: records.SearchHits, filters_: list[criteria.Criterion]) -> records.SearchHits:
        """Return the hits that meet criteria, looked at one by one; of a few numbers or uids only the parts that have
        them."""
        for each in filters_:
            hits = hits.intersect(named) if (named := self._fields.named(each)) is not None else hits
        passing = (id_ for id_ in hits.ids if self._fields.passes(self.part(id_), filters_))
        return self._catalog.hits_for(list(passing))

    def part(self, id_: str) -> records.Part:
        part = self._catalog.part(id_)
        if part is None:
            raise KeyError(id_)
        return part

    def _key(self, field: part_fields.SearchField, downwards: bool) -> Callable[[str], Any]:
        return lambda id_: field.sort_value(self.part(id_), downwards)

    def _over(self, search: LegacySearch, options: CountOptions, excluded: Callable[[str], bool]) -> records.SearchHits:
        """Return the hits of a facet or statistic, which may exclude the field's own filter."""
        filters_ = [each for each in search.criteria if not (options.exclude_filter and excluded(each.field))]
        return self._hits(replace(search, order=()), filters_)

    def _count(self, search: LegacySearch, query: str) -> int:
        hits = self._hits(replace(search, order=()), [*search.criteria, *criteria.of_query(query)])
        return hits.hits

    def _facet(self, name: str, hits: records.SearchHits, options: CountOptions) -> Object:
        field = self._fields.of(name)
        counts = self._value_counts(field, hits)
        return search_request.facet(counts, self._missing(field, hits, counts), options)

    def _value_counts(self, field: part_fields.SearchField, hits: records.SearchHits) -> Counts:
        """(value, hits that have it), most frequent first."""
        if field.spec is not None:
            return self._spec_counts(field, hits)
        if field.count_kind == "stock":
            return [("[1 TO *]" if there_is else "0", count) for there_is, count in self._catalog.in_stock_counts(hits)]
        count_hits = {
            "maker": self._catalog.manufacturer_counts,
            "seller": self._catalog.distributor_counts,
            "category": self._catalog.category_counts,
        }.get(field.count_kind)
        if count_hits is not None:
            return [(field.display(named), count) for named, count in count_hits(hits)]
        return search_request.by_frequency(Counter(self._values(field, hits)))

    def _spec_counts(self, field: part_fields.SearchField, hits: records.SearchHits) -> Counts:
        merged: Counter[str] = Counter()
        for attribute, some in self._fields.by_source(field, hits):
            for display, number, count in self._catalog.spec_counts(some, attribute.shortname).buckets:
                # Numbers as v3 wrote them, texts as they are.
                merged[display if number is None else spec_names.number(attribute, number)] += count
        return merged.most_common()

    def _values(self, field: part_fields.SearchField, hits: records.SearchHits) -> Iterator[Any]:
        return (value for id_ in hits.ids for value in field.values_of(self.part(id_)))

    def _missing(self, field: part_fields.SearchField, hits: records.SearchHits, counts: Counts) -> int:
        if field.count_kind == "seller":  # a part counts for each of its sellers
            return self._catalog.unlisted(hits)
        if field.spec is not None:  # and for each of several values
            return hits.hits - self._with_value(field, hits)
        return max(0, hits.hits - sum(count for _, count in counts))

    def _with_value(self, field: part_fields.SearchField, hits: records.SearchHits) -> int:
        if field.spec is not None and field.range:  # and for its value and each end
            return self._fields.having(field.spec, hits).hits
        sources = self._fields.by_source(field, hits)
        return sum(self._catalog.with_value(some, attribute.shortname) for attribute, some in sources)

    def _stats(self, name: str, hits: records.SearchHits) -> Object:
        field = self._fields.of(name)
        numbers: Counter[Any] = Counter()
        if field.spec is None:
            numbers = Counter(self._values(field, hits))
            if not all(isinstance(number, int | float) for number in numbers):
                raise query_string.bad_request(f"stats: {name[:60]} has no numbers")
        for attribute, some in self._fields.by_source(field, hits):
            buckets = self._catalog.spec_counts(some, attribute.shortname).buckets
            numbers.update({number: count for _, number, count in buckets if number is not None})
        having = self._with_value(field, hits) if field.range else numbers.total()
        return search_request.stats(numbers, hits.hits - having)

    def _drilldown(self, search: LegacySearch) -> Drilldown:
        """Return the specs that most of the best hits have, with facets, and statistics of those that are numbers."""
        options = search.drilldown
        if options is None or not options.include:
            return Drilldown({}, {}, {})
        over = CountOptions(True, options.exclude_filter)
        hits = self._over(search, options, _is_spec)
        best = [self.part(id_) for id_ in hits.page(0, _LOOKED_AT)]
        names = [f"specs.{key}.value" for key in spec_names.of_most(best, _SUGGESTED)][: options.limit]
        numeric = [name for name in names if (spec := self._fields.of(name).spec) is not None and spec.is_numeric]
        return Drilldown(
            {name: rank for rank, name in enumerate(names, 1)},
            {name: self._facet(name, hits, over) for name in names},
            {name: self._stats(name, hits) for name in numeric},
        )

    def _metadata(self, names: list[str]) -> Object:
        """Metadata of the specs that were filtered or counted, by the requested key."""
        named_specs = ((name.split(".")[1], self._fields.of(name).spec) for name in names if _is_spec(name))
        return {key: spec_names.metadata(spec.key, spec.about) for key, spec in named_specs if spec and spec.about}


def _is_spec(field: str) -> bool:
    return field.startswith("specs.")
