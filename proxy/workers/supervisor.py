"""Supervisor of several workers on one port: starts, restarts, reloads and stops them. Serves no request itself.

Used by the command line if `listen.workers` is above 1. Each worker is a process (worker.py) with its own event loop
and listening socket; the kernel distributes connections among them (SO_REUSEPORT). From a socket of the service manager
all of them accept, so that connections in its queue outlive each of them. Imports nothing of the web package, so that
the supervisor stays small.

Not gunicorn: workers start in an order (the curl line is printed once all accept), the embedded sandbox runs in the
parent, and workers have an event loop of their own.
"""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec
import structlog

from proxy import config, errors
from proxy.kit import child_process, service_manager
from proxy.kit import clock as clocks
from proxy.telemetry import multiprocess
from proxy.workers import inherited, listening, messages, reloading, watchdog

STEADY_SECONDS = 10.0  # a worker that ran so long restarts without back-off
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds before a worker that ended early is replaced
PREPARE_SECONDS = 60.0  # that a worker may take to build a configuration
UNRESPONSIVE_SECONDS = 10.0  # without a sign of life, after which a reload no longer waits for a worker
SIGN_SECONDS = 0.5  # between two looks for one
KILL_AFTER = 5.0  # seconds beyond listen.stop_seconds after which a worker is killed

COMMAND = child_process.command("proxy.workers")

log = structlog.get_logger()


@asynccontextmanager
async def running(
    settings: config.Config,
    clock: clocks.Clock,
    sockets: inherited.InheritedSockets = inherited.NONE,
    manager: service_manager.ServiceManager = service_manager.NONE,
) -> AsyncIterator["WorkerService"]:
    """Run `listen.workers` processes while the block runs; yields the service once all of them accept connections.

    They accept from the `sockets` of the service manager if there are any. Raises ConfigError if an address is in use
    or a worker cannot start.
    """
    listen = settings.listen
    with (
        nullcontext(listen.port) if sockets.http else listening.reserved(listen.host, listen.port) as port,
        nullcontext(settings.admin) if sockets.admin else _reserved_admin(settings.admin) as admin,
        tempfile.TemporaryDirectory(prefix="v3bridge-", ignore_cleanup_errors=True) as folder,
    ):
        common = partial(_common_settings, admin=admin, port=port, folder=Path(folder))
        slots = [messages.WorkerSlot(Path(folder), number) for number in range(1, listen.workers + 1)]
        slots[0].metrics.mkdir()
        starts = [messages.StartMessage(common(settings), slot, sockets) for slot in slots]
        workers = [Worker(start, clock) for start in starts]
        try:
            urls = await _start(workers)
            service = WorkerService(urls, workers, common)
            restarts = [asyncio.create_task(each.restart_when_ended(), name=f"restart {each.name}") for each in workers]
            try:
                async with watchdog.reporting(manager, partial(_unresponsive, workers)):
                    yield service
            finally:
                for task in restarts:
                    task.cancel()
                await asyncio.wait(restarts)
        finally:
            await asyncio.gather(*(each.stop() for each in workers))


@contextmanager
def _reserved_admin(
    settings: Literal[False] | config.AdminSettings,
) -> Iterator[Literal[False] | config.AdminSettings]:
    """Reserve the operators' port, which every worker serves; yields the settings with that port."""
    if not settings:
        yield settings
        return
    with listening.reserved(settings.host, settings.port, listening.ADMIN) as port:
        yield msgspec.structs.replace(settings, port=port)


def _common_settings(
    settings: config.Config, admin: Literal[False] | config.AdminSettings, port: int, folder: Path
) -> config.Config:
    """Return the settings of all workers, with the reserved ports; `store: memory:` becomes a temporary file that they
    share."""
    if admin and settings.admin:
        admin = msgspec.structs.replace(settings.admin, port=admin.port)
    store = settings.store
    if store.reveal() == "memory:":
        store = config.StoreUrl(f"sqlite:{folder / 'state.sqlite'}")
    listen = msgspec.structs.replace(settings.listen, port=port)
    return msgspec.structs.replace(settings, listen=listen, store=store, admin=admin)


async def _start(workers: list["Worker"]) -> listening.ServiceUrls:
    """Start all workers concurrently. Raises the first error: they have the same configuration, so all fail alike."""
    outcomes = await asyncio.gather(*(each.start() for each in workers), return_exceptions=True)
    started = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return started[0]


def _unresponsive(workers: list["Worker"], seconds: float) -> list[int]:
    """Return the numbers of the workers that gave no sign of life for so long."""
    return [number for number, each in enumerate(workers, 1) if each.is_unresponsive(seconds)]


def restart_delay(early_exits: int) -> float:
    """Return the seconds to wait after so many exits in a row that came soon after a start."""
    return min(BACKOFF_MAX, BACKOFF_FIRST * 2.0 ** min(early_exits - 1, 10)) if early_exits else 0.0


class WorkerService(reloading.Reloadable):
    """The service of all workers. A configuration is prepared by every worker before any of them serves with it."""

    def __init__(
        self, urls: listening.ServiceUrls, workers: list["Worker"], common: Callable[[config.Config], config.Config]
    ) -> None:
        self.urls = urls
        self._workers = workers
        self._common = common
        self._prepared: dict[Worker, config.Config] = {}

    async def prepare(self, settings: config.Config) -> None:
        """Let all workers build a configuration. Raises ConfigError with the mistakes of one that cannot."""
        settings = self._common(settings)
        running = [worker for worker in self._workers if worker.is_running]
        outcomes = await asyncio.gather(*(worker.prepare(settings) for worker in running), return_exceptions=True)
        self._prepared = {
            worker: settings for worker, outcome in zip(running, outcomes, strict=True) if outcome is None
        }
        # A worker that has died meanwhile is started with the configuration that wins.
        for outcome in outcomes:
            if outcome is not None and not isinstance(outcome, _WorkerGoneError):
                raise outcome
        if not self._prepared:
            raise errors.ConfigError("no worker could prepare the configuration; see the log")

    async def commit(self) -> None:
        """Let all workers serve with what they have prepared."""
        prepared, self._prepared = self._prepared, {}
        (settings, *_) = prepared.values()
        for worker in self._workers:
            worker.use(settings)
            if worker not in prepared and worker.is_running:
                log.error(
                    "configuration commit failed", worker=worker.number, reason="did not prepare the configuration"
                )
                worker.end()
        outcomes = await _all(worker.call("commit") for worker in prepared)
        for worker, mistake in zip(prepared, outcomes, strict=True):
            if mistake:  # else it would go on with the configuration before
                log.error("configuration commit failed", worker=worker.number, reason=str(mistake))
                worker.end()

    async def drop(self) -> None:
        """Let all workers close what they have prepared."""
        self._prepared = {}
        await _all(worker.call("drop") for worker in self._workers if worker.is_running)

    async def report(self, result: config.ReloadResult) -> None:
        """Tell all workers the result of a reload; one of them counts it."""
        running = [worker for worker in self._workers if worker.is_running]
        await _all(worker.call("report", result, place == 0) for place, worker in enumerate(running))
        for worker in self._workers:
            worker.note(result)


async def _all(calls: Iterable[Awaitable[str]]) -> list[str | BaseException]:
    """Wait for calls of workers, of which some may die meanwhile; return the mistakes of the others."""
    return await asyncio.gather(*calls, return_exceptions=True)


class _WorkerGoneError(Exception):
    """The worker ended, or did not acknowledge a message in time."""


class Worker:
    """Worker in one slot: its current process, its messages, and the back-off of its restarts."""

    def __init__(self, message: messages.StartMessage, clock: clocks.Clock) -> None:
        self.number = message.slot.number
        self.name = f"worker {self.number}"
        self._message = message
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0
        self._early_exits = 0
        self._written: float | None = None
        self._last_sign = 0.0
        self._numbers = count(1)
        self._unacknowledged: dict[int, asyncio.Future[str]] = {}
        self._reports: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the worker accepts connections."""
        return self._reports is not None and not self._reports.done()

    async def start(self) -> listening.ServiceUrls:
        """Start a process and return its URLs once it accepts connections. Raises ConfigError with its message."""
        self._started = self._clock.monotonic()
        message = self._message
        pipe = asyncio.subprocess.PIPE
        # A session of its own: Ctrl-C at a terminal reaches only the supervisor, which then stops the workers.
        self._process = process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=pipe,
            stdout=pipe,
            env=child_process.environment() | {multiprocess.VARIABLE: str(message.slot.metrics)},
            start_new_session=True,
            pass_fds=(*message.sockets.http, *message.sockets.admin),
            limit=messages.REPORT_MAX,
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        with suppress(ConnectionError):  # an exit is detected below
            process.stdin.write(messages.write(message))
            await process.stdin.drain()
        report = messages.read_report(await process.stdout.readline())
        if not isinstance(report, messages.StartReport):
            raise errors.ConfigError(
                f"{self.name} exited before it accepted connections ({_exit_reason(await process.wait())})"
            )
        if report.mistake:
            raise errors.ConfigError(report.mistake)
        log.info("worker started", worker=self.number, pid=process.pid)
        self._reports = asyncio.create_task(self._read_reports(process.stdout), name=f"reports of {self.name}")
        if message.settings is not self._message.settings:  # a reload has overtaken the start
            process.terminate()
        return listening.ServiceUrls(report.url, report.admin_url)

    async def prepare(self, settings: config.Config) -> None:
        """Let the worker build a configuration beside the running one. Raises ConfigError and _WorkerGoneError."""
        if mistake := await self.call("prepare", settings):
            raise errors.ConfigError(mistake)

    def use(self, settings: config.Config) -> None:
        """Start the next process with these settings."""
        self._message = self._message._replace(settings=settings)

    def end(self) -> None:
        """End the current process after its requests, so that another one takes its place."""
        if self.is_running and self._process is not None:
            self._process.terminate()

    def note(self, result: config.ReloadResult) -> None:
        """Start the next process with the result of the last reload."""
        self._message = self._message._replace(last_reload=result)

    async def call(self, method: Literal["prepare", "commit", "drop", "report"], *arguments: object) -> str:
        """Call a method of the worker's service; return the mistake that it reports. Raises _WorkerGoneError."""
        number = next(self._numbers)
        acknowledged: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._unacknowledged[number] = acknowledged
        try:
            self.send(messages.CallMessage(number, method, arguments))
            with suppress(TimeoutError):
                async with asyncio.timeout(PREPARE_SECONDS):
                    while not acknowledged.done() and not self.is_unresponsive(UNRESPONSIVE_SECONDS):
                        await asyncio.wait((acknowledged,), timeout=SIGN_SECONDS)
            if acknowledged.done():
                return acknowledged.result()
            raise _WorkerGoneError(f"{self.name} did not acknowledge a message")
        finally:
            del self._unacknowledged[number]

    def send(self, message: messages.Message) -> None:
        """Send a message. A worker that has died gets none."""
        process = self._process
        if process is None or process.stdin is None or not self.is_running:
            raise _WorkerGoneError(f"{self.name} does not run")
        process.stdin.write(messages.write(message))

    async def _read_reports(self, stdout: asyncio.StreamReader) -> None:
        """Pass on what the worker reports, until it ends."""
        while (report := messages.read_report(await stdout.readline())) is not None:
            if isinstance(report, messages.Acknowledgement):
                waiting = self._unacknowledged.get(report.number)
                if waiting is not None and not waiting.done():  # else the caller has stopped waiting
                    waiting.set_result(report.mistake)
        for waiting in self._unacknowledged.values():
            if not waiting.done():
                waiting.set_exception(_WorkerGoneError(f"{self.name} ended"))

    async def restart_when_ended(self) -> None:
        """Start a new process whenever the current one ends, until cancelled."""
        while self._process is not None:
            reason = _exit_reason(await self._process.wait())
            multiprocess.mark_dead(str(self.number), self._message.slot.metrics)
            steady = self._clock.monotonic() - self._started >= STEADY_SECONDS
            self._early_exits = 0 if steady else self._early_exits + 1
            seconds = restart_delay(self._early_exits)
            log.error("worker exited", worker=self.number, exit=reason, retry_in=seconds)
            await asyncio.sleep(seconds)
            try:
                await self.start()
            except (errors.ConfigError, OSError) as error:  # such as no memory or processes left for now
                log.error("worker start failed", worker=self.number, exc_info=error)

    def is_unresponsive(self, seconds: float) -> bool:
        """Return whether the process runs, but its event loop did nothing for so long. To be called more often."""
        now, written = self._clock.monotonic(), self._message.slot.last_sign()
        # Of the time of the file only its change counts: the system's clock may be set.
        if written is None or written != self._written:
            self._written, self._last_sign = written, now
        runs = self._process is not None and self._process.returncode is None
        return runs and now - max(self._started, self._last_sign) > seconds

    async def stop(self) -> None:
        """Let the worker finish its requests; kill it if that takes too long or the caller is cancelled."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.write(messages.STOP)
        try:
            async with asyncio.timeout(self._message.settings.listen.stop_seconds + KILL_AFTER):
                await process.wait()
        except TimeoutError:
            log.error("worker killed", worker=self.number)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _exit_reason(code: int) -> str:
    """Return the reason of an exit, such as `exit code 1` or `SIGKILL`."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
