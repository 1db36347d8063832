"""/parts/search (contract v3-rest.md §1.1, §3.6): which parts a search finds, and what it counts."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from proxy.sandbox.catalog import ranked, records, store
from proxy.sandbox.legacy_v3 import asked, counting, criteria, part_fields, refusal, shelf, spec_names

Object = dict[str, Any]
# A spec_drilldown looks at so many of the best hits, and finds so many specs.
_LOOKED_AT, _SUGGESTED = 100, 8


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: copies of the page, all hits, and the counts."""

    page: list[shelf.Copy]
    hits: int
    facets: Object
    facet_queries: Object
    stats: Object
    spec_metadata: Object


class PartSearch:
    """Searches one catalog."""

    def __init__(self, catalog: store.Catalog, fields: part_fields.PartFields) -> None:
        self._catalog, self._fields = catalog, fields

    def search(self, search: asked.Search, there: shelf.Shelf) -> Found:
        """A page of what matches, with the counts."""
        wanted = search.criteria
        hits = self._hits(search, wanted, there)
        facets = {field: self._facet(field, on, search, there) for field, on in search.facets.items() if on.include}
        drilled = self._drilldown(search, there)
        for field in facets.keys() & drilled.keys():
            facets[field] = {**facets[field], "spec_drilldown_rank": drilled[field]["spec_drilldown_rank"]}
        stats = {field: self._stats(field, on, search, there) for field, on in search.stats.items() if on.include}
        return Found(
            there.page(hits, search.start, search.limit),
            there.count(hits),
            {**drilled, **facets},
            {query: {"count": self._count(search, query, there)} for query in search.facet_queries},
            stats,
            self._metadata([*drilled, *facets, *stats]),
        )

    def _hits(self, search: asked.Search, wanted: list[criteria.Criterion], there: shelf.Shelf) -> ranked.Ranked:
        """All parts that match, best first."""
        conditions, left = self._fields.conditions(wanted)
        order = [(None if field == "score" else self._fields.of(field), downwards) for field, downwards in search.order]
        (first, downwards), *rest = order or [(None, True)]
        alone = first is not None and first.sort and all(pair == (None, True) for pair in rest)
        try:
            sort = first.sort if first is not None and alone else ""
            found = self._catalog.search(search.q, conditions, sort, bool(sort) and downwards)
        except ValueError as error:
            raise refusal.bad(str(error)) from None
        if left:
            found = self._passing(found, left, there)
        if not alone and order not in ([], [(None, True)]):
            keys = [(field and self._key(field, there), down) for field, down in order]
            found = self._catalog.among(counting.ordered(list(found.ids), keys))
        if there.differs:
            found = self._catalog.among(list(dict.fromkeys(copy.id for copy in there.copies(found.ids))))
        return found

    def _passing(self, found: ranked.Ranked, wanted: list[criteria.Criterion], there: shelf.Shelf) -> ranked.Ranked:
        """The hits that meet criteria, looked at one by one; of a few numbers or uids only the parts that have them."""
        for each in wanted:
            found = found.within(named) if (named := self._fields.named(each)) is not None else found
        passing = (id_ for id_ in found.ids if self._fields.passes(there.part(shelf.Copy(id_)), wanted))
        return self._catalog.among(list(passing))

    def _key(self, field: part_fields.Field, there: shelf.Shelf) -> Callable[[str], Any]:
        return lambda id_: next(iter(field.values_of(there.part(shelf.Copy(id_)))), None)

    def _over(
        self, search: asked.Search, on: asked.Count, excluded: Callable[[str], bool], there: shelf.Shelf
    ) -> ranked.Ranked:
        """The hits that a count is over."""
        wanted = [each for each in search.criteria if not (on.exclude_filter and excluded(each.field))]
        return self._hits(replace(search, order=()), wanted, there)

    def _count(self, search: asked.Search, query: str, there: shelf.Shelf) -> int:
        hits = self._hits(replace(search, order=()), [*search.criteria, *criteria.of_query(query)], there)
        return there.count(hits)

    def _facet(self, name: str, on: asked.Count, search: asked.Search, there: shelf.Shelf) -> Object:
        field, hits = self._fields.of(name), self._over(search, on, name.__eq__, there)
        counts = self._counted(field, hits, there)
        return counting.facet(counts, self._missing(field, hits, counts), on)

    def _counted(self, field: part_fields.Field, hits: ranked.Ranked, there: shelf.Shelf) -> counting.Counts:
        """(value, hits that have it), most frequent first."""
        if field.attribute is not None:
            found = self._catalog.spec_counts(hits, field.key)
            return [(_value(field.attribute, *bucket[:2]), bucket[2]) for bucket in found.buckets]
        if field.counted == "stock":
            return [("[1 TO *]" if there_is else "0", count) for there_is, count in self._catalog.in_stock_counts(hits)]
        counted = {
            "maker": self._catalog.manufacturer_counts,
            "seller": self._catalog.distributor_counts,
            "category": self._catalog.category_counts,
        }.get(field.counted)
        if counted is not None:
            return [(field.shown(named), count) for named, count in counted(hits)]
        return counting.by_frequency(Counter(self._values(field, hits, there)))

    def _values(self, field: part_fields.Field, hits: ranked.Ranked, there: shelf.Shelf) -> Iterator[Any]:
        """Every value that some hit has of the field."""
        return (value for id_ in hits.ids for value in field.values_of(there.part(shelf.Copy(id_))))

    def _missing(self, field: part_fields.Field, hits: ranked.Ranked, counts: counting.Counts) -> int:
        """Hits without a value."""
        if field.counted == "seller":  # a part counts for each of its sellers
            return self._catalog.unlisted(hits)
        if field.attribute is not None:  # and for each of several values
            return hits.hits - self._catalog.with_value(hits, field.key)
        return max(0, hits.hits - sum(count for _, count in counts))

    def _stats(self, name: str, on: asked.Count, search: asked.Search, there: shelf.Shelf) -> Object:
        field, hits = self._fields.of(name), self._over(search, on, name.__eq__, there)
        if field.attribute is not None:
            buckets = self._catalog.spec_counts(hits, field.key).buckets
            numbers = {number: count for _, number, count in buckets if number is not None}
        else:
            numbers = Counter(self._values(field, hits, there))
            if not all(isinstance(number, int | float) for number in numbers):
                raise refusal.bad(f"stats: {name[:60]} has no numbers")
        return counting.stats(numbers, hits.hits - sum(numbers.values()))

    def _drilldown(self, search: asked.Search, there: shelf.Shelf) -> dict[str, Object]:
        """The facets of the specs that most of the best hits have; the rank says which come first."""
        on = search.drilldown
        if on is None or not on.include:
            return {}
        hits = self._over(search, on, lambda field: field.startswith("specs."), there)
        best = (there.part(shelf.Copy(id_)) for id_ in hits.page(0, _LOOKED_AT))
        counted = Counter(spec.attribute for part in best for spec in part.specs)
        names = [f"specs.{spec_names.key(attribute)}.value" for attribute, _ in counted.most_common(_SUGGESTED)]
        ranked: dict[str, Object] = {}
        for rank, name in enumerate(names[: on.limit], 1):
            field = self._fields.of(name)
            counts = self._counted(field, hits, there)
            ranked[name] = counting.facet(counts, self._missing(field, hits, counts), asked.Count(True, False), rank)
        return ranked

    def _metadata(self, names: list[str]) -> Object:
        """Of the specs that were counted, by the key that each was asked for with."""
        specs = ((name.split(".")[1], self._fields.of(name).attribute) for name in names if name.startswith("specs."))
        return {key: spec_names.metadata(attribute) for key, attribute in specs if attribute is not None}


def _value(attribute: records.Attribute, shown: str, number: float | None) -> str:
    """Numbers as v3 wrote them, texts as they are."""
    return shown if number is None else spec_names.number(attribute, number)
