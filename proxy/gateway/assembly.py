"""Gateway: the pipeline of a configuration, and everything that it uses.

The service is built around a gateway (proxy/app.py); commands use one without a server, with the same quota, tokens and
stored results.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from secrets import token_hex
from typing import NamedTuple

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from proxy import config, errors, model
from proxy.gateway import readiness, services, usage
from proxy.gateway.access_tokens import AccessTokens
from proxy.gateway.applications import Applications, Client
from proxy.gateway.features import Features
from proxy.gateway.free_operations import FreeOperations
from proxy.gateway.lists import Lists
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.process import ProcessState
from proxy.gateway.readiness import FailureReason
from proxy.gateway.stored_state import StoredState
from proxy.gateway.v3_objects import V3Objects
from proxy.kit import shipped
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.mapping import loader, tables
from proxy.planning import listing
from proxy.planning.projection_cache import ProjectionCache
from proxy.store import open as opening
from proxy.telemetry.metrics import Metrics
from proxy.upstream import http_post, policies

SWEEP_SECONDS = 60.0  # between two looks for what the store need not keep
REFRESH_SECONDS = 1.0  # between two looks for what other processes know

log = structlog.get_logger()


class Translation(NamedTuple):
    """Mappings with their compiled projections, and all that they are made of."""

    sources: tuple[str | None, ...]
    mappings: loader.Mappings
    projections: ProjectionCache


class Refreshing:
    """Learns once a second what other processes know. `on_forgotten` is called when results were forgotten."""

    def __init__(self, process: ProcessState, pipeline: Pipeline, applications: Applications) -> None:
        self.on_forgotten: Callable[[], None] = lambda: None
        self._process = process
        self._pipeline = pipeline
        self._applications = applications
        self._charged = usage.charged(applications)
        self._forgotten: str | None = None
        self._is_available = True

    async def refresh(self) -> None:
        process = self._process
        try:
            await self._pipeline.refresh(self._applications.by_name.values())
            await process.usage.refresh(self._charged, process.clock.now())
            forgotten = await process.store.value("forgotten")
            if self._pipeline.has_failed:
                await self.check()
                self._pipeline.has_failed = False
        except errors.StoreUnavailable as error:
            self._note(str(error))
            return
        self._note("")
        if forgotten != self._forgotten:
            self._forgotten = forgotten
            self.on_forgotten()

    async def check(self) -> None:
        """Raise StoreUnavailable where nothing can be begun that costs parts."""
        await self._process.store.put_value("writable", "", 1.0)
        if not self._pipeline.is_ready:
            raise errors.StoreUnavailable("usage of parts is not written yet")

    def _note(self, failure: str) -> None:
        """Log that the store cannot be used, or can be again, once."""
        self._process.metrics.store_unavailable.set(bool(failure))
        if failure and self._is_available:
            log.error("store unavailable", reason=failure)
        elif not failure and not self._is_available:
            log.info("store available")
        self._is_available = not failure


@dataclass(frozen=True, slots=True)
class Gateway:
    """Pipeline, and the parts of it that its users need, too."""

    settings: config.Config
    process: ProcessState
    applications: Applications
    translation: Translation
    features: Features
    services: services.UpstreamServices
    lists: Lists
    free: FreeOperations
    pipeline: Pipeline
    objects: V3Objects
    access_tokens: AccessTokens
    refreshing: Refreshing

    @classmethod
    async def open(cls, settings: config.Config, clock: Clock, resources: AsyncExitStack) -> "Gateway":
        """Build a gateway that serves one program, which `resources` closes. Raises MappingError and ConfigError."""
        process = await resources.enter_async_context(opened_process(settings, clock, Metrics(clock)))
        return await build(settings, process, resources)

    @property
    def clock(self) -> Clock:
        return self.process.clock

    @property
    def metrics(self) -> Metrics:
        return self.process.metrics

    @property
    def mappings(self) -> loader.Mappings:
        return self.translation.mappings

    @property
    def state(self) -> StoredState:
        """What the store has."""
        return StoredState(self.process.store, self.settings, self.clock)

    def admit(self, client: Client) -> None:
        """Count a request against the rate limit of its API key. Raises TooManyRequests."""
        self.process.rate_limits.admit(client)

    def quota_status(self, client: Client) -> model.QuotaStatus:
        """Return how many parts are used, and how many may be."""
        return self.process.usage.status(client, self.clock.now())

    def activate(self) -> None:
        """Let the metrics of the process show its accounts and tokens."""
        self.metrics.stored = self.stored_metrics

    def stored_metrics(self) -> Iterator[Metric]:
        """Yield the metrics of what every process reads from the store: usage, and access tokens."""
        yield from self.process.usage.gauges(usage.charged(self.applications), self.clock.now())
        ages = GaugeMetricFamily(
            "v3bridge_token_age_seconds", "Age of the access token in use", labels=("application",)
        )
        for name, age, _ in self.tokens():
            if age is not None:
                ages.add_metric((name,), age)
        yield ages

    def readiness(self) -> dict[str, FailureReason]:
        """Return the conditions of readiness by name, as functions that return why one is not met."""
        owners = [application.credentials for application in self.applications.by_name.values()]
        return readiness.checks(owners, self.refreshing.check, self.services, self.clock)

    def breakers(self) -> dict[str, str]:
        """Return the state of each circuit breaker."""
        return {"graphql": policies.STATES[self.services.breaker.state]}

    def tokens(self) -> Iterator[tuple[str, float | None, errors.CredentialsRefused | None]]:
        """Yield each application with the age of its access token, None before the first, and why it is refused."""
        tokens = self.services.tokens
        for name, application in self.applications.by_name.items():
            yield name, tokens.age(application.credentials), tokens.refusal(application.credentials)

    async def pass_on(self, body: bytes, authorization: str) -> http_post.HttpResponse:
        """Send a GraphQL request of a caller with the caller's own access token. Raises BridgeErrors."""
        return await self.services.pass_on(body, authorization)

    async def listed(self, name: str, client: Client) -> listing.Listing:
        """Return the list of brands, sellers or categories. Raises BridgeErrors."""
        return await self.lists.listing(name, client.application.credentials, self.deadline(self.clock.monotonic()))

    async def specs(self, client: Client) -> tables.Tables:
        """Return the tables with all specs of the upstream. Raises BridgeErrors."""
        return await self.lists.specs(client.application.credentials, self.deadline(self.clock.monotonic()))

    def deadline(self, since: float) -> float:
        """Return until when a request is waited for whose time began at `since`, in monotonic seconds."""
        return since + self.services.settings.total_seconds


@asynccontextmanager
async def opened_process(
    settings: config.Config, clock: Clock, metrics: Metrics, *, name: str = "", ended: Sequence[str] = ()
) -> AsyncIterator[ProcessState]:
    """Open the store of a process, and keep it in order while the block runs. `name` tells the process from others of
    the store, `ended` are the names of processes that have died, whose reservations it ends. Raises ConfigError."""
    worker, cache_bytes = name or token_hex(8), settings.cache.bytes
    store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
    process = ProcessState(store, clock, SystemRandom(), metrics, settings.listen.workers)
    sweeping = PeriodicTask("store", store.sweep, SWEEP_SECONDS, logged=errors.StoreUnavailable)
    try:
        for each in ended:
            await store.end_worker(each)
        sweeping.start()
        yield process
    finally:
        await sweeping.close(None)
        await process.bookings.aclose()
        await store.aclose()


async def build(
    settings: config.Config, process: ProcessState, resources: AsyncExitStack, previous: Gateway | None = None
) -> Gateway:
    """Build a gateway and start its background work, in the event loop that will use it; `resources` closes it.
    `previous` is the one that it replaces.

    `settings.upstream` must hold addresses. Raises MappingError and ConfigError.
    """
    upstream = settings.upstream
    if upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    # In a thread whatever reads files or compiles mappings: the event loop may be serving requests.
    before = None if previous is None else previous.translation
    translation = await asyncio.to_thread(translate, settings, upstream, before)
    projections = translation.projections
    applications = Applications(settings.applications)
    connected = services.connect(upstream, process, resources, None if previous is None else previous.services)
    send, seconds = connected.sender.send, upstream.total_seconds
    free = FreeOperations(send, process.clock, seconds)
    resources.push_async_callback(free.aclose)
    lists = Lists(projections.list_definitions(), send, process.clock, seconds)
    resources.push_async_callback(lists.aclose)
    lists_of = translation, upstream.graphql_url
    if previous is not None and lists_of == (previous.translation, previous.services.settings.graphql_url):
        lists.adopt(previous.lists)
    features = Features(projections, process.store, process.clock)
    pipeline = Pipeline(
        process,
        send,
        features,
        address=upstream.graphql_url,
        seconds=seconds,
        connections=config.UPSTREAM_CONNECTIONS,
    )
    resources.push_async_callback(pipeline.aclose)
    refreshing = Refreshing(process, pipeline, applications)
    refresh = PeriodicTask("refresh", refreshing.refresh, REFRESH_SECONDS, delay=REFRESH_SECONDS)
    await refresh.call()
    resources.push_async_callback(refresh.close)
    refresh.start()
    return Gateway(
        settings=settings,
        process=process,
        applications=applications,
        translation=translation,
        features=features,
        services=connected,
        lists=lists,
        free=free,
        pipeline=pipeline,
        objects=V3Objects(
            pipeline,
            free,
            projections,
            lists=lists,
            single_query=settings.translation.single_query,
            seconds=seconds,
            metrics=process.metrics,
        ),
        access_tokens=AccessTokens(process.store, applications, process.clock),
        refreshing=refreshing,
    )


def translate(
    settings: config.Config, upstream: config.UpstreamSettings, previous: Translation | None = None
) -> Translation:
    """Load the mappings, unless those of `previous` are made of the same. Raises MappingError."""
    uids = [Path(settings.uids)] if settings.uids else []
    sources = upstream.site, shipped.digest(shipped.mapping_files()), shipped.digest(uids)
    if previous is not None and previous.sources == sources:
        return previous
    mappings = loader.load(shipped.path("mappings"), upstream.site, Path(settings.uids) if settings.uids else None)
    projections = ProjectionCache(mappings)
    projections.check(config.FEATURES)
    return Translation(sources, mappings, projections)
