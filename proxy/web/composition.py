"""The handler that serves a configuration to clients, around its gateway."""

from typing import NamedTuple

from proxy.gateway.core import Gateway
from proxy.graphql import documents
from proxy.graphql.service import GraphQLService
from proxy.telemetry import request_ids
from proxy.telemetry.seen import SeenRequests
from proxy.v4 import wrapper
from proxy.v4.documents import V4DocumentReader
from proxy.web import authentication, client_address, graphql, middleware, operator_endpoints, routing
from proxy.web.v3 import encoded_cache, routes
from proxy.web.v4 import routes as v4_routes


class ClientHandler(NamedTuple):
    """Handler of the requests of clients, and the parts of it that a reload needs."""

    requests: middleware.RequestMiddleware
    authenticator: authentication.Authenticator
    responses: encoded_cache.EncodedResponseCache


def compose(
    gateway: Gateway,
    ids: request_ids.RequestIds,
    seen: SeenRequests | None,
    monitoring: operator_endpoints.Monitoring,
) -> ClientHandler:
    """Build the parts in the order in which they use each other. `seen` is None where nobody is recorded."""
    settings, clock, metrics = gateway.settings, gateway.clock, gateway.metrics
    addresses = client_address.ClientAddressResolver(settings.listen.trusted_proxies)
    authenticator = authentication.Authenticator(
        gateway.applications, settings.listen.failed_auth_per_minute, addresses, metrics, seen
    )
    # New with every reload: an entry knows its client, and is made again from cached results.
    responses = encoded_cache.EncodedResponseCache(encoded_cache.BYTES if settings.cache.bytes else 0, clock)
    gateway.refreshing.on_forgotten = responses.clear
    paths = routing.Routes()
    requests = middleware.RequestMiddleware(paths, metrics, clock, addresses, ids=ids, seen=seen)
    v3_routes = routes.V3Routes(gateway, authenticator, responses)
    v3_routes.add_to(paths)
    view = gateway.mappings.views[wrapper.MATCH.object]
    v4_routes.add_wrapper(paths, v3_routes, wrapper.WrapperActions(gateway.objects, view, clock))
    _add_graphql(paths, gateway, authenticator)
    operator_endpoints.add_health(paths)
    if settings.listen.metrics:
        operator_endpoints.add_monitoring(paths, monitoring)
    return ClientHandler(requests, authenticator, responses)


def _add_graphql(paths: routing.Routes, gateway: Gateway, authenticator: authentication.Authenticator) -> None:
    upstream = gateway.settings.upstream
    assert upstream != "sandbox"  # noqa: S101 - it holds addresses by now
    service = GraphQLService(gateway, documents.schema(upstream.site))
    served = graphql.GraphQLRoutes(service, gateway, authenticator)
    served.add_to(paths)
    v4_routes.add_endpoint(paths, served, V4DocumentReader(service.documents.schema, upstream.site))
