"""Supervisor of several workers on one port: starts, restarts and stops them. Serves no request itself.

Used by the command line if `listen.workers` is above 1. Each worker is a process (worker.py) with its own event loop
and listening socket; the kernel distributes connections among them (SO_REUSEPORT). From a socket of the service manager
all of them accept, so that connections in its queue outlive each of them. Imports nothing of the web package, so that
the supervisor stays small.
"""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import structlog

from proxy import config, errors
from proxy.kit import child_process, service_manager
from proxy.kit import clock as clocks
from proxy.telemetry import merging
from proxy.workers import inherited, listening, messages, watchdog

STEADY_SECONDS = 10.0  # a worker that ran so long restarts without back-off
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds before a worker that ended early is replaced
KILL_AFTER = 5.0  # seconds beyond listen.stop_seconds after which a worker is killed

COMMAND = child_process.command("proxy.workers.worker")

log = structlog.get_logger()


@asynccontextmanager
async def running(
    settings: config.Config,
    clock: clocks.Clock,
    sockets: inherited.InheritedSockets = inherited.NONE,
    manager: service_manager.ServiceManager = service_manager.NONE,
) -> AsyncIterator[listening.ServiceUrls]:
    """Run `listen.workers` processes while the block runs; yields the base URLs once all of them accept connections.

    They accept from the `sockets` of the service manager if there are any. Raises ConfigError if an address is in use
    or a worker cannot start.
    """
    listen = settings.listen
    with (
        nullcontext(listen.port) if sockets.http else listening.reserved(listen.host, listen.port) as port,
        nullcontext(settings.admin) if sockets.admin else _reserved_admin(settings.admin) as admin,
        tempfile.TemporaryDirectory(prefix="v3bridge-", ignore_cleanup_errors=True) as folder,
    ):
        settings = _common_settings(msgspec.structs.replace(settings, admin=admin), port, Path(folder))
        slots = [merging.WorkerSlot(Path(folder), number) for number in range(1, listen.workers + 1)]
        workers = [_Worker(messages.StartMessage(settings, slot, sockets), clock) for slot in slots]
        try:
            urls = await _start(workers)
            restarts = [asyncio.create_task(each.restart_when_ended(), name=f"restart {each.name}") for each in workers]
            try:
                async with watchdog.reporting(manager, partial(_unresponsive, workers)):
                    yield urls
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
    """Reserve the port of the admin interface, which every worker serves; yields the settings with that port."""
    if not settings:
        yield settings
        return
    with listening.reserved(settings.host, settings.port, listening.ADMIN) as port:
        yield msgspec.structs.replace(settings, port=port)


def _common_settings(settings: config.Config, port: int, folder: Path) -> config.Config:
    """Return the settings of all workers, with the port; `store: memory:` becomes a temporary file that they share."""
    store = settings.store
    if store.reveal() == "memory:":
        store = config.StoreUrl(f"sqlite:{folder / 'state.sqlite'}")
    listen = msgspec.structs.replace(settings.listen, port=port)
    return msgspec.structs.replace(settings, listen=listen, store=store)


async def _start(workers: list["_Worker"]) -> listening.ServiceUrls:
    """Start all workers concurrently. Raises the first error: they have the same configuration, so all fail alike."""
    outcomes = await asyncio.gather(*(each.start() for each in workers), return_exceptions=True)
    started = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return started[0]


def _unresponsive(workers: list["_Worker"], seconds: float) -> list[int]:
    """Return the numbers of the workers that gave no sign of life for so long."""
    return [number for number, each in enumerate(workers, 1) if each.is_unresponsive(seconds)]


def restart_delay(early_exits: int) -> float:
    """Return the seconds to wait after so many exits in a row that came soon after a start."""
    return min(BACKOFF_MAX, BACKOFF_FIRST * 2.0 ** min(early_exits - 1, 10)) if early_exits else 0.0


class _Worker:
    """Worker in one slot: its current process, and the back-off of its restarts."""

    def __init__(self, message: messages.StartMessage, clock: clocks.Clock) -> None:
        self.name = f"worker {message.slot.number}"
        self._message = message
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0
        self._early_exits = 0
        self._written: float | None = None
        self._last_sign = 0.0

    async def start(self) -> listening.ServiceUrls:
        """Start a process and return its URLs once it accepts connections. Raises ConfigError with its message."""
        self._started = self._clock.monotonic()
        pipe = asyncio.subprocess.PIPE
        # A session of its own: Ctrl-C at a terminal reaches only the supervisor, which then stops the workers.
        self._process = process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=pipe,
            stdout=pipe,
            env=child_process.environment(),
            start_new_session=True,
            pass_fds=(*self._message.sockets.http, *self._message.sockets.admin),
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        with suppress(ConnectionError):  # an exit is detected below
            process.stdin.write(messages.write_start(self._message))
            await process.stdin.drain()
        report = messages.read_report(await process.stdout.readline())
        if report is None:
            raise errors.ConfigError(
                f"{self.name} exited before it accepted connections ({_exit_reason(await process.wait())})"
            )
        if report.mistake:
            raise errors.ConfigError(report.mistake)
        log.info("worker started", worker=self._message.slot.number, pid=process.pid)
        return listening.ServiceUrls(report.url, report.admin_url)

    async def restart_when_ended(self) -> None:
        """Start a new process whenever the current one ends, until cancelled."""
        while self._process is not None:
            reason = _exit_reason(await self._process.wait())
            steady = self._clock.monotonic() - self._started >= STEADY_SECONDS
            self._early_exits = 0 if steady else self._early_exits + 1
            seconds = restart_delay(self._early_exits)
            log.error("worker exited", worker=self._message.slot.number, exit=reason, retry_in=seconds)
            await asyncio.sleep(seconds)
            try:
                await self.start()
            except (errors.ConfigError, OSError) as error:  # such as no memory or processes left for now
                log.error("worker start failed", worker=self._message.slot.number, exc_info=error)

    def is_unresponsive(self, seconds: float) -> bool:
        """Return whether the process runs, but its event loop did nothing for so long. To be called more often."""
        now, written = self._clock.monotonic(), self._message.slot.last_write()
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
            log.error("worker killed", worker=self._message.slot.number)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _exit_reason(code: int) -> str:
    """Return the reason of an exit, such as `exit code 1` or `SIGKILL`."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
