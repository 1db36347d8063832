"""Hits of a search: all of them counted, sorted only as far as a page needs.

Parts are numbered by row, most offered first and then by id; hits that nothing else distinguishes are in that order.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from proxy.sandbox.catalog import columns

# Up to this many hits are sorted completely: selecting the best ones first would cost more.
_FULL_SORT = 4096


class SearchHits:
    """All hits, best first. `rows` are the rows of the parts, ascending; `keys` their sort keys, lowest first, if any.
    `akas` are the rows of the parts that matched by an alternate MPN; `aka_of` gives that MPN for a part id."""

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
        """The number of hits."""
        return len(self.rows)

    def page(self, start: int, limit: int) -> tuple[str, ...]:
        """Up to `limit` ids, from index `start` on."""
        return tuple(map(str, self._ids[self._best(start + limit)[start : start + limit]].tolist()))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all hits."""
        return self.page(0, self.hits)

    def intersect(self, rows: columns.Array) -> "SearchHits":
        """The hits that are also in `rows`, in the same order."""
        inside = np.isin(self.rows, rows)
        keys = None if self._keys is None else self._keys[inside]
        common = SearchHits(self.rows[inside], self._ids, keys, None, self._aka_of)
        common._akas = self._akas
        return common

    @property
    def aka(self) -> dict[str, str]:
        """The matched alternate MPN by part id, for the parts that matched by one."""
        return {id_: self._aka_of(id_) for id_ in (self.ids if self._akas else ()) if id_ in self._akas}

    def aka_of(self, id_: str) -> str | None:
        """The alternate MPN by which this part matched; None if it matched otherwise."""
        return self._aka_of(id_) if id_ in self._akas else None

    def _best(self, count: int) -> columns.Array:
        if len(self._first) < min(count, self.hits):
            order = slice(0, count) if self._keys is None else lowest(self._keys, count)
            self._first = self.rows[order]
        return self._first


def lowest(keys: columns.Array, count: int) -> columns.Array:
    """The indices of the `count` lowest keys, in order; equal ones keep their order."""
    if len(keys) <= max(count, _FULL_SORT):
        return np.argsort(keys, kind="stable")[:count]
    last = np.partition(keys, count - 1)[count - 1]
    below = np.flatnonzero(keys < last)
    chosen = np.concatenate((below, np.flatnonzero(keys == last)[: count - len(below)]))
    return chosen[np.argsort(keys[chosen], kind="stable")]
