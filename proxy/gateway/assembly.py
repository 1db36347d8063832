"""Gateway: the pipeline of a configuration, and everything that it uses.

The service is built around a gateway (proxy/app.py); commands use one without a server, with the same quota, tokens and
stored results.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from secrets import token_hex
from typing import Any

import structlog

from proxy import config, errors, kit
from proxy.gateway.applications import AccessTokens, Applications
from proxy.gateway.features import Features
from proxy.gateway.free_operations import FreeOperations
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.process import ProcessState, Translation
from proxy.gateway.stored_state import StoredState
from proxy.gateway.v3_objects import V3Objects
from proxy.kit import tasks
from proxy.kit.clock import Clock
from proxy.mapping import loader
from proxy.metrics import Metrics
from proxy.planning.documents import Document, ProjectionCache
from proxy.store import open as opening
from proxy.upstream import http_post
from proxy.upstream.sending import Sender
from proxy.upstream.tokens import Credentials, Tokens

SWEEP_SECONDS = 60.0  # between two looks for what the store need not keep
REFRESH_SECONDS = 1.0  # between two looks for what other processes know
# Shows whether a token is accepted, at no parts. A load balancer sends no requests to a service that is not ready, so
# that no other request would show that tokens are accepted again.
PROBE = Document("probe", "query probe { supCategories { id } }", dict[str, Any]).operation({}, 0)
PROBE_SECONDS = 10.0  # between two probes of a GraphQL service that has not responded with GraphQL
CHECK_SECONDS = 8.0  # that a check of readiness waits for its token, and for its probe; who asks waits a little longer

log = structlog.get_logger()


class Gateway:
    """Pipeline of a configuration, and the parts of it that its users need, too; `state` is what the store has.
    `on_forgotten` is called when results were forgotten."""

    def __init__(
        self,
        settings: config.Config,
        upstream: config.UpstreamSettings,
        process: ProcessState,
        translation: Translation,
    ) -> None:
        """Build it; sends nothing. Raises ConfigError."""
        self.settings, self.upstream, self.process = settings, upstream, process
        self.clock, self.metrics, self.breaker = process.clock, process.metrics, process.breaker
        sources, self.mappings, self.projections = translation
        self.admit, self.quota_status = process.admit, process.quotas.status
        self.applications = Applications(settings.applications)
        self.state = StoredState(process.store, self.applications, process.clock)
        self.access_tokens = AccessTokens(process.store, self.applications, process.clock)
        shared: dict[str, Any] = {"clock": process.clock, "rng": process.rng, "metrics": process.metrics}
        definitions = self.projections.list_definitions()  # before something is opened that must be closed
        self.http = http_post.open_session(upstream)
        owners = [application.credentials for application in self.applications.by_name.values()]
        self.tokens = Tokens(self.http, upstream.token_url, owners, store=process.store, **shared)
        self.sender = Sender(self.http, upstream.graphql_url, self.tokens, breaker=self.breaker, **shared)
        send, seconds = self.sender.send, upstream.total_seconds
        made_of = *sources, upstream.graphql_url
        process.lists = {made_of: process.lists.get(made_of, {})}  # others are forgotten
        self.free = FreeOperations(send, process.clock, seconds, definitions, process.lists[made_of])
        self.features = Features(self.projections, process.store, process.clock)
        self.pipeline = Pipeline(
            process,
            send,
            self.features,
            address=upstream.graphql_url,
            seconds=seconds,
            connections=config.UPSTREAM_CONNECTIONS,
        )
        self.metadata = self.pipeline.metadata
        single_query = settings.translation.single_query
        self.objects = V3Objects(self.pipeline, self.free, self.projections, single_query, process.metrics)
        self.readiness = Readiness(self, owners)
        self.on_forgotten: Callable[[], None] = lambda: None
        self._forgotten: str | None = None
        self._failure = ""  # why the store could not be used

    @classmethod
    async def open(cls, settings: config.Config, clock: Clock, resources: AsyncExitStack) -> "Gateway":
        """Build a gateway that serves one program, which `resources` closes. Raises ConfigError."""
        process = await resources.enter_async_context(opened_process(settings, clock, Metrics(clock)))
        return await build(settings, process, resources)

    async def refresh(self) -> None:
        """Learn what other processes know. Once a second."""
        failure = ""
        try:
            await self.pipeline.refresh(self.applications.clients.values())
            await self.access_tokens.refresh()
            [forgotten] = await self.process.store.values(["forgotten"])
            if forgotten != self._forgotten:
                self._forgotten = forgotten
                self.on_forgotten()
            if self.pipeline.operations.has_failed:
                await self.check_store()
                self.pipeline.operations.has_failed = False
        except errors.StoreUnavailable as error:
            failure = str(error)
        self.metrics.store_unavailable.set(bool(failure))
        if failure and not self._failure:
            log.error("store unavailable", reason=failure)
        elif self._failure and not failure:
            log.info("store available")
        self._failure = failure

    async def check_store(self) -> None:
        """Raise StoreUnavailable where nothing can be begun that costs parts."""
        await self.state.check()
        if self.process.unfinished:
            raise errors.StoreUnavailable("usage of parts is not written yet")


@dataclass(eq=False)
class Readiness:
    """Conditions of readiness: the store, the GraphQL service and the access token of every application, which are
    those of `owners`, can be used."""

    gateway: Gateway
    owners: Sequence[Credentials]
    _next: float = 0.0  # when the next probe may be sent, by the monotonic clock
    _failure: errors.ServerError | None = None  # of the last probe
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def failures(self) -> list[dict[str, str]]:
        """Return `check` and `reason` of each check that fails."""
        checks = {"store": self.gateway.check_store(), "graphql": self._check_graphql()}
        checks |= {f"token {owner.name}": self._check_token(owner) for owner in self.owners}
        found = await asyncio.gather(*checks.values(), return_exceptions=True)
        failures = []
        for name, error in zip(checks, found, strict=True):
            if isinstance(error, errors.BridgeError):
                failures.append({"check": name, "reason": str(error)})
            elif isinstance(error, asyncio.CancelledError):
                failures.append({"check": name, "reason": "the configuration was replaced meanwhile"})
            elif error is not None:
                raise error
        return failures

    async def _check_graphql(self) -> None:
        """Check that a GraphQL service responds at the configured address, and that the circuit breaker is not open.

        Sends an operation that costs no parts until any operation, this one or a client's, gets a GraphQL response, and
        again after a response that was not GraphQL. A token that is missing is a check of its own.
        """
        if refusal := self.gateway.breaker.refusal():
            raise refusal
        async with self._probing:  # a check that comes meanwhile waits for the result
            await self._probe()
        if self._failure is not None:
            raise self._failure.shared()

    async def _probe(self) -> None:
        """Send the probe, unless the last one was a moment ago or nothing is to be found out; keep its failure."""
        gateway = self.gateway
        if gateway.sender.proven:
            self._failure = None
        elif gateway.clock.monotonic() >= self._next and self.owners:
            try:
                await gateway.tokens.get(self.owners[0], CHECK_SECONDS)
            except errors.ServerError:
                return
            if gateway.tokens.known[self.owners[0].name].refusal:
                return
            self._next, failure = gateway.clock.monotonic() + PROBE_SECONDS, None
            try:
                await gateway.sender.send(PROBE, self.owners[0], CHECK_SECONDS)
            except (errors.CredentialsRefused, errors.ClientError):  # the service is there
                pass
            except errors.ServerError as error:
                failure = None if gateway.sender.proven else error.shared()
            self._failure = failure

    async def _check_token(self, owner: Credentials) -> None:
        """Check that there is a token, and that it works if the previous one was refused. After a refusal the token
        cache's back-off delays the next try."""
        await self.gateway.tokens.get(owner, CHECK_SECONDS)
        if refusal := self.gateway.tokens.known[owner.name].refusal:
            try:
                await self.gateway.sender.send(PROBE, owner, CHECK_SECONDS)
            except errors.BridgeError:
                raise refusal.shared() from None


@asynccontextmanager
async def opened_process(
    settings: config.Config, clock: Clock, metrics: Metrics, *, name: str = "", ended: Sequence[str] = ()
) -> AsyncIterator[ProcessState]:
    """Open the store of a process, and keep it in order while the block runs. `name` tells the process from others of
    the store, `ended` are the names of processes that have died, whose reservations it ends. Raises StartError."""
    worker, cache_bytes = name or token_hex(8), settings.cache.bytes
    store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
    process = ProcessState(store, clock, SystemRandom(), metrics, settings.listen.workers)
    try:
        for each in ended:
            await store.end_worker(each)
        async with tasks.repeated("store", store.sweep, SWEEP_SECONDS, errors.StoreUnavailable):
            yield process
    finally:
        await process.aclose()
        await store.aclose()


async def build(settings: config.Config, process: ProcessState, resources: AsyncExitStack) -> Gateway:
    """Build a gateway and start its background work, in the event loop that will use it; `resources` closes it.

    `settings.upstream` must hold addresses. Raises ConfigError.
    """
    upstream = settings.upstream
    if upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    # In a thread whatever reads files or compiles mappings: the event loop may be serving requests.
    gateway = Gateway(settings, upstream, process, await asyncio.to_thread(translate, settings))
    for close in (gateway.http.close, gateway.tokens.close, gateway.free.aclose, gateway.pipeline.aclose):
        resources.push_async_callback(close)
    await gateway.refresh()
    await resources.enter_async_context(tasks.repeated("refresh", gateway.refresh, REFRESH_SECONDS))
    return gateway


def translate(settings: config.Config) -> Translation:
    """Load the mappings, unless this process, or its parent before the fork, has loaded the same last. Raises
    ConfigError."""
    uids = Path(settings.uids) if settings.uids else None
    upstream = config.UpstreamSettings() if settings.upstream == "sandbox" else settings.upstream
    files = [file for file in kit.shipped("mappings").rglob("*") if file.is_file()]
    return _translation(upstream.site, uids, kit.digest([*files, *([uids] if uids else [])]))


@functools.lru_cache(maxsize=1)
def _translation(site: str, uids: Path | None, digest: str) -> Translation:
    mappings = loader.load(kit.shipped("mappings"), site, uids)
    projections = ProjectionCache(mappings)
    projections.check(config.FEATURES)
    return (site, digest), mappings, projections
