"""The catalog as disturbances show it to a request: with missing and duplicate parts."""

import dataclasses
import re
from collections.abc import Iterable
from typing import NamedTuple

from nexar_sandbox.catalog import records, store
from nexar_sandbox.legacy_v3 import disturbances

_TWIN = "0dd7e4"
_UID = re.compile(r"[0-9a-f]{16}")
# A manufacturer that is unknown to the GraphQL service.
_MAKER = records.Company(
    id="999999",
    name="Bygone Semiconductor",
    display_flag="US",
    slug="/manufacturers/bygone-semiconductor",
    roles=frozenset({"manufacturer"}),
)


class PartCopy(NamedTuple):
    """A part of the catalog by id, or its duplicate."""

    id: str
    is_twin: bool = False


class DisturbedCatalog:
    def __init__(self, catalog: store.Catalog, draws: disturbances.RequestDisturbances) -> None:
        self._catalog, self._draws = catalog, draws

    def copies(self, ids: Iterable[str]) -> list[PartCopy]:
        """Existing copies of these parts; a duplicate follows its part."""
        if not self.differs:
            return [PartCopy(id_) for id_ in ids]
        return [copy for id_ in ids for copy in self._copies(id_)]

    @property
    def differs(self) -> bool:
        """True if parts may be missing or duplicated."""
        return self._draws.moves_parts

    def page(self, hits: records.SearchHits, start: int, limit: int) -> list[PartCopy]:
        if not self.differs:
            return self.copies(hits.page(start, limit))
        return self.copies(hits.ids)[start : start + limit]

    def count(self, hits: records.SearchHits) -> int:
        return len(self.copies(hits.ids)) if self.differs else hits.hits

    def part(self, copy: PartCopy) -> records.Part:
        """Return the part itself. KeyError for an id that is not the catalog's."""
        part = self._catalog.part(copy.id)
        if part is None:
            raise KeyError(copy.id)
        return _twin(part) if copy.is_twin else part

    def by_uid(self, uid: str) -> records.Part | None:
        """Return the part of a uid or of one merged into it; None if there is none."""
        if not _UID.fullmatch(uid):
            return None
        if uid.startswith(_TWIN):
            part = self._catalog.part(str(int(uid[len(_TWIN) :], 16)))
            return _twin(part) if part and self._draws.doubles(part.id) and not self._draws.lacks(part.id) else None
        part = self._catalog.part_by_uid(uid)
        return None if part is None or self._draws.lacks(part.id) else part

    def _copies(self, id_: str) -> Iterable[PartCopy]:
        if not self._draws.lacks(id_):
            yield PartCopy(id_)
            if self._draws.doubles(id_):
                yield PartCopy(id_, is_twin=True)


def _twin(part: records.Part) -> records.Part:
    """Return a copy of the part by another manufacturer."""
    uid = f"{_TWIN}{int(part.id):010x}"
    return dataclasses.replace(part, v3uid=uid, manufacturer=_MAKER, redirected_uids=())
