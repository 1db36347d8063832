"""Brands, sellers and categories, searched here: the service lists them whole and free of charge, but has no search.

A listing is built once from the service's records and never changes; the directory replaces it when it gets old.
Words match from their beginning, aliases count too, `*` stands for anything (contract v3-rest.md §1.1).
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from proxy import model
from proxy.planning import counting, lucene, support, wildcards
from proxy.planning.lucene import Condition

WORD = re.compile(r"\w+")
UIDS = frozenset({"uid", "parent_uid", "ancestor_uids", "children_uids"})  # fields whose values are objects of the list


class Entry(NamedTuple):
    """One object: the service's record, all of its v3 fields, its names in lower case, v3's first, and all uids that
    lead to it."""

    record: Any
    v3: dict[str, Any]
    names: tuple[str, ...]
    uids: list[str]


class Listed(NamedTuple):
    """The outcome of a search: records of the page, all hits, and v3's counts. `unknown` are filters by a uid that no
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
        """Records that cannot be translated are left out, `skipped` of them. Raises ValueError where all are.

        `accepted` are the uids that lead to a numeric id and name: those of earlier years, and the one that was given
        out while no other was known. `ids` are the service's ids by name, v3's and its own, to the letter.
        """
        self._entries = list(_entries(records, to_v3, accepted))
        self.skipped = len(records) - len(self._entries)
        if records and not self._entries:
            raise ValueError("no record can be translated")
        self._by_uid = {uid: entry for entry in self._entries for uid in entry.uids}
        self._by_uid |= {entry.v3["uid"]: entry for entry in self._entries}
        self.ids = _ids(self._entries)
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for number, entry in enumerate(self._entries):
            for name in entry.names:
                for word in WORD.findall(name):
                    self._by_word[word].add(number)
        self._words = sorted(self._by_word)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Any | None:
        """The record of a uid; None where there is none."""
        entry = self._by_uid.get(uid)
        return entry.record if entry else None

    def search(self, request: model.SearchRequest) -> Listed:
        """A page of matches with v3's counts. Raises BadRequest for fields that the objects do not have. They have no
        specs: a spec_drilldown finds none."""
        for field in _fields(request):
            self._check(field)
        found = self._matching(request.q)
        filters = support.filters(request)
        conditions = self._of_today(each.condition for each in filters)
        hits = _sorted(self._passing(found, conditions), request.sortby)
        page = hits[request.start : request.start + request.limit]

        def without(field: str) -> list[dict[str, Any]]:
            others = [condition for condition in conditions if condition.field != field]
            return [entry.v3 for entry in self._passing(found, others)]

        objects = [entry.v3 for entry in hits]
        fields = {
            facet.field: counting.facet(facet, without(facet.field) if facet.exclude_filter else objects)
            for facet in request.facets
            if facet.include
        }
        queries = {text: {"count": len(self._passing(hits, self._queried(text)))} for text in request.facet_queries}
        stats = {name: counting.stats(name, without(name) if apart else objects) for name, apart in request.stats}
        unknown = tuple(self._unknown(filters))
        return Listed(
            [entry.record for entry in page], len(hits), {"fields": fields, "queries": queries}, stats, unknown
        )

    def _matching(self, q: str) -> list[Entry]:
        """What a text finds, best first."""
        text = " ".join(q.casefold().split())
        if not text.strip("* "):
            return self._entries
        if wildcards.ANY in text:
            like = wildcards.matcher(text)
            found = [entry for entry in self._entries if any(_like(like, name) for name in entry.names)]
        else:
            found = self._with_words(WORD.findall(text))
        best = text.strip("* ")
        return sorted(found, key=lambda entry: (_rank(entry, best), entry.names[0]))

    def _with_words(self, words: list[str]) -> list[Entry]:
        """Entries that have a word beginning with each of these."""
        if not words:
            return []
        numbers = set.intersection(*(self._beginning(word) for word in words))
        return [self._entries[number] for number in numbers]

    def _beginning(self, start: str) -> set[int]:
        first = bisect_left(self._words, start)
        words = takewhile(lambda word: word.startswith(start), (self._words[n] for n in range(first, len(self._words))))
        return set().union(*(self._by_word[word] for word in words))

    def _passing(self, entries: list[Entry], conditions: list[Condition]) -> list[Entry]:
        if not conditions:
            return entries
        for condition in conditions:
            self._check(condition.field)
        return [entry for entry in entries if all(counting.passes(each, entry.v3) for each in conditions)]

    def _unknown(self, filters: Iterable[support.Filter]) -> Iterator[str]:
        """Values that are to be uids and that no object has."""
        for each in filters:
            if each.condition.field in UIDS:
                yield from (
                    each.named(value)
                    for value in each.condition.values
                    if value not in self._by_uid and wildcards.ANY not in value
                )

    def _of_today(self, conditions: Iterable[Condition]) -> list[Condition]:
        """The conditions with the uids that are sent in place of older ones."""
        return [
            each._replace(values=tuple(map(self._sent, each.values))) if each.field in UIDS else each
            for each in conditions
        ]

    def _queried(self, text: str) -> list[Condition]:
        return self._of_today(lucene.conditions(text))

    def _sent(self, uid: str) -> str:
        entry = self._by_uid.get(uid)
        return uid if entry is None else str(entry.v3["uid"])

    def _check(self, field: str) -> None:
        if self._entries:
            counting.check_field(field, self._entries[0].v3)


def _entries(
    records: list[Any], to_v3: Callable[[Any], dict[str, Any]], accepted: Callable[[str, str], list[str]]
) -> Iterator[Entry]:
    for record in records:
        try:
            v3 = to_v3(record)
            yield Entry(record, v3, _names(v3, record), accepted(record.id, record.name))
        except (ValueError, OverflowError):  # an id or a time that is none
            continue


def _ids(entries: list[Entry]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        for name in {entry.v3["name"], entry.record.name}:
            found[name] = (*found.get(name, ()), entry.record.id)
    return found


def _names(v3: dict[str, Any], record: Any) -> tuple[str, ...]:
    names = (v3["name"], record.name, *getattr(record, "aliases", ()))
    return tuple(dict.fromkeys(name.casefold() for name in names))


def _rank(entry: Entry, text: str) -> int:
    """Its own name before an alias; whole, from the beginning, or somewhere inside."""
    name = entry.names[0]
    if name == text:
        return 0
    if name.startswith(text):
        return 1
    words = WORD.findall(name)
    inside = all(any(word.startswith(start) for word in words) for start in WORD.findall(text))
    return 2 if inside else 3


def _like(like: Callable[[str], bool], name: str) -> bool:
    return like(name) or any(map(like, WORD.findall(name)))


def _sorted(entries: list[Entry], sortby: str) -> list[Entry]:
    """By one field or several, what has none last; `score desc` is the order of the matches."""
    for field, direction in reversed(_orders(sortby)):
        if field == "score":
            entries = entries if direction == "desc" else entries[::-1]
            continue
        with_one = [entry for entry in entries if entry.v3.get(field) is not None]
        without = [entry for entry in entries if entry.v3.get(field) is None]
        with_one.sort(key=lambda entry: counting.sort_key(entry.v3[field]), reverse=direction == "desc")
        entries = with_one + without
    return entries


def _orders(sortby: str) -> list[tuple[str, str]]:
    return [lucene.order(text) for text in sortby.split(",") if text.strip()]


def _fields(request: model.SearchRequest) -> list[str]:
    """The fields to sort and count by."""
    ordered = [field for field, _ in _orders(request.sortby) if field != "score"]
    return [*ordered, *(facet.field for facet in request.facets if facet.include), *(name for name, _ in request.stats)]
