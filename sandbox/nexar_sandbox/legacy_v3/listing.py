"""Lookup and search of brands, sellers and categories by name, alias and wildcard (contract v3-rest.md §1.1)."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nexar_sandbox.legacy_v3 import criteria, query_string, search_request, searching

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

    def search(self, request: search_request.LegacySearch) -> searching.SearchResult:
        result = searching.ObjectSearch(request, self._matching(request.q), self._field).result()
        return replace(result, page=[each.object for each in result.page])

    def _matching(self, q: str) -> list[ListedObject]:
        """Best first: the name itself, its beginning, words of it, then those with an alias."""
        typed = " ".join(q.casefold().split())
        plain = typed.strip("* ")
        if not plain:
            return self._all
        fits = partial(_is_like, criteria.like(typed)) if "*" in typed else partial(_has_words, _WORD.findall(typed))
        matching = [each for each in self._all if fits(each.names)]
        return sorted(matching, key=lambda each: (_closeness(each.names[0], plain), each.names[0]))

    def _field(self, name: str) -> searching.SearchField:
        # All objects of a class have the same fields.
        if self._all and (name not in self._all[0].object or name.startswith("_")):
            raise query_string.bad_request(f"there is no field {name[:60]}")
        return searching.SearchField(partial(_values, name), lambda each: each.also if name == "name" else ())


def _values(name: str, each: ListedObject) -> list[Any]:
    value = each.object.get(name)
    return value if isinstance(value, list) else [] if value is None else [value]


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
