"""Paths of v4: the GraphQL endpoint, which is served as /graphql is, and the REST wrapper, which is served as v3 is."""

from aiohttp import web

from proxy.v4 import wrapper
from proxy.v4.documents import V4DocumentReader
from proxy.web import graphql
from proxy.web.v3 import routes

TOKEN = "token"  # noqa: S105 - the name of the header and of the parameter of a token
MISSING = f"token missing: send your API key as header `{TOKEN}: KEY`, or as ?{TOKEN}=KEY"
ENDPOINT = ("/api/v4/endpoint", "/api/v4/endpoint/")


def add_endpoint(app: web.Application, served: graphql.GraphQLRoutes, reader: V4DocumentReader) -> None:
    """Register the paths of the GraphQL endpoint."""
    served.add_paths(app, ENDPOINT, reader.request)


def add_wrapper(app: web.Application, v3: routes.V3Routes, actions: wrapper.WrapperActions) -> None:
    """Register the path of the wrapper, with and without a trailing slash."""
    # The wrapper's own clients sent `apikey`.
    keys = routes.KeyPlaces((TOKEN, "apikey"), TOKEN, MISSING)
    handler = v3.handler(wrapper.MATCH, routes.Dialect(actions.execute, keys))
    for path in (f"{wrapper.PREFIX}{wrapper.MATCH.path}", f"{wrapper.PREFIX}{wrapper.MATCH.path}/"):
        app.router.add_get(path, handler)
        app.router.add_route("*", path, routes.other_method)
