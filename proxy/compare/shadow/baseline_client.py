"""Client of the old v3 service: sends a request as a client sent it, once. A failure is a response with its reason."""

import aiohttp
import yarl

from proxy import config, endpoints
from proxy.compare import requests
from proxy.compare.responses import SideResponse
from proxy.compare.running import failures, http_side
from proxy.kit.clock import Clock

BODY_MAX = 32 * 2**20  # bytes; more is not read


class BaselineClient:
    """`url` is its address; `http` has connections and time limits of the shadow's own: `seconds` for a response."""

    def __init__(self, http: aiohttp.ClientSession, url: str, seconds: float, clock: Clock) -> None:
        self._http = http
        self._base = http_side.base_url(url)
        self._seconds = seconds
        self._clock = clock

    async def ask(self, target: str, apikey: config.Secret | None = None) -> SideResponse:
        """A request target as a client sent it; with a key of the operator's own in place of the client's."""
        if apikey is not None:
            path, query, _ = requests.parse_target(target)
            target = endpoints.PREFIXES[0] + requests.V3Request(path, query).target(apikey.reveal())
        began = self._clock.monotonic()
        try:
            async with self._http.get(address(self._base, target), allow_redirects=False) as received:
                body = await read(received)
                response = SideResponse(received.status, body, self._clock.monotonic() - began, received.content_type)
            failures.check_response(response)
        except failures.SideError as failure:
            return _without_answer(failure, self._clock.monotonic() - began)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _without_answer(failures.from_exception(error, self._seconds), self._clock.monotonic() - began)
        return response


def address(base: str, target: str) -> yarl.URL:
    """Where a service, its own /v3 at the end of `base`, has a request target of ours: all else as the client wrote it.

    Raises ValueError for a path that does not begin as v3's do.
    """
    if not target.startswith("/"):  # the absolute form that programs send to what they take for a proxy
        target = "/" + target.partition("://")[2].partition("/")[2]
    for prefix in sorted(endpoints.PREFIXES, key=len, reverse=True):
        if target.startswith(prefix + "/"):
            text = base + target.removeprefix(prefix)
            return yarl.URL("".join(map(_sendable, text.encode("utf-8", "surrogateescape"))), encoded=True)
    raise ValueError("a path that does not begin as those of v3 do")


async def read(response: aiohttp.ClientResponse) -> bytes:
    """A whole body. Raises TroubleError for one that is too long."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > BODY_MAX:
            raise failures.SideError(f"sent a response of more than {BODY_MAX} bytes")
    return bytes(body)


def _without_answer(failure: failures.SideError, seconds: float) -> SideResponse:
    return SideResponse(0, b"", seconds, parts=0 if failure.free else None, failure=str(failure))


def _sendable(byte: int) -> str:
    """What may stand in a request line; programs send more than that."""
    return chr(byte) if 0x20 < byte < 0x7F and byte != ord("#") else f"%{byte:02X}"
