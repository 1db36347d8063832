"""The door of the old core, for what does not use the new one yet."""

from proxy.gateway.applications import Applications, Client
from proxy.gateway.assembly import Gateway
from proxy.gateway.cache.entries import RenderedResult
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.queries import GatewayRequest, QuerySet, V3Queries
from proxy.gateway.response_metadata import ResponseMetadata

__all__ = [
    "Applications",
    "Client",
    "Gateway",
    "GatewayRequest",
    "Pipeline",
    "QuerySet",
    "RenderedResult",
    "ResponseMetadata",
    "V3Queries",
]
