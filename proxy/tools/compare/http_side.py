"""Service over HTTP: concurrency, rate, time and size limits, and retries.

Every request yields a SideResponse, with the reason of a failure if need be. Reasons complete "the baseline …", are
equal for all requests with that reason, name no address, and hold no key except in the side's own message.
"""

import asyncio
import json
import os
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlencode

import aiohttp
import msgspec
import yarl

import proxy
from proxy.traffic.recordings import SideResponse
from proxy.traffic.v3_request import V3Request
from proxy.v3.encoding import X_V3_UNSUPPORTED

Sleep = Callable[[float], Awaitable[None]]

AT_ONCE = 4  # requests
SECONDS, CONNECT_SECONDS = 60.0, 10.0  # of a complete response, of a connection
BYTES_MAX = 64 << 20  # of a response
ATTEMPTS = 4  # of a request that meets a rate limit
RETRY_DELAY, RETRY_DELAY_MAX = 2.0, 30.0  # seconds without Retry-After, and the longest Retry-After that is honored
REDIRECTED = (301, 302, 303, 307, 308)
KEY_STATUSES = (401, 403)
KEY_REFUSED = "refuses the key of"  # beginning of the reason of a refused API key, before the client's name
LINKS = "{ supParts(ids: UIDS) { v3uid sellers { company { id } offers { sku clickUrl } } } }"
MESSAGE_MAX = 200  # characters of a side's own message

# The first that an exception of the HTTP library is; its own messages have addresses.
_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientConnectorCertificateError, "shows a certificate that is not trusted"),
    (aiohttp.ConnectionTimeoutError, "cannot be reached in time"),
    (TimeoutError, f"gives no complete response within {SECONDS:g} s"),
    (aiohttp.ClientConnectorDNSError, "cannot be reached: no such name"),
    (aiohttp.ClientConnectorError, "cannot be reached{reason}"),
    (aiohttp.ClientPayloadError, "sent a truncated response"),
    (aiohttp.ServerDisconnectedError, "closed the connection without a response"),
    (aiohttp.ClientOSError, "closed the connection without a response"),
)
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class SideError(Exception):
    """Failure of a side, as a reason for the reader. `free`: certainly nothing was billed."""

    def __init__(self, words: str, *, free: bool = False) -> None:
        super().__init__(words)
        self.free = free


class _Refusal(msgspec.Struct):
    """Fields of an error response with a message."""

    message: str


def failure(response: SideResponse, client: str) -> str | None:
    """Return why a response proves nothing about a translation, worded to complete "the baseline …"; None otherwise."""
    if response.failure:
        return response.failure
    if response.body[:200].lstrip().lower().startswith((b"<!doctype", b"<html")):
        return f"sent HTML instead of JSON (HTTP {response.status})"
    if response.status in KEY_STATUSES:
        reason = f"{KEY_REFUSED} {client}"
    elif response.status == 429:
        reason = "limits the request rate"
    elif response.status >= 500:
        reason = "failed"
    else:
        return None
    return f"{reason} (HTTP {response.status}){message_suffix(response)}"


def message_suffix(response: SideResponse) -> str:
    """Format the side's own message, such as an exhausted quota or a rate limit. Cut between words, so that a key in it
    is whole and will be redacted."""
    try:
        message = msgspec.json.decode(response.body, type=_Refusal).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    text = "".join(each if each.isprintable() else " " for each in message)
    words = textwrap.shorten(text, MESSAGE_MAX, placeholder=" …", break_on_hyphens=False, break_long_words=False)
    return f": {words}" if words else ""


class HttpSide:
    """Service at `base`, whose v3 paths begin with /v3. `key` returns the API key of a client by its name; `rate` is in
    requests per second, 0 for no limit."""

    def __init__(
        self,
        base: str,
        key: Callable[[str], str | None],
        session: aiohttp.ClientSession,
        rate: float = 0.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._base = base_url(base)
        self._key = key
        self._session = session
        self._sleep = sleep
        self._apart = 1 / rate if rate else 0.0
        self._next = 0.0
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, request: V3Request) -> SideResponse:
        """Send a request; a failure is returned as a response with its reason."""
        return await self._fetch(request.url(self._base, self._key(request.client)))

    async def fetch_links(self, uids: list[str], client: str) -> SideResponse:
        """Ask the GraphQL endpoint beside v3, which v3bridge has, for the links of all offers of parts."""
        query = urlencode({"query": LINKS.replace("UIDS", json.dumps(uids)), "apikey": self._key(client) or ""})
        return await self._fetch(f"{self._base.removesuffix('/v3').removesuffix('/api')}/graphql?{query}")

    async def _fetch(self, address: str) -> SideResponse:
        url = yarl.URL(address, encoded=True)
        try:
            async with self._slots:
                for _ in range(ATTEMPTS):
                    await self._turn()
                    response, delay = await self._send_once(url)
                    # A response that has cost parts is final, and so is one that asks for more than a pause.
                    if response.status != 429 or response.parts or delay > RETRY_DELAY_MAX:
                        break
                    # All requests wait: the limit that one has met applies to the others as well.
                    self._next = max(self._next, self._now() + delay)
        except SideError as error:
            return SideResponse(0, b"", parts=0 if error.free else None, failure=str(error))
        return response

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _turn(self) -> None:
        """Wait for the next place in the rate; retries take one, too."""
        now = self._now()
        at = max(now, self._next)
        self._next = at + self._apart
        if at > now:
            await self._sleep(at - now)

    async def _send_once(self, url: yarl.URL) -> tuple[SideResponse, float]:
        """Send once; return the response and the seconds of its Retry-After."""
        try:
            # Redirects are not followed: they could take the API key to other servers.
            async with self._session.get(url, allow_redirects=False) as response:
                body = await _read(response)
                if response.status in REDIRECTED:
                    raise SideError(f"redirects to another address (HTTP {response.status})", free=True)
                delay = _number(response.headers.get("Retry-After", ""))
                names = tuple(map(unquote, filter(None, response.headers.get(X_V3_UNSUPPORTED, "").split(", "))))
                cost = _number(response.headers.get("X-Parts-Cost", ""))
                made = SideResponse(response.status, body, cost, unsupported=names)
                return made, RETRY_DELAY if delay is None else delay
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is a subclass of OSError
            raise _translated(error) from error


def _translated(error: Exception) -> SideError:
    number = error.os_error.errno if isinstance(error, aiohttp.ClientConnectorError) else None
    reason = f": {os.strerror(number)}" if number and number > 0 else ""
    for kinds, words in _WORDS:
        if isinstance(error, kinds):
            return SideError(words.format(reason=reason), free=isinstance(error, _UNSENT))
    return SideError("sent bytes that are not HTTP")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > BYTES_MAX:
            raise SideError(f"sent a response of more than {BYTES_MAX} bytes")
    return bytes(body)


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session for one side: no cookies, no proxy or credentials from the environment."""
    async with aiohttp.ClientSession(
        # Cookies would make responses depend on earlier requests.
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=SECONDS, sock_connect=CONNECT_SECONDS),
        headers={"User-Agent": f"v3bridge-compare/{proxy.__version__}", "Accept": "application/json, */*"},
    ) as opened:
        yield opened


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
