"""Shapes of requests: programs send few of them, which differ only in their API key and in what they look for.

All other parameters are parsed once for a shape, and so is what depends on them only.
"""

import cachetools

from proxy.v3 import bounds
from proxy.v3.parsing.request_parameters import RequestParameters

SHAPES_MAX = 512  # clients choose them, so their number must have a bound, and
LENGTH_MAX = 2_000  # so must their length, in characters
# No shape holds an API key: in clear, keys are only in requests under way and in the last ones.
VARYING = ("apikey", "token", "queries", "uid", "uids")
_VARYING = tuple(f"{name}{spelled}=" for name in VARYING for spelled in ("", "[]", "%5B%5D", "%5b%5d"))


class RequestShapes:
    """Parser of request targets that remembers shapes. What requests derive from their parameters must depend on
    nothing else that differs between the requests of one parser, but for what its key names."""

    def __init__(self) -> None:
        self._shapes: cachetools.LRUCache[str, RequestParameters] = cachetools.LRUCache(SHAPES_MAX)

    def parse(self, target: str) -> RequestParameters:
        """Return the parameters of a request target, as `RequestParameters(target)` does. Raises BadRequest for too
        many."""
        pairs = target.partition("?")[2].split("&")
        bounds.PARAMETERS.check(len(pairs))
        others = "&".join([pair for pair in pairs if not pair.startswith(_VARYING)])
        shape = self._shapes.get(others)
        if shape is None:
            shape = RequestParameters(f"?{others}")
            if len(others) > LENGTH_MAX or any(map(shape.has, VARYING)):  # spelled in another way
                return RequestParameters(target)
            self._shapes[others] = shape
        return shape.including("&".join([pair for pair in pairs if pair.startswith(_VARYING)]))
