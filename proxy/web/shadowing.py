"""Shadowing: builds the shadow as configured, and the middleware that offers requests with their responses to it.

Without shadowing no middleware is added.
"""

import gzip
import os
import random
import secrets
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proxy import config, errors
from proxy.compare import estimate, loader
from proxy.compare.replies import Reply
from proxy.compare.shadow import day_budget, errand, gathering, judge, messages, old_service, shadow, watch
from proxy.compare.shadow.seen import Seen
from proxy.gateway.applications import Applications
from proxy.kit.clock import Clock
from proxy.mapping import loader as mapping
from proxy.stores.protocols import Store
from proxy.telemetry.metrics import Metrics
from proxy.upstream import policies
from proxy.web import legacy_proxy, middleware
from proxy.web.v3.responses import X_CACHE, X_COST
from proxy.web.v3.routes import CLIENT

CACHED = ("hit", "stale")  # X-Cache of responses whose data may have changed since: not comparable
SERVICE = "the shadow's other side"

log = structlog.get_logger()


async def middlewares(
    settings: config.Config,
    served: Applications,
    *,
    store: Store,
    clock: Clock,
    metrics: Metrics,
    resources: AsyncExitStack,
) -> list[Middleware]:
    """The middleware that shadows requests, to stand around the request middleware; none if shadowing is off."""
    if settings.shadow.old_url is None or settings.upstream == "sandbox" or not settings.shadow.enabled:
        return []
    if not any(each.shadow.share for each in settings.applications.values()):
        return []
    started = await _start_shadow(
        settings, settings.upstream, served, store=store, clock=clock, metrics=metrics, resources=resources
    )
    return [_observing(started, clock)]


def _observing(offered: shadow.Shadow, clock: Clock) -> Middleware:
    """Offers a share of the requests with their responses to the shadow. Never changes a response, or fails one."""

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = clock.monotonic()
        response = await handler(request)
        try:
            client = request.get(CLIENT)
            application = "" if client is None else client.application.name
            if application and offered.wants(application) and _comparable(request, response):
                reply = _reply(response, clock.monotonic() - began)
                new_handler = request.get(legacy_proxy.NEW_HANDLER)
                ask_new = None if new_handler is None else partial(_new_response, new_handler, request, clock)
                offered.offer(Seen(application, request.raw_path, reply, clock.now(), ask_new))
        except Exception as error:  # the client has its response: shadowing must not fail it
            log.error("shadow enqueue failed", exc_info=error)
        return response

    return around


async def _start_shadow(
    settings: config.Config,
    upstream: config.Upstream,
    served: Applications,
    *,
    store: Store,
    clock: Clock,
    metrics: Metrics,
    resources: AsyncExitStack,
) -> shadow.Shadow:
    own = settings.shadow
    owner = f"shadow-{secrets.token_hex(8)}"
    rng = random.SystemRandom()
    breaker = policies.Breaker("shadow", SERVICE, own.breaker, clock=clock, rng=rng, metrics=metrics)
    place = gathering.Gathering(store, owner)

    file = None if own.rules is None else Path(own.rules)
    uids = tuple(mapping.uids_in(Path(settings.uids))) if settings.uids else ()
    known = loader.load(file, os.environ)  # a mistake stops the start; the judging process loads it again

    async def order() -> messages.Order:
        return messages.Order(None if file is None else str(file), upstream.site, await place.resume(), uids)

    judging = judge.JudgingProcess(order)
    limit = own.parts if isinstance(own.parts, int) else None
    budget = day_budget.DayBudget(store, owner, limit, estimate.parts_at_worst, clock)
    http = legacy_proxy.open_session(upstream, own.connections, own.timeouts, resources)
    errands = errand.Errands(
        served=served,
        keys={key.source: key for key in known.keys if key.source is not None},
        old=old_service.OldService(http, str(own.old_url), own.timeouts.total_seconds, clock),
        budget=budget,
        judge=judging,
        breaker=breaker,
        metrics=metrics,
    )
    shares = {name: each.shadow.share for name, each in settings.applications.items()}
    chosen = shadow.Shadow(own, shares, errands, breaker, clock=clock, rng=rng, metrics=metrics)
    watching = watch.Watch(chosen, judging, place, budget, clock)
    resources.push_async_callback(watching.close)
    await watching.start()
    return chosen


def _comparable(request: web.Request, response: web.StreamResponse) -> bool:
    """Whether the response is complete and its data current."""
    whole = isinstance(response, web.Response) and isinstance(response.body, bytes) and request.method == "GET"
    return whole and response.status != 304 and response.headers.get(X_CACHE) not in CACHED


def _reply(response: web.StreamResponse, seconds: float) -> Reply:
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    cost = response.headers.get(X_COST)
    return Reply(response.status, body, seconds, response.content_type, None if cost is None else int(cost))


async def _new_response(new_handler: Handler, request: web.Request, clock: Clock) -> Reply | None:
    """The response of this service to a request that the old service answered; None if it came from the cache."""
    began = clock.monotonic()
    again = request.clone()
    try:
        response = await new_handler(again)
    except errors.BridgeError as error:
        response = middleware.error_response(error, again)
    if response.headers.get(X_CACHE) in CACHED:
        return None
    return _reply(response, clock.monotonic() - began)
