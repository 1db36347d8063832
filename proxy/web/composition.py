"""The handler that serves a configuration to clients, around its gateway."""

from typing import NamedTuple

from proxy.graphql import documents
from proxy.graphql.service import GraphQLService
from proxy.telemetry.seen import SeenRequests
from proxy.v4.documents import V4DocumentReader
from proxy.web import authentication, client_address, graphql, middleware, operators, responses, routing, v3_routes

V4_ENDPOINT = "/api/v4/endpoint"


class ClientHandler(NamedTuple):
    """Handler of the requests of clients, and the parts of it that a reload needs."""

    requests: middleware.RequestMiddleware
    authenticator: authentication.Authenticator
    responses: responses.EncodedResponses


def compose(state: operators.ServiceState, ids: middleware.RequestIds, seen: SeenRequests | None) -> ClientHandler:
    """Build the parts in the order in which they use each other. `seen` is None where nobody is recorded."""
    gateway = state.gateway
    settings, metrics, upstream = gateway.settings, gateway.metrics, gateway.settings.upstream
    assert upstream != "sandbox"  # noqa: S101 - it holds addresses by now
    limit = settings.listen.failed_auth_per_minute
    authenticator = authentication.Authenticator(gateway.applications, limit, metrics, seen)
    # New with every reload: a cached response knows its client, and is made again from stored results.
    cache = responses.EncodedResponses(responses.CACHE_BYTES if settings.cache.bytes else 0, gateway.clock)
    gateway.on_forgotten = cache.clear
    paths = routing.Routes()
    v3 = v3_routes.V3Routes(gateway, authenticator, cache)
    v3.add_to(paths)
    service = GraphQLService(gateway, documents.schema(upstream.site))
    served = graphql.GraphQLRoutes(service, gateway, authenticator)
    served.add_to(paths)
    served.add_path(paths, V4_ENDPOINT, V4DocumentReader(service.documents.schema, upstream.site).request)
    operators.add_monitoring(paths, state, everything=settings.listen.metrics)
    addresses = client_address.ClientAddressResolver(settings.listen.trusted_proxies)
    requests = middleware.RequestMiddleware(
        paths, v3, cache, addresses, metrics=metrics, clock=gateway.clock, ids=ids, seen=seen
    )
    return ClientHandler(requests, authenticator, cache)
