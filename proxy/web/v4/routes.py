"""Paths of v4: the REST wrapper, which is served as v3 is."""

from aiohttp import web

from proxy.v4 import wrapper
from proxy.web.v3 import routes

TOKEN = "token"  # noqa: S105 - the name of the header and of the parameter of a token
MISSING = f"token missing: send your API key as header `{TOKEN}: KEY`, or as ?{TOKEN}=KEY"


def add_wrapper(app: web.Application, v3: routes.V3Routes, actions: wrapper.WrapperActions) -> None:
    """Register the path of the wrapper, with and without a trailing slash."""
    # The wrapper's own clients sent `apikey`.
    keys = routes.KeyPlaces((TOKEN, "apikey"), TOKEN, MISSING)
    handler = v3.handler(wrapper.MATCH, routes.Dialect(actions.execute, keys))
    for path in (f"{wrapper.PREFIX}{wrapper.MATCH.path}", f"{wrapper.PREFIX}{wrapper.MATCH.path}/"):
        app.router.add_get(path, handler)
        app.router.add_route("*", path, routes.other_method)
