"""Searchable lists of brands, sellers and categories: the upstream returns them whole and free of charge, unsearched.

A listing is built once from the service's records and never changes; the directory replaces it when it gets old. It may
be searched in another thread: a search goes through tens of thousands of objects. Words match from their beginning,
aliases count too, `*` stands for anything (contract v3-rest.md §1.1).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain
from typing import Any, NamedTuple

from proxy import errors, model
from proxy.mapping.uids import Uids
from proxy.planning import list_index, lucene
from proxy.planning.list_index import WORD, WordIndex
from proxy.planning.lucene import Condition
from proxy.planning.search_support import FilterCondition, RequestFilters

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

    def __init__(self, records: list[Any], to_v3: Callable[[Any], dict[str, Any]], table: Uids) -> None:
        """Build from upstream records. Those that cannot be translated are skipped and counted in `skipped`. Raises
        ValueError if none can be.

        `table` has the names and uids on record. `ids` are the upstream ids by exact name: v3's, upstream's and those
        on record.
        """
        self._entries = list(_entries(records, to_v3, table))
        self.records = [entry.record for entry in self._entries]
        self.skipped = len(records) - len(self.records)
        if records and not self._entries:
            raise ValueError("no record can be translated")
        self._by_uid = {uid: entry for entry in self._entries for uid in entry.uids}
        # Last, so that a current uid wins over an old one of another object.
        self._by_uid |= {entry.v3["uid"]: entry for entry in self._entries}
        self.ids: dict[str, tuple[str, ...]] = defaultdict(tuple)
        shown = {uid: (str(entry.v3["uid"]),) for uid, entry in self._by_uid.items()}
        self._shown: dict[str, tuple[str, ...]] = defaultdict(tuple, shown)
        for entry in self._entries:
            for name in {entry.v3["name"], entry.record.name, *table.names(entry.record.id, entry.record.name)}:
                self.ids[name] += (entry.record.id,)
                self._shown[name] += (entry.v3["name"],)
        names = [entry.names for entry in self._entries]
        self._words, self._own_words = WordIndex(names), WordIndex([object_names[:1] for object_names in names])
        self._by_name = sorted(range(len(names)), key=lambda number: names[number][0])

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Any | None:
        """Return the record of a uid; None if it is unknown."""
        entry = self._by_uid.get(uid)
        return entry.record if entry else None

    def search(self, request: model.SearchRequest, filters: RequestFilters) -> ListSearchResult:
        """Return a page of matches with v3's counts. Raises BadRequest for unknown fields. The objects have no specs: a
        spec_drilldown finds none."""
        ordered_by = [field for field, _ in _orders(request.sortby) if field != "score"]
        faceted = [each.field for each in request.facets if each.include]
        self._check([*ordered_by, *faceted, *dict(request.stats), *(each.field for each in filters.conditions)])
        ordered = self._matching(request.q)
        sets = self._sets(ordered, [each.condition for each in filters.filter_conditions])
        passing = _passing(ordered, sets, None)
        fields = {
            facet.field: list_index.facet(
                facet, self._values(facet.field, _passing(ordered, sets, facet.exclude_filter and facet.field))
            )
            for facet in request.facets
            if facet.include
        }
        stats = {
            name: list_index.stats(name, self._values(name, _passing(ordered, sets, exclude_filter and name)))
            for name, exclude_filter in request.stats
        }
        queries = {
            text: {"count": len(_passing(passing, self._sets(passing, conditions), None))}
            for text, conditions in filters.facet_queries.items()
        }
        hits = self._sorted(passing, request.sortby)
        page = [self._entries[number].record for number in hits[request.start : request.start + request.limit]]
        unknown = tuple(self._unknown(filters.filter_conditions))
        return ListSearchResult(page, len(hits), {"fields": fields, "queries": queries}, stats, unknown)

    def _matching(self, q: str) -> list[int]:
        """Return the numbers of the objects that match a text, best first: its own name before an alias; the whole
        name, then its beginning, then a word inside."""
        text = " ".join(q.casefold().split())
        best = text.strip("* ")
        if not best:
            return list(range(len(self._entries)))
        if lucene.ANY in text:
            matching = self._words.like(text)
        else:
            # A text of punctuation has no word; without this it would match every object.
            matching = self._words.beginning(text) if WORD.search(text) else frozenset()
        inside = self._own_words.beginning(best)

        def rank(number: int) -> int:
            name = self._entries[number].names[0]
            # By the current name; an alias matches, but comes last.
            return 0 if name == best else 1 if name.startswith(best) else 2 if number in inside else 3

        return sorted(filter(matching.__contains__, self._by_name), key=rank)

    def _sets(self, numbers: list[int], conditions: Iterable[Condition]) -> list[tuple[str, Set[int]]]:
        """Return the field of each condition with the objects that meet it; of a list one element must."""
        sets: list[tuple[str, Set[int]]] = []
        for each in conditions:
            meets = list_index.meeting(self._as_shown(each))
            values = zip(numbers, self._values(each.field, numbers), strict=True)
            sets.append((each.field, {number for number, value in values if any(map(meets, list_index.listed(value)))}))
        return sets

    def _values(self, field: str, numbers: list[int]) -> list[Any]:
        return [self._entries[number].v3[field] for number in numbers]

    def _sorted(self, numbers: list[int], sortby: str) -> list[int]:
        """Return objects sorted by one or several fields, missing values last; `score desc` keeps the order of the
        matches."""
        for field, direction in reversed(_orders(sortby)):  # stable sorts, the least significant key first
            if field != "score":
                keys = {
                    number: list_index.sort_key(value)
                    for number, value in zip(numbers, self._values(field, numbers), strict=True)
                    if value is not None
                }
                having = sorted(filter(keys.__contains__, numbers), key=keys.__getitem__, reverse=direction == "desc")
                numbers = [*having, *(number for number in numbers if number not in keys)]
            elif direction == "asc":
                numbers = numbers[::-1]
        return numbers

    def _unknown(self, filters: Iterable[FilterCondition]) -> Iterator[str]:
        """Yield filter values for uid fields that are not the uid of any object."""
        for each in filters:
            if each.condition.field in UIDS:
                values = (value for value in each.condition.values if lucene.ANY not in value)
                yield from (each.named(value) for value in values if value not in self._by_uid)

    def _as_shown(self, condition: Condition) -> Condition:
        """Return the condition with old uids and names replaced by the current ones, which the values are."""
        if condition.field not in UIDS | {"name"}:
            return condition
        shown = (self._shown.get(value, (value,)) for value in condition.values)
        return condition._replace(values=tuple(chain.from_iterable(shown)))

    def _check(self, fields: Iterable[str]) -> None:
        """Raise BadRequest for a field that the objects do not have, listing those they have."""
        known = [name for name in self._entries[0].v3 if name != "__class__"] if self._entries else [*fields]
        for field in fields:
            if field not in known:
                raise errors.BadRequest(f"there is no field {field[:60]!r}; there are {', '.join(known)}")


def _entries(records: list[Any], to_v3: Callable[[Any], dict[str, Any]], table: Uids) -> Iterator[ListEntry]:
    for record in records:
        try:
            v3 = to_v3(record)
            on_record = table.names(record.id, record.name)
            names = (v3["name"], record.name, *getattr(record, "aliases", ()), *on_record)
            folded = tuple(dict.fromkeys(name.casefold() for name in names))
            yield ListEntry(record, v3, folded, table.accepted(record.id, record.name))
        except (ValueError, OverflowError):  # an invalid id or time
            # Skipped and counted: one bad record must not take the whole list from all clients.
            continue


def _passing(numbers: list[int], sets: Iterable[tuple[str, Set[int]]], excluded: str | bool | None) -> list[int]:
    """Return the objects that meet all conditions except those on a field."""
    for name, passing in sets:
        if name != excluded:
            numbers = [number for number in numbers if number in passing]
    return numbers


def _orders(sortby: str) -> list[tuple[str, str]]:
    return [lucene.order(text) for text in sortby.split(",") if text.strip()]
