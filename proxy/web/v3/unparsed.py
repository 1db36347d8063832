"""Cache hits answered from the received bytes of their requests, before these are parsed.

A client that repeats a request sends the same bytes: the request line, and the same header fields in the same order.
The first hit through its handler links these bytes with the cache entry; from then on equal bytes get that entry at
once, without aiohttp's parser, request object and task, which take longer than all the rest of a hit. Fields with an
id, which is another one in each request, are taken out of the bytes first. What the bytes do not decide is done for
each request: whether the client's address may use its API key, request id, usage headers, metrics and log line.
Anything unusual is left to the handler.
"""

import re
from typing import NamedTuple

from aiohttp import HttpVersion11, hdrs, helpers, http, web

from proxy.gateway.pipeline import Pipeline
from proxy.kit.aiohttp_internals.server import received_head
from proxy.telemetry.activity import Activity
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.request_ids import RequestIds
from proxy.telemetry.request_log import RequestLog
from proxy.v3.endpoints import ENDPOINTS, PREFIXES
from proxy.v3.headers import X_V3_UNSUPPORTED
from proxy.web.authentication import Authenticator
from proxy.web.client_address import ClientAddressResolver
from proxy.web.v3 import responses
from proxy.web.v3.encoded_cache import EncodedResponse, EncodedResponseCache, RequestKey, RequestLabels

# Paths without a uid: they are their own route.
PATHS = frozenset(
    f"{prefix}{endpoint.path}{slash}"
    for endpoint in ENDPOINTS
    for prefix in PREFIXES
    for slash in ("", "/")
    if "{" not in endpoint.path
)
# Fields with an id, whose values are plain words: aiohttp decides on any others.
_ID_FIELD = re.compile(rb"\r\n(x-request-id|traceparent): *([!-~]+)(?=\r\n)", re.IGNORECASE)


class HitContext(NamedTuple):
    """What each hit needs."""

    authenticator: Authenticator
    addresses: ClientAddressResolver
    pipeline: Pipeline
    ids: RequestIds
    metrics: Metrics
    activity: Activity
    log: RequestLog


class UnparsedHits:
    """Function from received bytes to the whole response of a cache hit, or None if they are to be parsed."""

    def __init__(self, cache: EncodedResponseCache, context: HitContext) -> None:
        self._cache = cache
        self._context = context
        self._clock = context.metrics.clock
        self._log = context.log
        self._usage: tuple[object, str] = None, ""  # of the last hit: what its usage headers show, and their lines

    def __call__(self, data: bytes, peer: str | None) -> bytes | None:
        """Return the response to a request head from the address `peer`."""
        started = self._clock.monotonic()
        known = self._cache.find(data)
        fields = _ID_FIELD.findall(data) if known is None else []
        if fields:
            known = self._cache.find(_without_ids(data))
        if known is None:
            return None
        head, cached = known
        address = self._context.addresses.resolve(peer, head.labels.forwarded)
        if self._clock.now() >= cached.client.end:
            return None
        # An address that is unknown may be throttled: the handler decides, and remembers the key.
        if not self._context.authenticator.knows(address.group, cached.client):
            return None
        request_id = self._request_id(data, fields) if fields else self._context.ids.new()
        response = self._response(cached, request_id, started - cached.metadata.stored)
        self._record(head.labels, cached, address.address, self._clock.monotonic() - started, request_id)
        return response

    def remember(self, request: web.Request, target: RequestKey, cached: EncodedResponse) -> None:
        """Link the bytes of a request with its cache entry, if equal bytes are always equal requests."""
        head, route = received_head(request), request.raw_path.partition("?")[0]
        if (
            head is not None
            and route in PATHS
            and _is_plain(request)
            and not (cached.client.rate or X_V3_UNSUPPORTED in cached.body.headers)
        ):
            forwarded = self._context.addresses.forwarded(request)
            # Redacted here, and not when they are read: a link may be held for a day.
            shown, agent = self._context.activity.shown(request.raw_path, request.headers.get(hdrs.USER_AGENT, ""))
            self._cache.link(_without_ids(head), *target, RequestLabels(route, shown, agent, forwarded))

    def _request_id(self, data: bytes, fields: list[tuple[bytes, bytes]]) -> str:
        """Return the request's id, by the fields of a head that have one; of equal names the first one counts."""
        ids = {name.lower(): value.decode("ascii") for name, value in reversed(fields)}
        target = data.split(b" ", 2)[1].decode("utf-8", "surrogateescape")
        return self._context.ids.resolve(ids.get(b"x-request-id"), ids.get(b"traceparent"), target)

    def _response(self, cached: EncodedResponse, request_id: str, age: float) -> bytes:
        """Return the bytes that aiohttp would write for the handler's response."""
        body, metadata = cached.body.body, cached.metadata
        status = self._context.pipeline.quota_status(cached.client)
        shown = metadata.source, age // 1, metadata.cost, status
        known, lines = self._usage
        if shown != known:
            usage = responses.usage_headers(metadata, status, age)
            lines = "".join([f"{name}: {value}\r\n" for name, value in usage.items()])
            self._usage = shown, lines
        if cached.client.sunset is not None:
            lines += cached.client.sunset.head
        return f"{cached.head}{lines}X-Request-Id: {request_id}\r\n{_head_end(len(body))}".encode("ascii") + body

    def _record(
        self, labels: RequestLabels, cached: EncodedResponse, address: str, seconds: float, request_id: str
    ) -> None:
        metrics, client = self._context.metrics, cached.client
        route, name = labels.route, client.application.name
        metrics.queries["hit",] += cached.metadata.results
        metrics.requests[route, "200"] += 1
        metrics.request_seconds.observe(route, seconds)
        now, agent = self._clock.now(), labels.user_agent
        # fmt: off
        self._context.activity.add_request((
            now, request_id, "GET", labels.target, route, 200, seconds * 1000, address, agent, name, client.key, 0,
            "hit", None, cached.metadata.cached, 0, cached.metadata.ignored,
        ))
        # fmt: on
        if self._log.logs_requests:
            fields = ("GET", route, 200, address, name, client.key, 0, "hit", None, False)
            self._log.write(fields, seconds, request_id)


def _head_end(length: int) -> str:
    """Return the last fields of a response head, and its end, as aiohttp writes them."""
    date, server = helpers.rfc822_formatted_time(), http.SERVER_SOFTWARE
    return f"Content-Length: {length}\r\nDate: {date}\r\nServer: {server}\r\n\r\n"


def _without_ids(head: bytes) -> bytes:
    """Return a head without its fields that have an id."""
    return _ID_FIELD.sub(b"", head)


def _is_plain(request: web.Request) -> bool:
    """Return whether a request leaves its connection open and has no body."""
    return (
        request.method == "GET"
        and request.version == HttpVersion11
        and request.keep_alive
        and not request.can_read_body
        and hdrs.UPGRADE not in request.headers  # it changes the connection
    )
