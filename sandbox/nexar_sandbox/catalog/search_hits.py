"""Hits of a search."""

from collections.abc import Collection, Mapping, Sequence


class SearchHits:
    """All hits, best first: `parts` are the numbers of their ids, `akas` the alternate MPNs of those that matched by
    one."""

    def __init__(self, parts: Sequence[int], akas: Mapping[int, str] | None = None) -> None:
        self.parts = parts
        self._akas = akas or {}

    @property
    def hits(self) -> int:
        return len(self.parts)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(map(str, self.parts))

    def page(self, start: int, limit: int) -> tuple[str, ...]:
        return tuple(map(str, self.parts[start : start + limit]))

    def intersect(self, parts: Collection[int]) -> "SearchHits":
        inside = frozenset(parts)
        return SearchHits([part for part in self.parts if part in inside], self._akas)

    @property
    def aka(self) -> dict[str, str]:
        """The matched alternate MPN by part id, for the parts that matched by one."""
        return {str(part): self._akas[part] for part in self.parts if part in self._akas}

    def aka_of(self, id_: str) -> str | None:
        """The alternate MPN by which this part matched; None if it matched otherwise."""
        return self._akas.get(int(id_))
