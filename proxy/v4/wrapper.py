"""The REST wrapper of v4: parts/match with the parts and the envelope that it had (contract graphql.md §10).

Parameters, queries and errors are v3's, without `__class__`, and so are cache entries: a part that a v3 client has paid
for is free here. What the wrapper itself sent as errors is not known.
"""

from typing import Any

import msgspec

from proxy.gateway.core import GatewayRequest, Rendered
from proxy.mapping import loader
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries

PREFIX = "/api/v4/rest"
MATCH = Endpoint("/parts/match", loader.VIEWS["v4"], "match", "the parts returned")
DATASHEETS, COMPLIANCE = "datasheets", "compliance_documents"
PAGE = ("start", "limit")  # keys of a query that the response repeats also where they were not sent


class WrapperActions(V3Actions):
    """The action of the wrapper's one endpoint, for mappings of WrapperPart."""

    async def _match(self, received: AuthenticatedRequest) -> Any:
        raws, request = self._parse_match(received)
        results = await self._objects.match_parts(self._caller(received), request)
        references = (query.reference for query in request.queries)
        return {
            "request": {"queries": [_query_echo(raw) for raw in raws]},
            "results": [_result(*each) for each in zip(references, results, strict=True)],
        }

    def _caller(self, received: AuthenticatedRequest) -> GatewayRequest:
        caller = super()._caller(received)
        include = caller.projection.include
        if DATASHEETS in include:  # which brought both
            include |= {COMPLIANCE}
        projection = msgspec.structs.replace(caller.projection, include=include, view=received.endpoint.object)
        return caller._replace(projection=projection)


def _query_echo(raw: Any) -> dict[str, Any]:
    sent = match_queries.non_null(raw) if isinstance(raw, dict) else {}
    return {name: match_queries.DEFAULTS[name] for name in PAGE} | sent


def _result(reference: Any, result: Rendered) -> dict[str, Any]:
    return {
        "reference": reference,
        "error": result.error,
        "hits": result.hits,
        "items": result.items,
    }
