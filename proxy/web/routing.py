"""Routes of a port, and what is known of a request on its way: two look-ups in a dict lead from a path to its handlers,
however long the path is."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import hdrs, web

from proxy import errors
from proxy.gateway.core import Client, ResponseMetadata
from proxy.model import QuotaStatus
from proxy.web.client_address import ClientAddress

UNKNOWN = "unknown"  # name in logs and metrics of every path that is not served
READ = (hdrs.METH_GET, hdrs.METH_HEAD)
LAST = "/{uid}"  # of a route that serves any last segment

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class RequestState:
    """What handlers find out, for the log line and the error response: client, metadata of the response, and the quota
    of a failed request that has used parts. Dialects other than v3 have `render`, which makes the response of an error;
    `failure` is one that has been rendered already."""

    client: Client | None = None
    metadata: ResponseMetadata | None = None
    quota: QuotaStatus | None = None
    render: Callable[[errors.BridgeError, web.BaseRequest], web.Response] | None = None
    failure: errors.BridgeError | None = None

    def __init__(self, origin: ClientAddress) -> None:
        self.origin = origin


STATE = web.RequestKey("state", RequestState)


class Route(NamedTuple):
    """A path as it was registered, which has no text of a client, and the handlers of its methods."""

    path: str
    handlers: dict[str, Handler]

    def handler(self, method: str) -> Handler:
        """Return the handler of a method. Raises MethodNotAllowed."""
        handler = self.handlers.get(method) or self.handlers.get(hdrs.METH_ANY)
        if handler is None:
            raise errors.MethodNotAllowed.of(method)
        return handler


class Routes:
    """Paths with their handlers. Each is served with a trailing slash, too."""

    def __init__(self) -> None:
        self._exact: dict[str, Route] = {}
        self._below: dict[str, Route] = {}  # by the path before the last segment

    def add(self, path: str, handler: Handler, *methods: str) -> None:
        """Let a handler serve some methods of a path, which may end in `/{uid}`; without methods, all others."""
        routes, key = (self._below, path.removesuffix(LAST)) if path.endswith(LAST) else (self._exact, path)
        route = routes.setdefault(key, Route(path, {}))
        route.handlers.update(dict.fromkeys(methods or (hdrs.METH_ANY,), handler))

    def find(self, request: web.BaseRequest) -> Route | None:
        """Return the route of a request; None if its path is not served."""
        path = request.rel_url.path_safe.removesuffix("/")
        parent, _, last = path.rpartition("/")
        return self._exact.get(path) or (self._below.get(parent) if last else None)
