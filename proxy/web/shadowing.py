"""Shadowing: builds the shadow as configured, and the middleware that offers requests with their responses to it.

Without shadowing no middleware is added.
"""

import gzip
import os
import random
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proxy import config, errors
from proxy.gateway.applications import Applications
from proxy.gateway.assembly import Gateway
from proxy.gateway.process import SharedResources
from proxy.kit.clock import Clock
from proxy.mapping import loader as mapping
from proxy.shadow import baseline_client, controller, daily_budget, job, judge_client, messages, queue, results
from proxy.shadow.job import ComparisonJob
from proxy.stores.protocols import Store
from proxy.telemetry.metrics import Metrics
from proxy.tools.compare.shadow import report
from proxy.traffic import estimate
from proxy.traffic.sources.clients import ClientKeys
from proxy.traffic.v3_response import SideResponse
from proxy.upstream import policies
from proxy.web import legacy_proxy, middleware
from proxy.web.v3.responses import X_CACHE, X_COST
from proxy.web.v3.routes import CLIENT, is_v3

CACHED = ("hit", "stale")  # X-Cache of responses whose data may have changed since: not comparable
SERVICE = "the baseline of the shadow"

log = structlog.get_logger()


async def middlewares(gateway: Gateway, shared: SharedResources, resources: AsyncExitStack) -> list[Middleware]:
    """Return the middleware that shadows requests, to stand around the request middleware; none if shadowing is off.

    The shadow goes on over a reload that changes nothing of what it compares with.
    """
    settings = gateway.settings
    # The sandbox's data are invented: a comparison with the old service would say nothing.
    if settings.shadow.baseline_url is None or settings.upstream == "sandbox" or not settings.shadow.enabled:
        return []
    if not any(application.shadow.share for application in settings.applications.values()):
        return []
    upstream, files = settings.upstream, tuple(gateway.contents.items())
    key = "shadow", settings.shadow, upstream, files, tuple(settings.applications.items())

    async def start(closing: AsyncExitStack) -> queue.ShadowQueue:
        return await _start_shadow(
            settings,
            upstream,
            gateway.applications,
            store=gateway.store,
            clock=gateway.clock,
            metrics=gateway.metrics,
            resources=closing,
        )

    return [_observing(await shared.obtain(key, resources, start), gateway.clock)]


def _observing(shadow_queue: queue.ShadowQueue, clock: Clock) -> Middleware:
    """Offers a share of the requests with their responses to the shadow. Never changes a response, or fails one."""

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = clock.monotonic()
        response = await handler(request)
        try:
            client = request.get(CLIENT)
            if client is None or not is_v3(request) or client.refusal(clock.now()) is not None:
                return response
            application = client.application.name
            if shadow_queue.wants(application) and _comparable(request, response):
                candidate = _side_response(response, clock.monotonic() - began)
                new_handler = request.get(legacy_proxy.NEW_HANDLER)
                # With `shadow.response: baseline` the client got the old response: this service has to be requested
                # later.
                request_candidate = None if new_handler is None else partial(_new_response, new_handler, request, clock)
                shadow_queue.offer(
                    ComparisonJob(application, request.raw_path, candidate, clock.now(), request_candidate)
                )
        except Exception as error:  # the client has its response: shadowing must not fail it
            log.error("shadow enqueue failed", exc_info=error)
        return response

    return around


async def _start_shadow(
    settings: config.Config,
    upstream: config.UpstreamSettings,
    served: Applications,
    *,
    store: Store,
    clock: Clock,
    metrics: Metrics,
    resources: AsyncExitStack,
) -> queue.ShadowQueue:
    shadow = settings.shadow
    # An owner of its own in the store: the budget has its own ledger beside that of the clients.
    owner = f"shadow-{secrets.token_hex(8)}"
    rng = random.SystemRandom()
    breaker = policies.CircuitBreaker("shadow", SERVICE, shadow.breaker, clock=clock, rng=rng, metrics=metrics)
    slot = results.ResultSlot(store, owner)

    uids = tuple(mapping.known_uids(Path(settings.uids))) if settings.uids else ()
    keys = client_keys(shadow, os.environ)  # a mistake stops the start; the judging process loads the rules again

    async def setup() -> messages.JudgeSetup:
        rules = None if shadow.rules is None else str(shadow.rules)
        return messages.JudgeSetup(rules, upstream.site, await slot.resume(), uids)

    judge = judge_client.JudgeClient(setup)
    limit = shadow.parts if isinstance(shadow.parts, int) else None
    budget = daily_budget.DailyBudget(store, owner, limit, estimate.worst_case_parts, clock)
    http = legacy_proxy.open_session(upstream, shadow.connections, shadow.timeouts, resources)
    jobs = job.JobRunner(
        served=served,
        keys={key.source: key for key in keys if key.source is not None},
        baseline=baseline_client.BaselineClient(http, str(shadow.baseline_url), shadow.timeouts.total_seconds, clock),
        budget=budget,
        judge=judge,
        breaker=breaker,
        metrics=metrics,
    )
    shares = {name: application.shadow.share for name, application in settings.applications.items()}
    shadow_queue = queue.ShadowQueue(shadow, shares, jobs, breaker, clock=clock, rng=rng, metrics=metrics)
    shadow_controller = controller.ShadowController(shadow_queue, judge, slot, budget, clock)
    resources.push_async_callback(shadow_controller.close)
    await shadow_controller.start()
    return shadow_queue


def client_keys(shadow: config.ShadowSettings, environ: Mapping[str, str]) -> tuple[ClientKeys, ...]:
    """Load the rules of the comparison, and return the API keys in their file. Raises ConfigError with every mistake
    in it."""
    return report.load_rules(shadow, environ).keys


def _comparable(request: web.Request, response: web.StreamResponse) -> bool:
    """Return whether the response is complete and its data current."""
    complete = isinstance(response, web.Response) and isinstance(response.body, bytes) and request.method == "GET"
    return complete and response.status != 304 and response.headers.get(X_CACHE) not in CACHED


def _side_response(response: web.StreamResponse, seconds: float) -> SideResponse:
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    cost = response.headers.get(X_COST)
    return SideResponse(response.status, body, seconds, response.content_type, None if cost is None else int(cost))


async def _new_response(new_handler: Handler, request: web.Request, clock: Clock) -> SideResponse | None:
    """Return the response of this service to a request that the old service answered; None if it came from the
    cache."""
    began = clock.monotonic()
    repeated = request.clone()
    try:
        response = await new_handler(repeated)
    except errors.BridgeError as error:
        response = middleware.error_response(error, repeated)
    if response.headers.get(X_CACHE) in CACHED:
        return None
    return _side_response(response, clock.monotonic() - began)
