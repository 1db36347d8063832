"""Searchable lists of brands, sellers and categories: the upstream returns them whole and free of charge, unsearched.

A listing is built once from the service's records and never changes; the directory replaces it when it gets old.
Words match from their beginning, aliases count too, `*` stands for anything (contract v3-rest.md §1.1). Everything is
indexed, and a search yields between its slices, so that a long list delays no other request.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain
from typing import Any, NamedTuple

from proxy import model
from proxy.kit import slices
from proxy.kit.slices import Slices
from proxy.planning import list_index, lucene, search_support, wildcards
from proxy.planning.list_index import WORD, Column, WordIndex
from proxy.planning.lucene import Condition

FRESH_SECONDS = 86_400.0  # for which a list is kept, before it is fetched again in the background
UIDS = frozenset({"uid", "parent_uid", "ancestor_uids", "children_uids"})  # fields whose values are objects of the list


class ListEntry(NamedTuple):
    """Object of a list: the upstream record, all of its v3 fields, its names in lower case (v3's first), and all
    uids that refer to it."""

    record: Any
    v3: dict[str, Any]
    names: tuple[str, ...]
    uids: list[str]


class ListSearchResult(NamedTuple):
    """Result of a search: records of the page, all hits, and v3's counts. `unknown` are filters by a uid that no
    object has, as parameters with their values."""

    records: list[Any]
    hits: int
    facet_results: dict[str, dict[str, Any]]
    stats_results: dict[str, Any]
    unknown: tuple[str, ...] = ()


class Listing:
    """All objects of one kind, by uid and by word."""

    def __init__(
        self, records: list[Any], to_v3: Callable[[Any], dict[str, Any]], accepted: Callable[[str, str], list[str]]
    ) -> None:
        """Build from upstream records. Those that cannot be translated are skipped and counted in `skipped`. Raises
        ValueError if none can be.

        `accepted` returns the uids that refer to a numeric id and name: those of earlier years, and the computed one.
        `ids` are the upstream ids by exact name, v3's and upstream's.
        """
        self._entries = list(_entries(records, to_v3, accepted))
        self.skipped = len(records) - len(self._entries)
        if records and not self._entries:
            raise ValueError("no record can be translated")
        self._by_uid = {uid: entry for entry in self._entries for uid in entry.uids}
        # Last, so that a current uid wins over an old one of another object.
        self._by_uid |= {entry.v3["uid"]: entry for entry in self._entries}
        self.ids = _ids(self._entries)
        names = [entry.names for entry in self._entries]
        self._words, self._own_words = WordIndex(names), WordIndex([object_names[:1] for object_names in names])
        self._by_name = sorted(range(len(names)), key=lambda number: names[number][0])
        fields = self._entries[0].v3 if self._entries else {}
        # All fields of all objects: built once a day in a thread, so that no search reads a record.
        self._columns = {name: Column([entry.v3[name] for entry in self._entries]) for name in fields}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Any | None:
        """Return the record of a uid; None if it is unknown."""
        entry = self._by_uid.get(uid)
        return entry.record if entry else None

    def search(self, request: model.SearchRequest) -> Slices[ListSearchResult]:
        """Return a page of matches with v3's counts, in slices. Raises BadRequest for unknown fields. The objects
        have no specs: a spec_drilldown finds none."""
        for field in _fields(request):
            self._check(field)
        filters = yield from search_support.parse_filters(request)
        for condition in filters.conditions:
            self._check(condition.field)
        ordered = yield from self._matching(request.q)
        sets = yield from self._sets([each.condition for each in filters.filter_conditions])
        filtered = _Filtered(frozenset(ordered), sets)
        passing = filtered.excluding(None)
        fields, stats = yield from self._counts(request, filtered)
        queries = yield from self._queries(filters.facet_queries, passing)
        hits = yield from self._sorted(ordered, passing, request.sortby)
        page = [self._entries[number].record for number in hits[request.start : request.start + request.limit]]
        unknown = tuple(self._unknown(filters.filter_conditions))
        return ListSearchResult(page, len(hits), {"fields": fields, "queries": queries}, stats, unknown)

    def _matching(self, q: str) -> Slices[list[int]]:
        """Return the numbers of the objects that match a text, best first: its own name before an alias; the whole
        name, then its beginning, then a word inside."""
        text = " ".join(q.casefold().split())
        best = text.strip("* ")
        if not best:
            return list(range(len(self._entries)))
        if wildcards.ANY in text:
            matching = yield from self._words.like(text)
        else:
            # A text of punctuation has no word; without this it would match every object.
            matching = (yield from self._words.beginning(text)) if WORD.search(text) else frozenset()
        inside = yield from self._own_words.beginning(best)
        ranked: tuple[list[int], ...] = ([], [], [], [])
        for batch in slices.sliced(self._by_name):
            for number in filter(matching.__contains__, batch):
                name = self._entries[number].names[0]
                # By the current name; an alias matches, but comes last.
                rank = 0 if name == best else 1 if name.startswith(best) else 2 if number in inside else 3
                ranked[rank].append(number)
            yield
        return list(chain.from_iterable(ranked))

    def _sets(self, conditions: Iterable[Condition]) -> Slices[list[tuple[str, Set[int]]]]:
        """Return the field of each condition with the objects that meet it."""
        sets = []
        for each in conditions:
            passing = yield from self._column(each.field).passing(self._with_current_uids(each))
            sets.append((each.field, passing))
        return sets

    def _counts(
        self, request: model.SearchRequest, filtered: "_Filtered"
    ) -> Slices[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the facets and the stats."""
        fields, stats = {}, {}
        for facet in request.facets:
            if facet.include:
                objects = filtered.excluding(facet.field if facet.exclude_filter else None)
                fields[facet.field] = self._column(facet.field).facet(facet, objects)
                yield
        for name, exclude_filter in request.stats:
            stats[name] = self._column(name).stats(name, filtered.excluding(name if exclude_filter else None))
            yield
        return fields, stats

    def _queries(self, counted: dict[str, list[Condition]], passing: Set[int]) -> Slices[dict[str, dict[str, int]]]:
        """Return the counts of facet queries."""
        counts = {}
        for text, conditions in counted.items():
            sets = yield from self._sets(conditions)
            counts[text] = {"count": len(_Filtered(passing, sets).excluding(None))}
        return counts

    def _sorted(self, ordered: list[int], passing: Set[int], sortby: str) -> Slices[list[int]]:
        """Return the passing objects, sorted by one or several fields, missing values last; `score desc` keeps the
        order of the matches."""
        hits = list(filter(passing.__contains__, ordered))
        for field, direction in reversed(_orders(sortby)):  # stable sorts, the least significant key first
            if field != "score":
                hits = self._column(field).ordered(hits, direction == "desc")
                yield
            elif direction == "asc":
                hits.reverse()
        return hits

    def _unknown(self, filters: Iterable[search_support.FilterCondition]) -> Iterator[str]:
        """Yield filter values for uid fields that are not the uid of any object."""
        for each in filters:
            if each.condition.field in UIDS:
                yield from (
                    each.named(value)
                    for value in each.condition.values
                    if value not in self._by_uid and wildcards.ANY not in value
                )

    def _with_current_uids(self, condition: Condition) -> Condition:
        """Return the condition with old uids replaced by the current ones, which the indexed values are."""
        if condition.field not in UIDS:
            return condition
        return condition._replace(values=tuple(map(self._current_uid, condition.values)))

    def _current_uid(self, uid: str) -> str:
        entry = self._by_uid.get(uid)
        return uid if entry is None else str(entry.v3["uid"])

    def _column(self, field: str) -> Column:
        """Return the index of a field; an empty one if the list is empty."""
        return self._columns[field] if self._entries else Column([])

    def _check(self, field: str) -> None:
        if self._entries:
            list_index.check_field(field, self._entries[0].v3)


def _entries(
    records: list[Any], to_v3: Callable[[Any], dict[str, Any]], accepted: Callable[[str, str], list[str]]
) -> Iterator[ListEntry]:
    for record in records:
        try:
            v3 = to_v3(record)
            yield ListEntry(record, v3, _names(v3, record), accepted(record.id, record.name))
        except (ValueError, OverflowError):  # an invalid id or time
            # Skipped and counted: one bad record must not take the whole list from all clients.
            continue


def _ids(entries: list[ListEntry]) -> dict[str, tuple[str, ...]]:
    ids: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for entry in entries:
        for name in {entry.v3["name"], entry.record.name}:
            ids[name] += (entry.record.id,)
    return dict(ids)


def _names(v3: dict[str, Any], record: Any) -> tuple[str, ...]:
    names = (v3["name"], record.name, *getattr(record, "aliases", ()))
    return tuple(dict.fromkeys(name.casefold() for name in names))


class _Filtered(NamedTuple):
    """Objects that match the text, and for each condition its field and the objects that meet it."""

    matching: Set[int]
    sets: list[tuple[str, Set[int]]]

    def excluding(self, field: str | None) -> Set[int]:
        """Return the objects that meet all conditions except those on a field."""
        passing = self.matching
        for name, numbers in self.sets:
            if name != field:
                passing &= numbers
        return passing


def _orders(sortby: str) -> list[tuple[str, str]]:
    return [lucene.order(text) for text in sortby.split(",") if text.strip()]


def _fields(request: model.SearchRequest) -> list[str]:
    """Return the fields to sort and count by."""
    ordered = [field for field, _ in _orders(request.sortby) if field != "score"]
    return [*ordered, *(facet.field for facet in request.facets if facet.include), *(name for name, _ in request.stats)]
