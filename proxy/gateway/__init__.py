"""The core of a request: pipeline.py has its steps from top to bottom, the other modules are what the steps use.

Here is its door: all that tools, commands, dialects and web use of pipeline, quota, upstream and store. What lies
behind it may change as a whole. Only the assembly of the process imports more.
"""

from proxy.gateway.applications import Applications, Client
from proxy.gateway.assembly import Gateway
from proxy.gateway.flights import Answer, ResponseMetadata
from proxy.gateway.recording import SeenRequests
from proxy.gateway.stored_state import StoredState
from proxy.gateway.v3_objects import GatewayRequest, Rendered, V3Objects
from proxy.upstream.http_post import open_session

__all__ = [
    "Answer",
    "Applications",
    "Client",
    "Gateway",
    "GatewayRequest",
    "Rendered",
    "ResponseMetadata",
    "SeenRequests",
    "StoredState",
    "V3Objects",
    "open_session",
]
