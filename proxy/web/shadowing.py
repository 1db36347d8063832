"""Where the shadow meets the service: what it is made of, and the middleware that offers it what was answered.

Where nothing is shadowed, nothing of it is on the way of a request.
"""

import gzip
import os
import random
import secrets
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proxy import config, errors
from proxy.compare import loader
from proxy.compare.responses import SideResponse
from proxy.compare.running import estimate
from proxy.compare.shadow import baseline_client, controller, daily_budget, job, judge_client, messages, queue, results
from proxy.compare.shadow.job import ComparisonJob
from proxy.gateway.applications import Applications
from proxy.kit.clock import Clock
from proxy.mapping import loader as mapping
from proxy.stores.protocols import Store
from proxy.telemetry.metrics import Metrics
from proxy.upstream import policies, session
from proxy.web import middleware, relay
from proxy.web.v3.replies import X_CACHE, X_COST
from proxy.web.v3.routes import CLIENT
from proxy.web.wrong_keys import WrongKeys

KEPT = ("hit", "stale")  # replies of answers that were asked for a while ago: the data may have moved since
SERVICE = "the shadow's other side"

log = structlog.get_logger()


class Around(NamedTuple):
    """Middlewares: around the frame of a request, and inside it."""

    outside: tuple[Middleware, ...] = ()
    inside: tuple[Middleware, ...] = ()


async def connect(
    settings: config.Config,
    keys: WrongKeys,
    served: Applications,
    *,
    store: Store,
    clock: Clock,
    metrics: Metrics,
    opened: AsyncExitStack,
) -> Around:
    """As the configuration has it; what is to be closed is `opened`."""
    found = Around()
    applications = settings.applications
    outside = settings.upstream
    if settings.shadow.old_url is None or outside == "sandbox":
        return found
    if old := frozenset(name for name, each in applications.items() if each.shadow.answer == "old"):
        http = _session(outside, outside.connections, outside.timeouts, opened)
        passing = relay.Relay(http, settings.shadow.old_url, outside.timeouts.total_seconds)
        found = found._replace(inside=(relay.relaying(passing, keys, old),))
    if settings.shadow.enabled and any(each.shadow.share for each in applications.values()):
        shadowing = await _shadow(settings, outside, served, store=store, clock=clock, metrics=metrics, opened=opened)
        found = found._replace(outside=(observed(shadowing, clock),))
    return found


def observed(offered: queue.ShadowQueue, clock: Clock) -> Middleware:
    """Offers a share of the calls with their replies; whatever comes of that, the reply is the same."""

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = clock.monotonic()
        response = await handler(request)
        try:
            client = request.get(CLIENT)
            application = "" if client is None else client.application.name
            if application and offered.wants(application) and _comparable(request, response):
                reply = _reply(response, clock.monotonic() - began)
                new_way = request.get(relay.NEW_WAY)
                ask_new = None if new_way is None else partial(_ask_new, new_way, request, clock)
                offered.offer(ComparisonJob(application, request.raw_path, reply, clock.now(), ask_new))
        except Exception as error:  # never a reply's business
            log.error("shadow enqueue failed", exc_info=error)
        return response

    return around


async def _shadow(
    settings: config.Config,
    outside: config.Upstream,
    served: Applications,
    *,
    store: Store,
    clock: Clock,
    metrics: Metrics,
    opened: AsyncExitStack,
) -> queue.ShadowQueue:
    own = settings.shadow
    owner = f"shadow-{secrets.token_hex(8)}"
    rng = random.SystemRandom()
    breaker = policies.Breaker("shadow", SERVICE, own.breaker, clock=clock, rng=rng, metrics=metrics)
    place = results.ResultSlot(store, owner)

    file = None if own.rules is None else Path(own.rules)
    uids = tuple(mapping.known_uids(Path(settings.uids))) if settings.uids else ()
    known = loader.load(file, os.environ)  # here, so that a mistake stops the start; the process does anew

    async def order() -> messages.JudgeSetup:
        return messages.JudgeSetup(None if file is None else str(file), outside.site, await place.resume(), uids)

    judging = judge_client.JudgeClient(order)
    limit = own.parts if isinstance(own.parts, int) else None
    budget = daily_budget.DailyBudget(store, owner, limit, estimate.worst_case_parts, clock)
    http = _session(outside, own.connections, own.timeouts, opened)
    errands = job.JobRunner(
        served=served,
        keys={key.source: key for key in known.keys if key.source is not None},
        baseline=baseline_client.BaselineClient(http, str(own.old_url), own.timeouts.total_seconds, clock),
        budget=budget,
        judge=judging,
        breaker=breaker,
        metrics=metrics,
    )
    shares = {name: each.shadow.share for name, each in settings.applications.items()}
    chosen = queue.ShadowQueue(own, shares, errands, breaker, clock=clock, rng=rng, metrics=metrics)
    watching = controller.ShadowController(chosen, judging, place, budget, clock)
    opened.push_async_callback(watching.close)
    await watching.start()
    return chosen


def _session(
    outside: config.Upstream, connections: int, timeouts: config.Timeouts, opened: AsyncExitStack
) -> aiohttp.ClientSession:
    """Connections to the old service: the ways out of the network are the same, our certificate is not for it."""
    tls = config.Tls(ca_file=outside.tls.ca_file)
    http = session.open_session(msgspec.structs.replace(outside, connections=connections, timeouts=timeouts, tls=tls))
    opened.push_async_callback(http.close)
    return http


def _comparable(request: web.Request, response: web.StreamResponse) -> bool:
    """Whether there is a whole reply that is an answer of this moment."""
    whole = isinstance(response, web.Response) and isinstance(response.body, bytes) and request.method == "GET"
    return whole and response.status != 304 and response.headers.get(X_CACHE) not in KEPT


def _reply(response: web.StreamResponse, seconds: float) -> SideResponse:
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    cost = response.headers.get(X_COST)
    return SideResponse(response.status, body, seconds, response.content_type, None if cost is None else int(cost))


async def _ask_new(new_way: Handler, request: web.Request, clock: Clock) -> SideResponse | None:
    """What the client would have been given, had the new way answered."""
    began = clock.monotonic()
    again = request.clone()
    try:
        response = await new_way(again)
    except errors.BridgeError as error:
        response = middleware.failed(error, again)
    if response.headers.get(X_CACHE) in KEPT:
        return None
    return _reply(response, clock.monotonic() - began)
