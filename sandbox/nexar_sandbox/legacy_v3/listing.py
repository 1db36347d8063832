"""Lookup and search of brands, sellers and categories by name, alias and wildcard (contract v3-rest.md §1.1)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any

from nexar_sandbox.legacy_v3 import criteria, query_string, search_request

Object = dict[str, Any]
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object with its names in lower case, its own first. `also`: other names in filters."""

    object: Object
    names: tuple[str, ...]
    also: tuple[str, ...] = ()


class LegacyListing:
    def __init__(self, objects: Iterable[tuple[Object, Iterable[str], tuple[str, ...]]]) -> None:
        """Objects with their aliases and other names in filters."""
        self._all = [
            ListedObject(each, tuple(map(str.casefold, (each["name"], *aliases, *also))), also)
            for each, aliases, also in objects
        ]
        self._by_uid = {each.object["uid"]: each.object for each in self._all}

    def get(self, uid: str) -> Object | None:
        return self._by_uid.get(uid)

    def search(self, search: search_request.LegacySearch) -> search_request.SearchResult:
        matching = self._matching(search.q)
        filters_ = search.criteria
        objects = self._passing(matching, filters_)
        keys = [(None if field == "score" else self._value(field), downwards) for field, downwards in search.order]
        objects = search_request.ordered(objects, keys)

        def counted_objects(field: str, options: search_request.CountOptions) -> list[ListedObject]:
            if not options.exclude_filter:
                return objects
            return self._passing(matching, [each for each in filters_ if each.field != field])

        return search_request.SearchResult(
            [each.object for each in objects[search.start : search.start + search.limit]],
            len(objects),
            {
                field: self._facet(field, options, counted_objects(field, options))
                for field, options in search.facets.items()
                if options.include
            },
            {query: {"count": len(self._passing(objects, criteria.of_query(query)))} for query in search.facet_queries},
            {
                field: self._stats(field, counted_objects(field, options))
                for field, options in search.stats.items()
                if options.include
            },
        )

    def _matching(self, q: str) -> list[ListedObject]:
        """Best first: the name itself, its beginning, words of it, then those with an alias."""
        typed = " ".join(q.casefold().split())
        plain = typed.strip("* ")
        if not plain:
            return self._all
        fits = partial(_is_like, criteria.like(typed)) if "*" in typed else partial(_has_words, _WORD.findall(typed))
        matching = [each for each in self._all if fits(each.names)]
        return sorted(matching, key=lambda each: (_closeness(each.names[0], plain), each.names[0]))

    def _passing(self, objects: list[ListedObject], filters_: list[criteria.Criterion]) -> list[ListedObject]:
        for each in filters_:
            values = self._value(each.field)
            objects = [
                object_
                for object_ in objects
                if any(map(each.holds, search_request.several(values(object_))))
                or (each.field == "name" and any(map(each.holds, object_.also)))
            ]
        return objects

    def _value(self, field: str) -> Callable[[ListedObject], Any]:
        """Accessor of a field. Refuses unknown fields."""
        # All objects of a class have the same fields.
        if self._all and (field not in self._all[0].object or field.startswith("_")):
            raise query_string.bad_request(f"there is no field {field[:60]}")
        get = methodcaller("get", field)
        return lambda row: get(row.object)

    def _facet(self, field: str, options: search_request.CountOptions, over: list[ListedObject]) -> Object:
        values = [search_request.several(value) for value in map(self._value(field), over)]
        counts = Counter(each for some in values for each in some)
        return search_request.facet(search_request.by_frequency(counts), sum(not some for some in values), options)

    def _stats(self, field: str, over: list[ListedObject]) -> Object:
        values = [value for value in map(self._value(field), over) if value is not None]
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            raise query_string.bad_request(f"stats: {field[:60]} has no numbers")
        return search_request.stats(Counter(values), len(over) - len(values))


def _is_like(like: Callable[[str], bool], names: tuple[str, ...]) -> bool:
    """Return true if a name, or a word of one, is like the pattern."""
    return any(like(text) for name in names for text in (name, *_WORD.findall(name)))


def _has_words(typed: list[str], names: tuple[str, ...]) -> bool:
    """Every word that was typed begins a word of some name."""
    words = [word for name in names for word in _WORD.findall(name)]
    return bool(typed) and all(any(word.startswith(start) for word in words) for start in typed)


def _closeness(name: str, typed: str) -> int:
    if name == typed:
        return 0
    if name.startswith(typed):
        return 1
    return 2 if _has_words(_WORD.findall(typed), (name,)) else 3
