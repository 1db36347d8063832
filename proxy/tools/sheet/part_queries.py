"""Queries of spreadsheets as queries of the core, and what its answers say. Pure.

The fields of a part are those of mappings/sheet; whole parts have all of them.
"""

import msgspec

from proxy.gateway.core import Answer
from proxy.mapping.loader import VIEWS
from proxy.model import MappingContext, Projection
from proxy.planning import queries
from proxy.planning.projection_cache import ProjectionCache
from proxy.tools.sheet.parts import Part, PartQuery, PartResult

_decode = msgspec.json.Decoder(Part).decode


def of_core(query: PartQuery) -> queries.Query:
    """Return the query of the core."""
    return queries.matching(0, query.limit, mpn=query.mpn, sku=query.sku, manufacturer=query.manufacturer or None)


def result(query: PartQuery, answer: Answer, projections: ProjectionCache, country: str, now: float) -> PartResult:
    """Return the result of a query for parts in a country; `now` is the time of one that was not fetched."""
    found = answer.result
    if found is None:
        return PartResult(query, (), 0, str(answer.error), now)
    compiled = projections.part(Projection(features=answer.features, view=VIEWS["sheet"]))
    context = MappingContext(country, query.currency)
    fetched = found.fetched or now
    try:
        mapped = (compiled.map(compiled.decode(body), context) for body in found.bodies[: query.limit])
        parts = tuple(_decode(msgspec.json.encode(part)) for part in mapped)
    # The schema allows invalid ids and times.
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as failure:
        return PartResult(query, (), found.hits, f"the upstream sent a part that cannot be read: {failure}", fetched)
    return PartResult(query, parts, found.hits, None, fetched)
