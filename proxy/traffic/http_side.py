"""Side over HTTP: concurrency, rate, time and size limits, retries and redirects.

Every request yields a SideResponse, with the reason of a failure if need be. Reasons name no address and hold no key.
Retry-After is honored up to a limit. Redirects to another origin are refused, because the request carries an API key.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import unquote

import aiohttp
import msgspec
import yarl

import proxy
from proxy.kit.clock import Clock
from proxy.traffic import failures
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse
from proxy.v3.headers import X_V3_UNSUPPORTED

Sleep = Callable[[float], Awaitable[None]]


class RequestPacer:
    """Rate limit of `a_second` requests, evenly spaced; 0 is unlimited."""

    def __init__(self, a_second: float, clock: Clock, sleep: Sleep) -> None:
        self._apart = 1 / a_second if a_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0

    async def turn(self) -> None:
        now = self._clock.monotonic()
        at = max(now, self._next)
        self._next = at + self._apart
        if at > now:
            await self._sleep(at - now)

    def hold(self, seconds: float) -> None:
        """Delay all requests by at least `seconds` from now."""
        self._next = max(self._next, self._clock.monotonic() + seconds)


CONNECT_SECONDS = 10.0
RETRY_DELAY_MAX = 30.0  # longest Retry-After that is honored; with a longer one, the response counts as it is
WAITS = (1.0, 2.0, 4.0)  # seconds before each retry, where the side does not send Retry-After
REDIRECTS = 3
REDIRECTED = (301, 302, 303, 307, 308)


class SideLimits(msgspec.Struct, frozen=True):
    """Limits of one side: concurrency, requests per second (0: no limit), seconds and bytes of a complete response."""

    at_once: int = 4
    a_second: float = 0.0
    seconds: float = 60.0
    bytes_max: int = 64 * 2**20


class HttpSide:
    """Service at `base`, whose v3 paths begin with /v3. `key` returns the API key of a client by its name."""

    live = True

    def __init__(
        self,
        base: str,
        limits: SideLimits,
        key: Callable[[str], str | None],
        session: aiohttp.ClientSession,
        *,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.place = base
        self._limits = limits
        self._key = key
        self._session = session
        self._clock = clock
        self._sleep = sleep
        self._pace = RequestPacer(limits.a_second, clock, sleep)
        self._slots = asyncio.Semaphore(limits.at_once)

    async def fetch(self, request: V3Request, request_id: str) -> SideResponse:
        """Send a request; a failure is returned as a response with its reason."""
        try:
            async with self._slots:
                return await self._with_retries(request.url(self.place, self._key(request.client)), request_id)
        except failures.SideError as failure:
            return SideResponse(0, b"", 0.0, parts=0 if failure.free else None, failure=str(failure))

    async def _with_retries(self, target: str, request_id: str) -> SideResponse:
        for wait in (*WAITS, None):
            # Retries take a turn, too: a side that limits the rate must not get them in addition.
            await self._pace.turn()
            response, retry_after = await self._send_once(target, request_id)
            # A 429 that names its cost, which is 0, is that of a quota: only its Retry-After says when it ends.
            usual = wait if response.parts is None else None
            # A response that has cost parts is final.
            delay = None if response.parts else _retry_delay(response.status, retry_after, usual)
            if wait is None or delay is None:
                break
            # All requests wait: the limit that one has met applies to the others as well.
            self._pace.hold(delay)
            await self._sleep(delay)
        failures.check_response(response)
        return response

    async def _send_once(self, target: str, request_id: str) -> tuple[SideResponse, str]:
        """Send once, following redirects within the side; return the response and its Retry-After."""
        started, url = self._clock.monotonic(), yarl.URL(target, encoded=True)
        headers = {"X-Request-Id": request_id}
        try:
            for _ in range(REDIRECTS + 1):
                # Redirects are followed here and not by aiohttp, which would send the API key to other servers.
                async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                    body = await read_body(response, self._limits.bytes_max)
                    if response.status not in REDIRECTED:
                        return self._response(response, body, started), response.headers.get("Retry-After", "")
                    url = _next(url, response.headers.get("Location", ""))
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is a subclass of OSError
            raise failures.from_exception(error, self._limits.seconds) from error
        raise failures.SideError("redirects in a loop")

    def _response(self, response: aiohttp.ClientResponse, body: bytes, started: float) -> SideResponse:
        cost = response.headers.get("X-Parts-Cost", "")
        parts = int(cost) if cost.isascii() and cost.isdigit() and len(cost) < 10 else None
        seconds = self._clock.monotonic() - started
        names = tuple(map(unquote, filter(None, response.headers.get(X_V3_UNSUPPORTED, "").split(", "))))
        return SideResponse(response.status, body, seconds, response.content_type, parts, unsupported=names)


async def read_body(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Read a whole body. Raises SideError for a longer one."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > bytes_max:
            raise failures.SideError(f"sent a response of more than {bytes_max} bytes")
    return bytes(body)


@asynccontextmanager
async def open_session(limits: SideLimits) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session for one side: no cookies, no proxy or credentials from the environment."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limits.at_once),
        # Cookies would make responses depend on earlier requests.
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=limits.seconds, sock_connect=min(CONNECT_SECONDS, limits.seconds)),
        headers={"User-Agent": f"v3bridge-compare/{proxy.__version__}", "Accept": "application/json, */*"},
        # Redirects of long searches repeat the whole query in Location.
        max_line_size=65_536,
        max_field_size=65_536,
    ) as opened:
        yield opened


def _next(url: yarl.URL, location: str) -> yarl.URL:
    """Resolve a redirect. Raises SideError if it leads to another origin, which must not get the API key."""
    there = url.join(yarl.URL(location)) if location else None
    if there is None:
        raise failures.SideError("redirects to nowhere", free=True)
    if there.origin() != url.origin():
        raise failures.SideError("redirects to another server", free=True)
    return there


def _retry_delay(status: int, retry_after: str, usual: float | None) -> float | None:
    """Return the seconds before a retry; None for no retry.

    Retried are 429, and 503 with Retry-After: a 503 without it may have been billed.
    """
    # Only the form in seconds is read: a date is treated as absent.
    text = retry_after.strip()
    message = float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
    if status == 429 or (status == 503 and message is not None):
        delay = usual if message is None else message
        return delay if delay is None or delay <= RETRY_DELAY_MAX else None
    return None


def base_url(text: str) -> str:
    """Normalize a base URL to one that ends in /v3. Raises ValueError for an unusable one."""
    try:
        url = yarl.URL(text)
        port = url.port
    except ValueError:
        raise ValueError("is not an address") from None
    if url.scheme not in ("http", "https") or not url.host or port is None:
        raise ValueError("is not an http:// or https:// address")
    if url.user is not None or url.password is not None:
        raise ValueError("holds a name or a password, which everybody sees on a command line")
    if url.query_string or url.fragment:
        raise ValueError("goes on after its path")
    base = str(url).rstrip("/")
    return base if base.endswith("/v3") else f"{base}/v3"
