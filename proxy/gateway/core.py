"""The door of the core: all that tools, commands, dialects and web use of pipeline, quota, upstream and store.

What lies behind it may change as a whole. Only the assembly of the process imports more.
"""

from proxy.next.applications import Applications, Client
from proxy.next.gateway import Gateway
from proxy.next.graphql.service import GraphQLService, error_of
from proxy.next.response_metadata import ResponseMetadata
from proxy.next.results import Answer
from proxy.next.stored_state import StoredState
from proxy.next.usage import UsageRow
from proxy.next.v3_objects import GatewayRequest, Rendered, V3Objects
from proxy.planning import queries
from proxy.planning.queries import Query
from proxy.upstream.checked import Upstream

__all__ = [
    "Answer",
    "Applications",
    "Client",
    "Gateway",
    "GatewayRequest",
    "GraphQLService",
    "Query",
    "Rendered",
    "ResponseMetadata",
    "StoredState",
    "Upstream",
    "UsageRow",
    "V3Objects",
    "error_of",
    "queries",
]
