"""App: the objects that one configuration becomes. A Service serves one App after the other, in a worker: a process
that the parent (server.py) has forked, and that serves until its pipe ends.

The pipe brings the configurations of reloads, None at the end, and takes a report after the start and each of them: ""
or the mistake because of which it cannot serve. It ends with either process.
"""

import asyncio
import gc
import math
import os
import resource
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from typing import NamedTuple

import structlog

from proxy import config, errors, redaction, v4
from proxy import log as logging
from proxy import metrics as metering
from proxy.explain import shown_target
from proxy.gateway import assembly as gateways
from proxy.gateway import recording
from proxy.gateway.process import ProcessState
from proxy.graphql import documents
from proxy.graphql.service import GraphQLService
from proxy.kit import clock as clocks
from proxy.kit import tasks
from proxy.web import authentication, graphql, messages, middleware, operators, ports, v3_routes
from proxy.web.connections import Limits

RETIREMENT_SECONDS = 0.05  # between two looks whether a replaced application still has requests
MEASURE_SECONDS = 1.0  # between two measurements of the process
STEADY_SECONDS = 10.0  # a child that ran so long is replaced without back-off
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds before a child that ended early is replaced
KILL_AFTER = 5.0  # seconds beyond config.STOP_SECONDS after which a worker is killed
# People and programs that watch; requests under way have a second when the service stops.
OPERATORS_LIMITS = Limits(connections=64, drain_seconds=0, stop_seconds=1.0)

# Adds a page to the routes of clients.
Mount = Callable[[messages.Routes, authentication.Authenticator, gateways.Gateway], None]

log = structlog.get_logger()


class App(NamedTuple):
    """Objects of one configuration. `requests` handles those of clients, `operators` those to their port."""

    gateway: gateways.Gateway
    authenticator: authentication.Authenticator
    requests: middleware.RequestMiddleware
    operators: messages.Handler
    resources: AsyncExitStack


class Service:
    """What outlives a configuration, and the App of the present one. `operators_url` is empty without their port."""

    app: App
    listener: ports.Listener
    url = operators_url = ""

    def __init__(self, core: ProcessState, mounts: Sequence[Mount]) -> None:
        self._core, self._mounts = core, mounts
        # Of all API keys since the start: requests that began before a reload must not show one that it removed.
        self._api_keys: set[str] = set()
        hidden = redaction.Redaction(is_key=lambda text: config.hex_digest(text) in self._api_keys)
        self.seen = recording.SeenRequests(core.store, hidden, shown_target)
        self._ids = middleware.RequestIds(hidden)
        self._retiring: set[asyncio.Task[None]] = set()

    async def build(self, settings: config.Config) -> App:
        """Build the App of a configuration. Raises ConfigError."""
        async with AsyncExitStack() as resources:
            gateway = await gateways.build(settings, self._core, resources)
            self._api_keys |= gateway.applications.clients.keys()
            authenticator = authentication.Authenticator(gateway, self.seen)
            site = gateway.upstream.site
            paths, schema = messages.Routes(), documents.schema(site)
            v3_routes.V3Routes(paths, gateway, authenticator)
            readers = documents.DocumentReader(schema), v4.V4DocumentReader(v4.schema(site))
            graphql.GraphQLRoutes(paths, GraphQLService(gateway, schema), gateway, authenticator, readers)
            paths.add("/healthz", operators.health, *messages.READ)
            for mount in self._mounts:
                mount(paths, authenticator, gateway)
            requests = middleware.RequestMiddleware(paths, gateway, self._ids, self.seen)
            watching = operators.OperatorsRoutes(gateway, settings.admin or config.AdminSettings()).handle
            # Only once all is built; an error before this closes what was opened.
            return App(gateway, authenticator, requests, watching, resources.pop_all())

    async def swap(self, settings: config.Config) -> None:
        """Serve another configuration from the next request on, also on connections that are open. Requests under way
        finish in the App that they began in. Raises ConfigError; then nothing has changed."""
        replaced = self.app
        self.app = await self.build(settings)
        self.listener.connections.limits = _limits(settings)
        task = asyncio.create_task(self._retire(replaced), name="retirement of a replaced application")
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _retire(self, replaced: App) -> None:
        """Close an App once the requests that began in it have ended. New ones begin in another one."""
        while replaced.requests.in_flight:  # noqa: ASYNC110 - an event would cost every request something
            await asyncio.sleep(RETIREMENT_SECONDS)
        await replaced.resources.aclose()

    async def close(self) -> None:
        """Close all Apps, when nothing is served any more."""
        while self._retiring:
            await asyncio.wait(self._retiring)
        await self.app.resources.aclose()


@asynccontextmanager
async def serving(
    settings: config.Config,
    opened: ports.WorkerSockets | None = None,
    *,
    clock: clocks.Clock | None = None,
    name: str = "",
    ended: Sequence[str] = (),
    mounts: Sequence[Mount] = (),
) -> AsyncIterator[Service]:
    """Serve a configuration in this process while the block runs, on open sockets or its own. `name` is that of this
    process in the store, `ended` are those of dead ones, whose reservations it ends. Raises ConfigError."""
    clock = clock or clocks.Clock()
    opened = opened or ports.WorkerSockets(
        *ports.open_port(settings.listen.host, settings.listen.port),
        *(ports.open_port(admin.host, admin.port, for_operators=True) if (admin := settings.admin) else ()),
    )
    async with AsyncExitStack() as stack:
        for each in (*opened.public, *opened.operators):
            stack.enter_context(each)
        state = gateways.opened_process(settings, clock, metering.Metrics(clock), name=name, ended=ended)
        core = await stack.enter_async_context(state)
        service = Service(core, mounts)
        stack.push_async_callback(service.seen.close)
        writing = service.seen.write, recording.INTERVAL_SECONDS, errors.StoreUnavailable
        await stack.enter_async_context(tasks.repeated("recording", *writing))
        stack.callback(core.metrics.flush)
        await stack.enter_async_context(tasks.repeated("metrics", core.metrics.measure, MEASURE_SECONDS))
        service.app = await service.build(settings)
        core.metrics.stored = lambda: core.quotas.gauges(service.app.gateway.applications.charged.values())
        core.metrics.flush()  # makes their files, while there is room
        stack.push_async_callback(service.close)
        # Handlers are those of the App at the time of a request.
        public = ports.listening(lambda request: service.app.requests.handle(request), opened.public, _limits(settings))
        service.listener = await stack.enter_async_context(public)
        service.url = service.listener.url
        if opened.operators:
            watching = ports.listening(lambda each: service.app.operators(each), opened.operators, OPERATORS_LIMITS)
            service.operators_url = (await stack.enter_async_context(watching)).url
        yield service


def _limits(settings: config.Config) -> Limits:
    """Return the limits of client connections: `listen.connections`, or as many as the hard open-file limit
    (RLIMIT_NOFILE) leaves beside the files that are reserved for others, at least 1. Raises the soft limit to it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    allowed, reserved = settings.listen.connections, config.RESERVED_FILES
    if hard != resource.RLIM_INFINITY and allowed + reserved > hard:
        allowed = max(1, hard - reserved)
        log.warning("connection limit lowered", limit=allowed, open_files=hard, reserved=reserved)
    return Limits(allowed)


@dataclass(eq=False)
class Child:
    """A process, forked when it is `due`; `pid` is 0 until then. `main` is what it does; `number` is its place among
    the workers, 0 that of the sandbox; `name` its name in the store, `ended` those of dead predecessors. It has to
    report or to end until `deadline`. `exit` and `code` say how it has ended, `mistake` what it reported."""

    number: int
    opened: ports.WorkerSockets
    main: Callable[["Child", config.Config], None]
    mounts: Sequence[Mount] = ()
    retry_in: float = 0.0
    ended: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.name, self.kind = secrets.token_hex(8), "worker" if self.number else "sandbox"
        self.due, self.deadline = time.monotonic() + self.retry_in, math.inf
        self.pid, self.serves, self.mistake, self.exit, self.code = 0, False, "", "", 0
        self.pipe, self.pipe_of_child = Pipe()
        self.sockets = {*self.opened.public, *self.opened.operators}

    def hear(self) -> None:
        """Take a report, or the end of the process."""
        self.deadline = math.inf
        try:
            self.mistake = self.pipe.recv()
        except (EOFError, OSError):
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            reason = f"exit code {self.code}" if self.code >= 0 else signal.Signals(-self.code).name
            self.exit = reason if self.serves else self.mistake or reason
            return
        if not self.serves and not self.mistake:
            self.serves = True
            log.info(f"{self.kind} started", worker=self.number, pid=self.pid)

    def successor(self) -> "Child":
        """Return the next process of the place. It ends the reservations of those that have died since one served."""
        is_steady = time.monotonic() - self.due >= STEADY_SECONDS
        retry_in = 0.0 if is_steady else min(BACKOFF_MAX, self.retry_in * 2.0 or BACKOFF_FIRST)
        return replace(self, retry_in=retry_in, ended=(*(() if self.serves else self.ended), self.name))


def mistake(error: Exception) -> str:
    """Return the text for the operator. Errors of the program are logged."""
    if isinstance(error, errors.StartError):
        return error.message
    log.error("internal error caught", exc_info=error)
    return f"internal error: {type(error).__name__}; see the log"


def run(child: Child, settings: config.Config) -> None:
    """Serve to the end. Raises ConfigError if the configuration cannot be served, StartError if nothing can."""
    metering.begin_process(child.number)
    with logging.Output(sys.stderr).queued() as output:
        logging.configure(settings.log.level, settings.log.format, output)
        logging.log_uncaught_exceptions()
        try:
            asyncio.run(_serve(child, settings, output))
        except errors.StartError:
            raise
        except Exception as error:
            raise errors.StartError(mistake(error)) from error


async def _serve(child: Child, settings: config.Config, output: logging.Output) -> None:
    """Serve one configuration after the other, with a report of each, until the parent sends none."""
    loop, pipe, refused = asyncio.get_running_loop(), child.pipe_of_child, ""
    orders: asyncio.Queue[config.Config | None] = asyncio.Queue()

    def receive() -> None:
        try:
            orders.put_nowait(pipe.recv())
        except (EOFError, OSError):
            orders.put_nowait(None)

    loop.add_signal_handler(signal.SIGTERM, orders.put_nowait, None)
    served = serving(settings, child.opened, name=child.name, ended=child.ended, mounts=child.mounts)
    async with served as service:
        gc.freeze()  # a full collection would stop the event loop, and find nothing
        loop.add_reader(pipe.fileno(), receive)
        while True:
            with suppress(OSError):  # the parent is gone
                pipe.send(refused)
            if (wanted := await orders.get()) is None:
                break
            refused = ""
            try:
                await service.swap(wanted)
                logging.configure(wanted.log.level, wanted.log.format, output)
            except Exception as error:  # the configuration before is served
                refused = mistake(error)
                log.error("configuration refused", worker=child.number, mistakes=refused.splitlines())
        loop.remove_reader(pipe.fileno())
        # Nobody else would end this process where the parent has been killed.
        signal.alarm(math.ceil(config.STOP_SECONDS + KILL_AFTER))
