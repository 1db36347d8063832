"""Queries of spreadsheets as queries of the core, and what its answers say. Pure.

The fields of a part are those of mappings/sheet. Whole parts have all of them but similar parts, for which a number is
an operation of its own.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from proxy.gateway.core import Answer
from proxy.mapping.compiler import CompiledObject
from proxy.mapping.loader import VIEWS
from proxy.model import PARTS_MAX, MappingContext, Projection
from proxy.planning import documents, queries
from proxy.planning.operations import PartialData
from proxy.planning.projection_cache import ProjectionCache
from proxy.tools.sheet.parts import Part, PartOfSource, PartQuery, PartResult

VIEW = VIEWS["sheet"]
SIMILAR = Projection(
    show=frozenset({("mpn",), ("manufacturer",), ("similar",)}), features=frozenset({"SIMILAR_PARTS"}), view=VIEW
)

_decode_part = msgspec.json.Decoder(Part).decode
_decode_source = msgspec.json.Decoder(PartOfSource).decode


class _Match(msgspec.Struct):
    """Result of a number that is looked up with its similar parts."""

    hits: int
    error: str | None
    parts: list[msgspec.Raw]


class PartQueries:
    """Queries of the core, and results of spreadsheets from its answers, for an application with some features."""

    def __init__(self, projections: ProjectionCache, features: frozenset[str]) -> None:
        self._projections = projections
        self._has_similar = SIMILAR.features <= features
        self._similar = documents.multi_match(projections.part(SIMILAR).selection)

    def query(self, query: PartQuery, country: str) -> queries.Query:
        """Return the query of the core for parts in a country."""
        of_core = queries.matching(
            0, query.parts_max, mpn=query.mpn, sku=query.sku, manufacturer=query.manufacturer or None
        )
        if not (query.similar and self._has_similar):
            return of_core
        asked = {**of_core.criteria, "start": 0, "limit": query.parts_max}
        variables = {"queries": [asked], "country": country, "currency": query.currency}
        operation = self._similar.operation(variables, query.parts_max)
        passed_on = queries.PassedOn(operation, _read_similar)
        return queries.document(hashlib.sha256(operation.payload).hexdigest(), passed_on)

    def operations(self, some: Sequence[PartQuery], country: str) -> int:
        """Return how many operations fetch parts in a country, with prices in one currency."""
        return sum(1 for _ in queries.grouped([self.query(each, country) for each in some], PARTS_MAX))

    def result(self, query: PartQuery, answer: Answer, country: str, now: float) -> PartResult:
        """Return the result of a query; `now` is the time of one that was not fetched."""
        result = answer.result
        if result is None:
            return PartResult(query, None, 0, str(answer.error), now)
        hits, error, bodies = result.hits, None, result.bodies
        projection = Projection(features=answer.features, view=VIEW)
        if result.details is not None:
            match = msgspec.json.decode(result.details, type=_Match)
            hits, error, bodies, projection = match.hits, match.error, tuple(map(bytes, match.parts)), SIMILAR
        fetched, compiled = result.fetched or now, self._projections.part(projection)
        context = MappingContext(country, query.currency)
        try:
            items = [_mapped(compiled, body, context) for body in bodies[: query.parts_max]]
        # The schema allows invalid ids and times.
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as failure:
            return PartResult(query, None, hits, f"the upstream sent a part that cannot be read: {failure}", fetched)
        if query.sources:
            return PartResult(query, None, hits, error, fetched, tuple(map(_decode_source, items)))
        return PartResult(query, _decode_part(items[0]) if items else None, hits, error, fetched)


def _mapped(compiled: CompiledObject, body: bytes, context: MappingContext) -> bytes:
    return msgspec.json.encode(compiled.map(compiled.decode(body), context))


def _read_similar(data: Any) -> queries.Received:
    data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
    [match] = data.supMultiMatch
    lost = [*map(bytes, match.parts)].count(documents.NULL)
    value = msgspec.json.encode(_Match(match.hits, match.error, match.parts))
    return queries.Received(value, reported, len(match.parts) - lost, lost)
