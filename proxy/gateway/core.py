"""The door of the core: all that tools, commands, dialects and web use of pipeline, cache, quota, upstream and stores.

What lies behind it may change as a whole. Only the assembly of the process imports more.
"""

from proxy.gateway.applications import Applications, Client
from proxy.gateway.assembly import Gateway
from proxy.gateway.cache.entries import RenderedResult
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.queries import GatewayRequest, QuerySet, V3Queries
from proxy.gateway.quota.usage import UsageRow
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.gateway.stored_state import StoredState
from proxy.upstream.checked import Upstream

__all__ = [
    "Applications",
    "Client",
    "Gateway",
    "GatewayRequest",
    "Pipeline",
    "QuerySet",
    "RenderedResult",
    "ResponseMetadata",
    "StoredState",
    "Upstream",
    "UsageRow",
    "V3Queries",
]
