"""Middleware around every request: its id, the address of its client, log line, metrics, and error responses. A client
always gets JSON with a message; what it must not see is logged, by type and place.
"""

import asyncio
import ipaddress
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import count

import structlog
from aiohttp import hdrs, web
from multidict import istr

from proxy import errors, redaction
from proxy import log as logging
from proxy.gateway import Gateway, SeenRequests
from proxy.log import REDACTION, REQUEST_ID
from proxy.model import FailureDetail
from proxy.v3 import endpoints
from proxy.web import messages, operators
from proxy.web.messages import ClientAddress, Request

log = structlog.get_logger()

PLAIN = "this port speaks plain HTTP: send http:// URLs to it, or put a TLS server in front (docs/run.md)"
AUTHORITY = re.compile(r"[a-z0-9.-]{1,253}:\d{1,5}", re.IGNORECASE)  # of a CONNECT: RFC 9110 §9.3.6

X_FORWARDED_FOR = istr("X-Forwarded-For")
HOPS_MAX, FORWARDED_MAX = 32, 2_000  # entries of the header that are parsed, and characters, from its right end
RESOLVED_MAX = 1_000  # addresses that are remembered
X_REQUEST_ID = istr("X-Request-Id")  # no case folding at every look-up

# Characters of an id that are percent-encoded although they need not be: only these can hide an id in a target.
_ESCAPED = re.compile(r"%(?:2[DEde]|3[0-9]|[46][1-9A-Fa-f]|5[0-9AFaf]|7[0-9Aa])")
# Ids are written to the log: no line break, nothing long.
_CLIENT_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass
class RequestIds:
    """Makes ids of 8 random hex digits of the process and an 8-digit counter."""

    redaction: redaction.Redaction
    _process: str = field(default_factory=partial(secrets.token_hex, 4))
    _numbers: Iterator[int] = field(default_factory=count)

    def resolve(self, client_id: str | None, target: str) -> str:
        """Return the client's id, or a new one if that is not well-formed, an API key, or begins one in `target`."""
        if client_id and _CLIENT_ID.fullmatch(client_id) and not self.redaction.is_key(client_id):
            # Without the id in it, plain or encoded, the target need not be decoded.
            given = redaction.given(target) if client_id in target or _ESCAPED.search(target) else ()
            if not any(key.startswith(client_id) for key in given):
                return client_id
        return f"{self._process}{next(self._numbers):08x}"


def client_address(
    trusted: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network], remote: str, forwarded: str
) -> ClientAddress:
    """Return the address of a client: that of its connection, or of X-Forwarded-For where trusted proxies connect.

    Each proxy appends the address of its own client, so the right end is true, and the left end can be forged: the
    client is the rightmost address that is not a trusted proxy."""
    client = _parsed(remote)
    if client is None:
        return ClientAddress("unknown", "unknown")  # such as of a Unix socket
    entries = forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:]
    while entries and any(client in network for network in trusted):
        before = _parsed(entries.pop())
        if before is None:  # trusted proxies write addresses only
            break
        client = before
    # A provider gives a customer a /64 at least, so that single addresses could be changed at will.
    group = client if client.version == 4 else ipaddress.ip_network((client, 64), strict=False)
    return ClientAddress(str(client), str(group))


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse `192.0.2.1` or `2001:db8::1`, with or without a port. An IPv4-mapped IPv6 address becomes IPv4."""
    # A zone index, as in fe80::1%eth0, names an interface of this machine.
    text = text.strip().partition("%")[0]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


class RequestMiddleware:
    """Handles every request of a configuration by its routes."""

    def __init__(self, routes: messages.Routes, gateway: Gateway, ids: RequestIds, seen: SeenRequests) -> None:
        self._routes, self._ids, self._seen = routes, ids, seen
        self._metrics, self._clock = gateway.metrics, gateway.clock
        self._trusted = tuple(map(ipaddress.ip_network, gateway.settings.listen.trusted_proxies))
        self._address = lru_cache(RESOLVED_MAX)(partial(client_address, self._trusted))
        self.in_flight = 0  # requests that are being handled

    async def handle(self, request: Request) -> web.StreamResponse:
        started = self._clock.monotonic()
        request.id = self._ids.resolve(request.headers.get(X_REQUEST_ID), request.raw_path)
        REQUEST_ID.set(request.id)  # the task of this request ends with it
        REDACTION.set(self._ids.redaction)
        forwarded = ", ".join(request.headers.getall(X_FORWARDED_FOR, ())) if self._trusted else ""
        request.origin = self._address(request.remote or "", forwarded[-FORWARDED_MAX:])
        request.added = {X_REQUEST_ID: request.id}
        self.in_flight += 1
        try:
            response = await (self._routes.find(request) or _unserved)(request)
            caught: Exception | None = request.failure
        except Exception as error:
            caught = error
            if isinstance(error, errors.BridgeError):
                request.failure = error
            else:  # a bug: the client gets the request id, the log the exception's type and place
                request.failure = errors.ServerError(f"Internal error (request {request.id})")
            response = (request.render or messages.error_response)(request.failure, request)
        finally:
            self.in_flight -= 1
        if caught is not request.failure:
            log.error("internal error caught", exc_info=caught)
        elif isinstance(caught, errors.ServerError):
            log.warning("request failed", exc_info=caught)
        response.headers.update(request.added)
        self._record(request, response.status, self._clock.monotonic() - started)
        return response

    def _record(self, request: Request, status: int, seconds: float) -> None:
        """Count, log and record a request. A failure without a valid API key, of which anybody can cause any number, is
        recorded only if the service itself failed."""
        route, failure, client, metadata = request.route, request.failure, request.client, request.metadata
        self._metrics.requests.inc(route, str(status))
        self._metrics.request_seconds.observe(route, seconds)
        now, kind = self._clock.now(), None if failure is None else type(failure).__name__
        application, key = (None, None) if client is None else (client.application.name, client.key)
        cache = parts = None
        if metadata is not None and (metadata.source or metadata.cost):
            cache, parts = metadata.source, 0 if metadata.is_quote else metadata.cost
        method = request.method if request.method in hdrs.METH_ALL else "other"  # any token is a valid method
        milliseconds, is_check = round(seconds * 1000, 1), route in operators.PATHS
        values = (request.origin.address, application, cache, kind, key, method, milliseconds, parts)
        # Checks are polled by balancers.
        logging.request_completed("debug" if is_check else "info", now, (*values, request.id, route, status))
        if is_check:
            return
        if failure is not None and kind is not None and (key is not None or status >= 500):
            detail = FailureDetail(request.id, method, status, milliseconds, kind, failure.message, request.raw_path)
            self._seen.add_failure(now, route, application, key, detail)
        agent, target = request.headers.get(hdrs.USER_AGENT, ""), request.raw_path
        ignored = () if metadata is None else (*metadata.unsupported, *metadata.sourceless)
        self._seen.add_client(
            now, route, agent, application=application, key=key, target=target, unsupported=ignored, error=kind
        )


async def _unserved(request: Request) -> web.StreamResponse:
    """Show a person at `/` what this is, and where to go on. Raises the error of any other path that is not served."""
    if request.method == "CONNECT":
        # Only host:port is logged: any other target might hold an API key.
        target = request.raw_path if AUTHORITY.fullmatch(request.raw_path) else None
        log.warning("CONNECT refused", target=target)
        raise errors.MethodNotAllowed("CONNECT is refused: this is not a proxy for https; " + PLAIN)
    if request.path in operators.PATHS:
        raise errors.NotFound(operators.MOVED)
    if request.path != "/" or request.method not in messages.READ or not operators.wants_page(request):
        raise errors.NotFound(endpoints.no_such_path(request.path))
    from proxy.web.pages import HOME  # with Jinja2: most workers show no page

    headers = {hdrs.VARY: hdrs.ACCEPT, hdrs.CONTENT_SECURITY_POLICY: HOME.policy}
    return web.Response(text=await asyncio.to_thread(HOME.render), content_type="text/html", headers=headers)
