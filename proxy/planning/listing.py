"""Searchable lists of brands, sellers and categories: the upstream returns them whole and free of charge, unsearched
and uncounted.

A listing is built once from the service's records and never changes; the directory replaces it when it gets old. It may
be searched in another thread: a search goes through tens of thousands of objects. Words match from their beginning,
aliases count too, `*` stands for anything (contract v3-rest.md §1.1, §3.6).
"""

import re
import statistics
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

from proxy import errors, model
from proxy.mapping.transforms import Uids
from proxy.planning import facets, lucene
from proxy.planning.lucene import Condition, RequestFilters

FRESH_SECONDS = 86_400.0  # for which a list is kept, before it is fetched again in the background
UIDS = frozenset({"uid", "parent_uid", "ancestor_uids", "children_uids"})  # fields whose values are objects of the list
WORD = re.compile(r"\w+")
LAST = "\U0010ffff"  # sorts behind every letter


class ListEntry(NamedTuple):
    """Object of a list: upstream record, v3 fields, names in lower case (v3's first), and all uids that refer to it."""

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

        `table` has the names and uids on record. `by_uid` are the objects, so many as `size`; `ids` the upstream ids by
        exact name: v3's, upstream's and those on record.
        """
        self._entries: list[ListEntry] = []
        self.ids: dict[str, tuple[str, ...]] = defaultdict(tuple)
        self._shown: dict[str, tuple[str, ...]] = defaultdict(tuple)
        for record in records:
            try:
                v3, (names, uids) = to_v3(record), table.on_record(record.id, record.name)
            except (ValueError, OverflowError):  # an invalid id or time
                # Skipped and counted: one bad record must not take the whole list from all clients.
                continue
            exact = dict.fromkeys((v3["name"], record.name, *names))
            folded = dict.fromkeys(name.casefold() for name in (*exact, *getattr(record, "aliases", ())))
            self._entries.append(ListEntry(record, v3, tuple(folded), uids))
            for name in exact:
                self.ids[name] += (record.id,)
                self._shown[name] += (v3["name"],)
        self.size = len(self._entries)
        self.skipped = len(records) - self.size
        if records and not self._entries:
            raise ValueError("no record can be translated")
        self.by_uid = {uid: entry for entry in self._entries for uid in entry.uids}
        # Last, so that a current uid wins over an old one of another object.
        self.by_uid |= {entry.v3["uid"]: entry for entry in self._entries}
        self._shown |= {uid: (str(entry.v3["uid"]),) for uid, entry in self.by_uid.items()}
        self._words = _WordIndex([entry.names for entry in self._entries])
        self._own_words = _WordIndex([entry.names[:1] for entry in self._entries])
        self._by_name = sorted(range(self.size), key=lambda number: self._entries[number].names[0])

    def search(self, request: model.SearchRequest, filters: RequestFilters) -> ListSearchResult:
        """Return a page of matches with v3's counts; there are no specs to drill down. Raises BadRequest."""
        orders = [lucene.order(text) for text in request.sortby.split(",") if text.strip()]
        included = [each for each in request.facets if each.include]
        known = [name for name in self._entries[0].v3 if name != "__class__"] if self._entries else []
        ordered_by = [field for field, _ in orders if field != "score"]
        named = [*ordered_by, *(each.field for each in included), *dict(request.stats)]
        for field in [*named, *(each.field for each in filters.conditions)] if self._entries else ():
            if field not in known:
                raise errors.BadRequest(f"there is no field {field[:60]!r}; there are {', '.join(known)}")
        ordered = self._matching(request.q)
        sets = self._sets(ordered, [each.condition for each in filters.filter_conditions])
        passing = _passing(ordered, sets)
        values: dict[tuple[str, bool], list[Any]] = {}
        for field, excluding in [*((each.field, each.exclude_filter) for each in included), *request.stats]:
            numbers = _passing(ordered, sets, field) if excluding else passing
            values[field, excluding] = [self._entries[number].v3[field] for number in numbers]
        fields = {each.field: _facet(each, values[each.field, each.exclude_filter]) for each in included}
        stats = {name: _stats(name, values[name, excluding]) for name, excluding in request.stats}
        queries = {
            text: {"count": len(_passing(passing, self._sets(passing, conditions)))}
            for text, conditions in filters.facet_queries.items()
        }
        hits = self._sorted(passing, orders)
        page = [self._entries[number].record for number in hits[request.start : request.start + request.limit]]
        unknown = tuple(
            f"{each.prefix}{value}"
            for each in filters.filter_conditions
            if each.condition.field in UIDS
            for value in each.condition.values
            if lucene.ANY not in value and value not in self.by_uid
        )
        return ListSearchResult(page, len(hits), {"fields": fields, "queries": queries}, stats, unknown)

    def _matching(self, q: str) -> list[int]:
        """Return the numbers of the objects that match a text, best first: its own name before an alias; the whole
        name, then its beginning, then a word inside."""
        text = " ".join(q.casefold().split())
        best = text.strip("* ")
        if not best:
            return list(range(self.size))
        matching, inside = self._words.matching(text), self._own_words.matching(best.replace(lucene.ANY, " "))
        ranked: list[list[int]] = [[], [], [], []]
        for number in self._by_name:
            if number in matching:
                name = self._entries[number].names[0]
                # By the current name; an alias matches, but comes last.
                rank = 0 if name == best else 1 if name.startswith(best) else 2 if number in inside else 3
                ranked[rank].append(number)
        return [*chain.from_iterable(ranked)]

    def _sets(self, numbers: list[int], conditions: Iterable[Condition]) -> list[tuple[str, Set[int]]]:
        """Return the field of each condition with the objects that meet it; of a list one element must."""
        sets: list[tuple[str, Set[int]]] = []
        for each in conditions:
            accepted = each.values
            if each.field in UIDS or each.field == "name":  # old uids and names: the values are the current ones
                accepted = tuple(chain.from_iterable(self._shown.get(value, (value,)) for value in accepted))
            values = ((number, value) for number in numbers for value in _listed(self._entries[number].v3[each.field]))
            if each.is_range:
                ends: Any = facets.as_number(each.low), facets.as_number(each.high)
                is_numeric = (each.low, each.high).count(None) == ends.count(None)  # no end is a text
                meeting = set[int]()
                for number, value in values:
                    compared: Any = facets.as_number(value) if is_numeric else None
                    low, high = ends
                    if compared is None:  # what is no number is compared as text
                        compared, low, high = _text(value), each.low, each.high
                    if (low is None or low <= compared) and (high is None or compared <= high):
                        meeting.add(number)
            else:
                plain = frozenset(value for value in accepted if lucene.ANY not in value)
                like = [lucene.matcher(value) for value in dict.fromkeys(accepted) if lucene.ANY in value]
                texts = ((number, _text(value)) for number, value in values)
                meeting = {number for number, text in texts if text in plain or any(matches(text) for matches in like)}
            sets.append((each.field, meeting))
        return sets

    def _sorted(self, numbers: list[int], orders: list[tuple[str, str]]) -> list[int]:
        """Return objects sorted by one or several fields, numbers by size and texts by the alphabet, missing values
        last; `score desc` keeps the order of the matches."""
        for field, direction in reversed(orders):  # stable sorts, the least significant key first
            if field != "score":
                values = ((number, self._entries[number].v3[field]) for number in numbers)
                keys = {
                    number: (0, value, "") if isinstance(value, int | float) else (1, 0.0, str(value).casefold())
                    for number, value in values
                    if value is not None
                }
                having = sorted(filter(keys.__contains__, numbers), key=keys.__getitem__, reverse=direction == "desc")
                numbers = [*having, *(number for number in numbers if number not in keys)]
            elif direction == "asc":
                numbers = numbers[::-1]
        return numbers


class _WordIndex:
    """Index of the words in names, by object number. An object can have several names, in lower case."""

    def __init__(self, names: Sequence[tuple[str, ...]]) -> None:
        self._holders: dict[str, set[int]] = defaultdict(set)  # of a word, or of a whole name
        words: set[str] = set()
        for number, object_names in enumerate(names):
            found = {*chain.from_iterable(map(WORD.findall, object_names))}
            words |= found
            for text in {*found, *object_names}:
                self._holders[text].add(number)
        self._words = sorted(words)

    def matching(self, text: str) -> Set[int]:
        """Return the numbers of all objects that have, for each word of a text, a word that begins with it; none for a
        text without words. A pattern matches a name, or a word in a name, as a whole."""
        if lucene.ANY in text:
            matches = lucene.matcher(text)
            return set(chain.from_iterable(numbers for name, numbers in self._holders.items() if matches(name)))
        beginning: list[set[int]] = []
        for start in WORD.findall(text):
            first, last = bisect_left(self._words, start), bisect_left(self._words, start + LAST)
            beginning.append({*chain.from_iterable(map(self._holders.__getitem__, self._words[first:last]))})
        return set.intersection(*beginning) if beginning else set()


def _passing(numbers: list[int], sets: Iterable[tuple[str, Set[int]]], excluded: str | None = None) -> list[int]:
    """Return the objects that meet all conditions except those on a field."""
    for name, passing in sets:
        if name != excluded:
            numbers = [number for number in numbers if number in passing]
    return numbers


def _facet(options: model.FacetField, values: Iterable[Any]) -> dict[str, Any]:
    """Return one entry of facet_results.fields, the most frequent value first, then in the order of texts."""
    each = [_listed(value) for value in values]
    counts = Counter(chain.from_iterable(each))
    distinct = sorted(sorted(counts, key=_text), key=counts.__getitem__, reverse=True)
    page = ((value, counts[value]) for value in distinct[options.start : options.start + options.limit])
    return facets.facet_entry(page, sum(not elements for elements in each))


def _stats(field: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return one entry of stats_results; null if no object has a number. Raises BadRequest for text values."""
    # bool is an int in Python.
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    # Values, but no number: a text field. Without any value at all the statistics are null.
    if not numbers and any(value is not None for value in values):
        raise errors.BadRequest(f"stats: {field} holds no numbers")
    return facets.NO_STATS | {
        "min": min(numbers, default=None),
        "max": max(numbers, default=None),
        "mean": statistics.fmean(numbers) if numbers else None,
        "stddev": statistics.stdev(numbers) if len(numbers) > 1 else None,
        "count": len(numbers),
        "missing": len(values) - len(numbers),
    }


def _listed(value: Any) -> list[Any]:
    """Return the values of an object's field as a list; nested objects as text."""
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    return [_text(each) if isinstance(each, dict | list) else each for each in values]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
