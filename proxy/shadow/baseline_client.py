"""Client of the old v3 service: sends a request as a client sent it, once. A failure is a response with its reason."""

import aiohttp
import yarl

from proxy import config
from proxy.kit.clock import Clock
from proxy.traffic import failures, http_side, v3_request
from proxy.traffic.v3_response import SideResponse
from proxy.v3 import endpoints

BODY_MAX = 32 * 2**20  # bytes; a longer body is a failure


class BaselineClient:
    """HTTP client of the old service at `url`. `http` is a session of the shadow's own, with a time limit of
    `seconds`."""

    def __init__(self, http: aiohttp.ClientSession, url: str, seconds: float, clock: Clock) -> None:
        self._http = http
        self._base = http_side.base_url(url)
        self._seconds = seconds
        self._clock = clock

    async def fetch(self, target: str, apikey: config.Secret | None = None) -> SideResponse:
        """Send a request target, unchanged unless `apikey` replaces the client's key."""
        if apikey is not None:
            path, query, _ = v3_request.parse_target(target)
            target = endpoints.PREFIXES[0] + v3_request.V3Request(path, query).target(apikey.reveal())
        began = self._clock.monotonic()
        try:
            async with self._http.get(address(self._base, target), allow_redirects=False) as received:
                body = await http_side.read_body(received, BODY_MAX)
                response = SideResponse(received.status, body, self._clock.monotonic() - began, received.content_type)
            failures.check_response(response)
        except failures.SideError as failure:
            return _failed_response(failure, self._clock.monotonic() - began)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _failed_response(failures.from_exception(error, self._seconds), self._clock.monotonic() - began)
        return response


def address(base: str, target: str) -> yarl.URL:
    """Build the URL of a request target at the service whose base URL ends in /v3; the rest is unchanged.

    Raises ValueError for a path outside the v3 prefixes.
    """
    if not target.startswith("/"):  # absolute form (RFC 9112 §3.2.2), sent by clients that are configured with a proxy
        target = "/" + target.partition("://")[2].partition("/")[2]
    for prefix in sorted(endpoints.PREFIXES, key=len, reverse=True):
        if target.startswith(prefix + "/"):
            text = base + target.removeprefix(prefix)
            return yarl.URL("".join(map(_sendable, text.encode("utf-8", "surrogateescape"))), encoded=True)
    raise ValueError("a path that does not begin as those of v3 do")


def _failed_response(failure: failures.SideError, seconds: float) -> SideResponse:
    return SideResponse(0, b"", seconds, parts=0 if failure.free else None, failure=str(failure))


def _sendable(byte: int) -> str:
    """Percent-encode a byte that is not allowed in a request line; some clients send such bytes."""
    return chr(byte) if 0x20 < byte < 0x7F and byte != ord("#") else f"%{byte:02X}"
