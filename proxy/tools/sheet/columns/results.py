"""Results of the queries of a table, packed until the file is written: a BOM of 10 000 lines has 100 000 offers.

What looks like a distributor's number, and is not found as part number, is looked up as SKU. A query that finds nothing
costs nothing, so that such a line costs one part at most, too.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from proxy.tools.sheet.parts import Part, PartQuery, PartResult

# Digi-Key, Mouser, LCSC and Newark number in forms of their own; those of others may be anybody's numbers.
_DISTRIBUTOR_NUMBER = re.compile(r".+-ND|\d{2,3}-(?=.*[A-Z])\S{3,}|C\d{3,9}|\d{2}[A-Z]\d{4}", re.IGNORECASE)
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Part)


class ColumnResult(NamedTuple):
    """Result of a query; its part is packed. `as_sku`: the part number is a distributor's number;
    `offers`: how many it has."""

    result: PartResult
    packed: bytes | None
    as_sku: bool = False
    offers: int = 0

    @property
    def part(self) -> Part | None:
        """The part."""
        return None if self.packed is None else _DECODER.decode(self.packed)


class ColumnResults:
    """Results by query."""

    def __init__(self) -> None:
        self._results: dict[PartQuery, ColumnResult] = {}

    def add(self, result: PartResult) -> None:
        """Take one result."""
        packed = None if result.part is None else _ENCODER.encode(result.part)
        offers = 0 if result.part is None else len(result.part.offers)
        self._results[result.query] = ColumnResult(result._replace(part=None), packed, offers=offers)

    def get(self, query: PartQuery) -> ColumnResult | None:
        """Return the result of a query, or of its number as SKU; None as long as one of both is to be fetched."""
        found = self._results.get(query)
        if found is None or not _is_missing(found) or (other := as_sku(query)) is None:
            return found
        result = self._results.get(other)
        return result if result is None or _is_missing(result) else result._replace(as_sku=True)

    def missing(self, queries: Iterable[PartQuery]) -> Sequence[PartQuery]:
        """Return what these queries look up as SKU, and was not fetched yet."""
        missing = [as_sku(query) for query in queries if (found := self._results.get(query)) and _is_missing(found)]
        return [query for query in missing if query is not None and query not in self._results]


def as_sku(query: PartQuery) -> PartQuery | None:
    """Return the query for the same number as SKU; None if it does not look like one."""
    if query.sources or not _DISTRIBUTOR_NUMBER.fullmatch(query.mpn):
        return None
    return PartQuery("", "", query.mpn, query.currency)


def _is_missing(found: ColumnResult) -> bool:
    return found.packed is None and found.result.error is None
