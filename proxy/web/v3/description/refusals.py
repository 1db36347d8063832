"""Which errors an endpoint can answer with, read off the tree in proxy/errors.py: for markdown.py and openapi.py."""

from proxy import errors
from proxy.endpoints import Endpoint

Kind = type[errors.BridgeError]


def kinds() -> list[Kind]:
    """Every error that a client can see, by status."""
    found = [*_leaves(errors.ClientError), *_leaves(errors.ServerError), errors.ServerError]
    return sorted(found, key=lambda kind: kind.status)


def of(endpoint: Endpoint) -> list[int]:
    """The statuses of a GET that fails."""
    only = {404: endpoint.action == "get", 405: False}
    return [status for status in dict.fromkeys(kind.status for kind in kinds()) if only.get(status, True)]


def _leaves(kind: Kind) -> list[Kind]:
    """The kinds of the tree; what a room derives from them for itself is the same to a client."""
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__]
    return [leaf for each in below for leaf in _leaves(each)] if below else [kind]
