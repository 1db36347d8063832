"""The hits of a search: all of them counted, ordered as far as somebody looks.

Made by search.py, read by everybody. Parts are numbered by their place among all parts, most offered first and then by
id; hits that nothing else tells apart are in that order.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from proxy.sandbox.catalog import columns

# Fewer hits are sorted whole: looking for the best ones first costs more.
_FEW = 4096


class Ranked:
    """All hits, best first. `rows` are the numbers of the parts, ascending; `keys`, if there are any, what they are
    ordered by, lowest first. `akas` are the numbers of the parts that the query hit by an alternate MPN, `aka_of`
    names it by the part's id."""

    def __init__(
        self,
        rows: columns.Array,
        ids: columns.Array,
        keys: columns.Array | None = None,
        akas: columns.Array | None = None,
        aka_of: Callable[[str], str] = str,
    ) -> None:
        self.rows = rows
        self._ids, self._keys, self._aka_of = ids, keys, aka_of
        self._akas = frozenset() if akas is None else frozenset(map(str, ids[akas].tolist()))
        self._first: columns.Array = rows[:0]

    @property
    def hits(self) -> int:
        """How many."""
        return len(self.rows)

    def page(self, start: int, limit: int) -> tuple[str, ...]:
        """The ids from place `start` on, `limit` of them."""
        return tuple(map(str, self._ids[self._best(start + limit)[start : start + limit]].tolist()))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all."""
        return self.page(0, self.hits)

    def within(self, rows: columns.Array) -> "Ranked":
        """Those of the hits that are among some parts, in the same order."""
        inside = np.isin(self.rows, rows)
        keys = None if self._keys is None else self._keys[inside]
        found = Ranked(self.rows[inside], self._ids, keys, None, self._aka_of)
        found._akas = self._akas
        return found

    @property
    def aka(self) -> dict[str, str]:
        """The alternate MPN of each part of which the query hit that one."""
        return {id_: self._aka_of(id_) for id_ in (self.ids if self._akas else ()) if id_ in self._akas}

    def aka_of(self, id_: str) -> str | None:
        """The alternate MPN by which the query hit this part; None where it was not by one."""
        return self._aka_of(id_) if id_ in self._akas else None

    def _best(self, count: int) -> columns.Array:
        if len(self._first) < min(count, self.hits):
            order = slice(0, count) if self._keys is None else lowest(self._keys, count)
            self._first = self.rows[order]
        return self._first


def lowest(keys: columns.Array, count: int) -> columns.Array:
    """The places of the lowest keys in their order; equal ones as they come."""
    if len(keys) <= max(count, _FEW):
        return np.argsort(keys, kind="stable")[:count]
    last = np.partition(keys, count - 1)[count - 1]
    below = np.flatnonzero(keys < last)
    chosen = np.concatenate((below, np.flatnonzero(keys == last)[: count - len(below)]))
    return chosen[np.argsort(keys[chosen], kind="stable")]
