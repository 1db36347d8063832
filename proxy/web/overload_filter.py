"""Load shedding before a request is parsed, from the received bytes.

A 503 from a handler costs half as much time as a usual response, so that three times the capacity would leave no time
for any other response. Rejected here is what is certain to be new work: a whole GET of parts over HTTP/1.1 whose target
was not answered recently. Everything else is handled as usual, where `gateway/cache/lookup.py` decides.
"""

import json

from proxy.endpoints import ENDPOINTS, PREFIXES
from proxy.gateway.load_shedding import MESSAGE, RETRY_SECONDS, LoadShedding
from proxy.telemetry.metrics import Metrics
from proxy.web.v3.encoded_cache import EncodedResponseCache

HEAD_END = b"\r\n\r\n"
PATHS = frozenset(
    f"{prefix}{endpoint.path}"
    for endpoint in ENDPOINTS
    for prefix in PREFIXES
    if endpoint.object == "Part" and "{" not in endpoint.path
)
# These change the format of the response or the state of the connection: a handler rejects such requests.
EXCLUDED = (b"content-length", b"transfer-encoding", b"connection: close", b"callback=", b"suppress_status")


class OverloadFilter:
    """Function from received bytes to a 503, or None if the request is to be handled."""

    def __init__(self, load: LoadShedding, cache: EncodedResponseCache, metrics: Metrics) -> None:
        self._load = load
        self._cache = cache
        self._metrics = metrics

    def __call__(self, data: bytes, peer: str | None) -> bytes | None:  # noqa: ARG002 - any address is refused
        """Return the whole response, or None if the request is to be handled."""
        if (
            not self._load.overloaded
            or not data.startswith(b"GET /")
            or data.find(HEAD_END) != len(data) - len(HEAD_END)
        ):
            return None
        target, _, rest = data[4:].partition(b" ")
        path = target.partition(b"?")[0].decode("latin-1")
        if path not in PATHS or not rest.startswith(b"HTTP/1.1\r\n"):
            return None
        lowered = data.lower()
        if any(word in lowered for word in EXCLUDED) or self._cache.was_answered(target.decode("latin-1")):
            return None
        if self._load.admits():
            self._load.let_pass()
            return None
        self._metrics.requests[path, "503"] += 1
        return RESPONSE


def _response() -> bytes:
    body = json.dumps({"__class__": "ServerErrorResponse", "message": MESSAGE}, indent=2).encode()
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: {RETRY_SECONDS}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


RESPONSE = _response()
