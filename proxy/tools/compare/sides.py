"""Sides of a comparison: services over HTTP, running or started here, and recordings.

Every request yields a SideResponse, with the reason of a failure if need be. Reasons complete "the baseline …", are
equal for all requests with that reason, name no address, and hold no key except in the side's own message.
"""

import asyncio
import dataclasses
import json
import os
import secrets
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple
from urllib.parse import unquote, urlencode

import aiohttp
import msgspec
import yarl

import proxy
from proxy import cli, config
from proxy.tools import running
from proxy.tools.compare.options import SANDBOX
from proxy.traffic.recordings import Recording, SideResponse
from proxy.traffic.v3_request import SideName, V3Request
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
EXAMPLE_KEY = "EXAMPLE_KEY"  # the key that the embedded legacy service accepts
OWN_KEY = "v3bridge-compare"  # name of an application's additional key, where keys are counted


class _Refusal(msgspec.Struct):
    """Fields of an error response with a message."""

    message: str


def failure(response: SideResponse, client: str) -> str | None:
    """Return why a response proves nothing about a translation, worded to complete "the baseline …", with the side's
    own message, such as an exhausted quota; None otherwise."""
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
    try:
        message = msgspec.json.decode(response.body, type=_Refusal).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = ""
    text = "".join(each if each.isprintable() else " " for each in message)
    # Cut between words, so that a key in it is whole and will be redacted.
    words = textwrap.shorten(text, MESSAGE_MAX, placeholder=" …", break_on_hyphens=False, break_long_words=False)
    return f"{reason} (HTTP {response.status})" + (f": {words}" if words else "")


@dataclasses.dataclass(eq=False, repr=False)
class HttpSide:
    """Service at `base`, an address that ends in /v3. `key` returns the API key of a client by its name; `rate` is in
    requests per second, 0 for no limit."""

    base: str
    key: Callable[[str], str | None]
    session: aiohttp.ClientSession
    rate: float = 0.0
    sleep: Sleep = asyncio.sleep
    _next: float = 0.0  # when the next request may be sent, by the clock of the event loop
    _slots: asyncio.Semaphore = dataclasses.field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def fetch(self, request: V3Request) -> SideResponse:
        """Send a request; a failure is returned as a response with its reason."""
        return await self._fetch(self.base + request.target(self.key(request.client)))

    async def fetch_links(self, uids: list[str], client: str) -> SideResponse:
        """Ask the GraphQL endpoint beside v3, which v3bridge has, for the links of all offers of parts."""
        query = urlencode({"query": LINKS.replace("UIDS", json.dumps(uids)), "apikey": self.key(client) or ""})
        return await self._fetch(f"{self.base.removesuffix('/v3').removesuffix('/api')}/graphql?{query}")

    async def _fetch(self, address: str) -> SideResponse:
        url, loop = yarl.URL(address, encoded=True), asyncio.get_running_loop()
        async with self._slots:
            for _ in range(ATTEMPTS):
                # The next place in the rate; retries take one, too.
                now = loop.time()
                at = max(now, self._next)
                self._next = at + (1 / self.rate if self.rate else 0.0)
                if at > now:
                    await self.sleep(at - now)
                response, delay = await self._send_once(url)
                # A response that has cost parts is final, and so is one that asks for more than a pause.
                if response.status != 429 or response.parts or delay > RETRY_DELAY_MAX:
                    break
                # All requests wait: the limit that one has met applies to the others as well.
                self._next = max(self._next, loop.time() + delay)
        return response

    async def _send_once(self, url: yarl.URL) -> tuple[SideResponse, float]:
        """Send once; return the response and the seconds of its Retry-After. What certainly was not billed costs 0."""
        body = bytearray()
        try:
            # Redirects are not followed: they could take the API key to other servers.
            async with self.session.get(url, allow_redirects=False) as response:
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > BYTES_MAX:
                        return SideResponse(0, b"", failure=f"sent a response of more than {BYTES_MAX} bytes"), 0.0
                if response.status in REDIRECTED:
                    reason = f"redirects to another address (HTTP {response.status})"
                    return SideResponse(0, b"", 0, reason), 0.0
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is a subclass of OSError
            words = next((words for kind, words in _WORDS if isinstance(error, kind)), "sent bytes that are not HTTP")
            number = error.os_error.errno if isinstance(error, aiohttp.ClientConnectorError) else None
            reason = f": {os.strerror(number)}" if number and number > 0 else ""
            parts = 0 if isinstance(error, _UNSENT) else None
            return SideResponse(0, b"", parts, words.format(reason=reason)), 0.0
        retry_after, cost = (
            int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
            for text in (response.headers.get(name, "") for name in ("Retry-After", "X-Parts-Cost"))
        )
        names = tuple(map(unquote, filter(None, response.headers.get(X_V3_UNSUPPORTED, "").split(", "))))
        made = SideResponse(response.status, bytes(body), cost, unsupported=names)
        return made, RETRY_DELAY if retry_after is None else retry_after


def open_session() -> aiohttp.ClientSession:
    """Open a session without cookies, and without proxy or credentials from the environment."""
    return aiohttp.ClientSession(
        # Cookies would make responses depend on earlier requests.
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=SECONDS, sock_connect=CONNECT_SECONDS),
        headers={"User-Agent": f"v3bridge-compare/{proxy.__version__}", "Accept": "application/json, */*"},
    )


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


class Sides(NamedTuple):
    """Open sides; without a candidate, responses are only recorded. `free`: the requests cost nothing; `keys` are those
    that were made for the run."""

    baseline: HttpSide | Recording
    candidate: HttpSide | None
    free: bool = False
    keys: tuple[str, ...] = ()


@asynccontextmanager
async def open_sides(
    baseline: str | Recording,
    candidate: str | config.Config | None,
    key: Callable[[str, SideName], str | None],
    baseline_rate: float,
) -> AsyncIterator[Sides]:
    """Open both sides: a URL, a recording or `sandbox`, and a URL, a configuration to serve here, or None. `key`
    returns the API key of a client for a side."""
    async with AsyncExitStack() as stack:
        url = candidate if isinstance(candidate, str) else None
        legacy, free, own = None, False, dict[str, str]()
        if isinstance(candidate, config.Config):
            free = candidate.upstream == "sandbox"
            if free:
                import nexar_sandbox

                # Its old service is without a rate limit, and the quota of the other practically unlimited.
                unlimited = nexar_sandbox.LegacySettings(requests_per_second=None)
                settings = dataclasses.replace(running.endless_sandbox(), legacy=unlimited)
                candidate, upstream = await cli.with_sandbox(candidate, stack, settings)
                legacy = upstream.legacy_url
            url, own = await _serve(candidate, stack)
        session = await stack.enter_async_context(open_session())
        # With one application, its key serves clients that have none; with several, a guess may bill another.
        alone = next(iter(own.values())) if len(own) == 1 else None
        new = HttpSide(base_url(url), lambda client: key(client, "candidate") or alone, session) if url else None
        old: HttpSide | Recording
        if isinstance(baseline, Recording):
            old = baseline
        elif legacy is not None and baseline == SANDBOX:
            old = HttpSide(base_url(legacy), lambda _: EXAMPLE_KEY, session)
        else:
            old = HttpSide(base_url(baseline), lambda client: key(client, "baseline"), session, baseline_rate)
        yield Sides(old, new, free, tuple(own.values()))


async def _serve(settings: config.Config, stack: AsyncExitStack) -> tuple[str, dict[str, str]]:
    """Serve a configuration on loopback, until `stack` is closed; return its URL, and one additional API key for each
    application, for requests without a key."""
    from proxy import app

    keys = {name: secrets.token_hex(16) for name in settings.applications}
    applications = {
        name: msgspec.structs.replace(
            entry,
            rate=0,
            apikeys=(
                # Without a rate limit: the run has rate limits of its own.
                *(msgspec.structs.replace(key, rate=0) for key in entry.apikeys),
                config.ApiKeySettings(config.digest(keys[name]), OWN_KEY),
            ),
        )
        for name, entry in settings.applications.items()
    }
    local = msgspec.structs.replace(
        settings,
        applications=applications,
        listen=config.ListenSettings(port=0),
        admin=False,
    )
    service = await stack.enter_async_context(app.serving(local))
    return service.url, keys
