"""The REST wrapper of v4: parts/match with the parts and the envelope that it had (contract graphql.md §10).

Parameters, queries and errors are v3's, without `__class__`. What the wrapper itself sent as errors is not known.
"""

from typing import Any

import msgspec

from proxy.gateway.core import GatewayRequest
from proxy.mapping import loader
from proxy.v3 import parts_match
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.endpoints import Endpoint

PREFIX = "/api/v4/rest"
MATCH = Endpoint("/parts/match", loader.VIEWS["v4"], "match", "the parts returned")
# Keys of a query that the response repeats also where they were not sent.
PAGE = {name: parts_match.DEFAULTS[name] for name in ("start", "limit")}


class WrapperActions(V3Actions):
    """The action of the wrapper's one endpoint, for mappings of WrapperPart."""

    async def _match(self, received: AuthenticatedRequest) -> Any:
        asked = parts_match.parse(received.parameters)
        received.metadata.ignore(tuple(asked.unknown))
        results = await self._objects.match_parts(self._caller(received), asked.request)
        return {
            "request": {"queries": [PAGE | fields for fields in asked.sent]},
            "results": [
                {"reference": query.reference, "error": each.error, "hits": each.hits, "items": each.items}
                for query, each in zip(asked.request.queries, results, strict=True)
            ],
        }

    def _caller(self, received: AuthenticatedRequest) -> GatewayRequest:
        caller = super()._caller(received)
        include = caller.projection.include
        if "datasheets" in include:  # which brought both
            include |= {"compliance_documents"}
        projection = msgspec.structs.replace(caller.projection, include=include, view=received.endpoint.object)
        return caller._replace(projection=projection)
