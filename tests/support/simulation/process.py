"""A simulated process: a gateway, assembled as the service assembles it, in a loop of its own."""

import asyncio
import functools
import json
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from proxy import config, errors, model
from proxy.config import changes
from proxy.gateway import assembly
from proxy.gateway.process import Environment, ProcessState
from proxy.gateway.queries import GatewayRequest
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.projection_cache import ProjectionCache
from support.simulation.loop import SimulatedLoop
from support.simulation.plan import KEY_LIMIT, KEYS, LIMIT
from support.simulation.stores import SLOW_SECONDS, ProcessClock, SimulatedCache, SimulatedJournal, SimulatedStore
from support.simulation.upstream import SimulatedSession, parts_of

if TYPE_CHECKING:
    from support.simulation.world import World

COUNTRIES = {"limited": "US", "open": "DE", "spare": "FR"}  # by which the upstream knows who asks
SHOWN = model.Projection(include=frozenset({"short_description"}), show=frozenset({("mpn",), ("short_description",)}))
GRACE_SECONDS = 75.0  # after which a request has ended: its time limit, and the waits for other workers


@functools.cache
def mappings() -> tuple[loader.Mappings, ProjectionCache]:
    """Return the mappings, loaded once for all simulations."""
    loaded = loader.load(shipped.path("mappings"), "octopart", None)
    return loaded, ProjectionCache(loaded, whole=True)


def settings(world: "World", version: str, reloads: int) -> config.Config:
    """Return the configuration of a version of the program, after so many reloads."""
    token = config.SecretSource("env:TOKEN", Path(), {"TOKEN": "a user's token"})
    limits: dict[str, Any] = {"parts": LIMIT, "reconcile": config.ReconciliationSettings("limited", token)}
    applications = {
        name: config.ApplicationSettings(
            apikeys=tuple(
                config.ApiKeySettings(config.digest(key), name=key, parts=KEY_LIMIT if key == "b" else "unlimited")
                for key in keys
            ),
            client_id=config.ClientId("the-client"),  # one for all, so that their token requests share a rate limit
            client_secret=config.Secret(f"secret of {name}"),
            country=COUNTRIES[name],
            **(limits if name == "limited" else {}),
        )
        for name, keys in KEYS.items()
    }
    return config.Config(
        applications=applications,
        store=config.StoreUrl(f"sqlite:{world.store_path}"),
        upstream=config.UpstreamSettings(
            "http://upstream/graphql", "http://upstream/token", retries=1 + reloads % 2, connections=3
        ),
        cache=config.CacheSettings(bytes=50_000_000 + reloads % 3),
        uids=config.File(str(world.uids)) if version == "2" else None,  # another namespace of the shared cache
    )


class Process:
    """Process of a slot. `grants` is how many token requests the store has allowed it, and it has not sent."""

    def __init__(self, world: "World", slot: int, number: int, version: str) -> None:
        self.world = world
        self.slot = slot
        self.version = version
        self.name = f"process {number}"
        self.rng = random.Random(f"{world.plan.seed} {number}")
        self.loop = SimulatedLoop(world.awake, self.thread_delay)
        self.clock = ProcessClock(self)
        self.is_dead = self.is_torn = self.is_over = False
        self.steps_left: float = float("inf")
        self.grants = 0
        self.gateway: assembly.Gateway | None = None
        self.requests: dict[asyncio.Task[None], tuple[float, assembly.Gateway]] = {}
        self._state: ProcessState | None = None
        self._resources = AsyncExitStack()
        self._reloads = 0
        self._reloading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: list[SimulatedStore | SimulatedJournal] = []
        self._run(self._start())

    def step(self) -> None:
        """Run until the next await; die there if that is planned."""
        self.loop.step()
        self.steps_left -= 1
        if self.steps_left < 0:
            self.die()
        if self.is_dead or self.is_over:
            self._bury()

    def die(self) -> None:
        """End here: nothing more happens."""
        self.is_dead = True

    def delay(self) -> float:
        """Return a short time, such as that of a message between processes."""
        return self.rng.uniform(0.0002, 0.003)

    def thread_delay(self) -> float:
        """Return how long a thread takes."""
        return self.rng.uniform(0.1, SLOW_SECONDS) if self.world.fault("store") == "slow" else self.delay()

    def request(self, detail: str, *, must_succeed: bool = False) -> None:
        """Begin a request of a client. Without parts or tokens left no request succeeds."""
        gateway = self.gateway
        if gateway is None:  # no connection: the client tries again later
            return
        _, key, *numbers = detail.split()
        task = self._run(self._respond(gateway, key, numbers, must_succeed or self.world.plan.is_calm))
        self.requests[task] = self.world.awake(), gateway
        task.add_done_callback(lambda task: self.requests.pop(task, None))

    def cancel(self, which: str) -> None:
        """Cancel the oldest or the newest request, as when its client disconnects."""
        if self.requests:
            [*self.requests][0 if which == "oldest" else -1].cancel()

    def reload(self) -> None:
        """Switch to a changed configuration."""
        if self.gateway is not None:
            self._run(self._reload())

    def stop(self) -> None:
        """Finish what is in flight, and end."""
        self.world.current.pop(self.slot, None)
        self._run(self._stop())

    def check(self) -> None:
        """Check that no request takes longer than any may."""
        for begun, _ in self.requests.values():
            if self.world.awake() - begun > GRACE_SECONDS:
                self.world.violate(f"a request of {self.name} does not end")
        for failure in self.loop.failures:
            self.world.violate(f"{self.name}: {failure}")

    def _run(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not (task.cancelled() or self.is_dead) and (error := task.exception()) is not None:
            self.world.violate(f"{self.name}: {error!r}")

    async def _start(self) -> None:
        async def open_store(url: config.StoreUrl, clock: Any) -> SimulatedStore:
            store = await SimulatedStore.open(self.world.store_path, self.clock)
            assert isinstance(store, SimulatedStore)
            self._closing.append(store)
            return store

        def open_cache(url: config.StoreUrl, size: int, lease: float, clock: Any) -> SimulatedCache:
            return SimulatedCache(self, lease)

        def open_session(upstream: config.UpstreamSettings) -> Any:
            limits = upstream.timeouts
            timeout = aiohttp.ClientTimeout(total=limits.total_seconds, sock_read=limits.first_byte_seconds)
            return SimulatedSession(self, timeout)

        environment = Environment(open_store, open_cache, open_session, self.rng)
        self._state = ProcessState(self.clock, environment)
        self.gateway = await self._build()
        before = self.world.current.get(self.slot)
        self.world.current[self.slot] = self
        if before is not None:
            before._run(before._stop())

    async def _build(self) -> assembly.Gateway:
        """Build a gateway, with mappings that are loaded already."""
        assert self._state is not None
        configured = settings(self.world, self.version, self._reloads)
        digests = changes.contents(configured)
        key = ("mappings", True, "octopart", digests[changes.MAPPINGS], digests.get("uids"))

        async def loaded(_: AsyncExitStack) -> Any:
            return mappings()

        async with AsyncExitStack() as resources:
            await self._state.shared.obtain(key, resources, loaded)
            built = await assembly.build(configured, self.clock, resources, process=self._state, previous=self.gateway)
            self._resources = resources.pop_all()
        return built

    async def _reload(self) -> None:
        async with self._reloading:
            before, resources = self.gateway, self._resources
            self._reloads += 1
            self.gateway = await self._build()
            self.gateway.activate()
            while any(gateway is before for _, gateway in self.requests.values()):
                await asyncio.sleep(0.1)
            await resources.aclose()
            self.world.upstream.excuse_tokens()
            configured = self.gateway.applications.applications.values()
            self.gateway.services.tokens.retain({application.credentials for application in configured})

    async def _stop(self) -> None:
        current = asyncio.current_task()
        while others := self._tasks - {current}:
            await asyncio.wait(others)
        self.gateway = None
        await self._resources.aclose()
        self.world.upstream.excuse_tokens()
        if left := [task.get_name() for task in asyncio.all_tasks(self.loop) if task is not current]:
            self.world.violate(f"{self.name} has ended with tasks left: {left}")
        self.is_over = True

    def _bury(self) -> None:
        self.loop.end()
        for resource in (*self._closing, *(each for each in self.world.journals if each.process is self)):
            resource.kill()
        self.world.buried(self)

    async def _respond(self, gateway: assembly.Gateway, key: str, numbers: list[str], must_succeed: bool) -> None:
        """Request parts, and check what comes."""
        client = gateway.applications.client(key)
        request = GatewayRequest.of(client, SHOWN, {}, ResponseMetadata(self.clock.monotonic()))
        queries = tuple(model.PartsMatchQuery(mpn=number, limit=3) for number in numbers)
        suspended = self.world.suspended
        try:
            await gateway.pipeline.admit(client)
            results = await gateway.pipeline.match_parts(request, model.PartsMatchRequest(queries))
        except errors.BridgeError as error:
            failures = [error]
        else:
            failures = [result.failure for result in results if result.failure is not None]
            for number, result in zip(numbers, results, strict=True):
                if result.failure is None:
                    self.world.check_result(number, parts_of(number), json.loads(result.items), suspended)
        for failure in failures:
            if must_succeed and not isinstance(failure, errors.QuotaExhausted | errors.TokenLimit):
                self.world.violate(f"{failure!r}, though nothing is wrong")
