"""Paths of v4: the GraphQL endpoint, which is served as /graphql is, and the REST wrapper, which is served as v3 is."""

from proxy.v4 import wrapper
from proxy.v4.documents import V4DocumentReader
from proxy.web import graphql, routing
from proxy.web.v3 import routes

TOKEN = "token"  # noqa: S105 - the name of the header and of the parameter of a token
MISSING = f"token missing: send your API key as header `{TOKEN}: KEY`, or as ?{TOKEN}=KEY"
ENDPOINT = "/api/v4/endpoint"


def add_endpoint(paths: routing.Routes, served: graphql.GraphQLRoutes, reader: V4DocumentReader) -> None:
    """Register the path of the GraphQL endpoint."""
    served.add_path(paths, ENDPOINT, reader.request)


def add_wrapper(paths: routing.Routes, v3: routes.V3Routes, actions: wrapper.WrapperActions) -> None:
    """Register the path of the wrapper."""
    # The wrapper's own clients sent `apikey`.
    keys = routes.KeyPlaces((TOKEN, "apikey"), TOKEN, MISSING)
    handler = v3.handler(wrapper.MATCH, routes.Dialect(actions.execute, keys))
    routes.add(paths, f"{wrapper.PREFIX}{wrapper.MATCH.path}", handler)
