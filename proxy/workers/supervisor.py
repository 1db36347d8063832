"""Several workers on one port: starts them, starts those anew that died, and stops them all. Answers no request itself.

Used by the command line where `listen.workers` is above 1. Each worker is a program of its own (worker.py) with its own
event loop and its own listening socket; the kernel deals connections out among them. Nothing of the web is imported
here, so that the supervisor stays small.
"""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from proxy import config, errors
from proxy.kit import clock as clocks
from proxy.kit import own_programs
from proxy.telemetry import merging
from proxy.workers import listening, orders

STEADY = 10.0  # seconds of life after which a death counts as the first
PAUSE_FIRST, PAUSE_MAX = 0.5, 30.0  # seconds before a worker that died young is replaced
KILL_AFTER = 5.0  # seconds beyond listen.stop_seconds that a worker has to end by itself

COMMAND = own_programs.command("proxy.workers.worker")

log = structlog.get_logger()


@asynccontextmanager
async def running(settings: config.Config, clock: clocks.Clock) -> AsyncIterator[str]:
    """Answer with `listen.workers` processes while the block runs; gives the base URL once all of them accept.

    Raises ConfigError where the address is taken or a worker cannot start.
    """
    listen = settings.listen
    with (
        listening.reserved(listen.host, listen.port) as port,
        tempfile.TemporaryDirectory(prefix="v3bridge-", ignore_cleanup_errors=True) as folder,
    ):
        settings = _together(settings, port, Path(folder))
        places = [merging.Place(Path(folder), number) for number in range(1, listen.workers + 1)]
        workers = [_Worker(orders.Order(settings, place), clock) for place in places]
        try:
            url = await _start(workers)
            keepers = [asyncio.create_task(each.keep(), name=f"keeper of {each.name}") for each in workers]
            try:
                yield url
            finally:
                for keeper in keepers:
                    keeper.cancel()
                await asyncio.wait(keepers)
        finally:
            await asyncio.gather(*(each.stop() for each in workers))


def _together(settings: config.Config, port: int, folder: Path) -> config.Config:
    """What all workers have in common: the port, and a store. Where that is to be memory, it is a file of theirs."""
    store = settings.store
    if store.reveal() == "memory:":
        store = config.StoreUrl(f"sqlite:{folder / 'state.sqlite'}")
    listen = msgspec.structs.replace(settings.listen, port=port)
    return msgspec.structs.replace(settings, listen=listen, store=store)


async def _start(workers: list["_Worker"]) -> str:
    """Start all of them side by side; the first mistake is everybody's, as they have one configuration."""
    outcomes = await asyncio.gather(*(each.start() for each in workers), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return str(outcomes[0])


def pause(short_lives: int) -> float:
    """Seconds to wait after so many deaths in a row that came soon after a start."""
    return min(PAUSE_MAX, PAUSE_FIRST * 2.0 ** min(short_lives - 1, 10)) if short_lives else 0.0


class _Worker:
    """One place among the workers, and the process that fills it."""

    def __init__(self, order: orders.Order, clock: clocks.Clock) -> None:
        self.name = f"worker {order.place.number}"
        self._order = order
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0
        self._short_lives = 0

    async def start(self) -> str:
        """Start a process; where it answers, once it does. Raises ConfigError with its mistake."""
        self._started = self._clock.monotonic()
        pipe = asyncio.subprocess.PIPE
        # A session of its own: Ctrl-C at a terminal is for the supervisor, which stops the workers in good order.
        self._process = process = await asyncio.create_subprocess_exec(
            *COMMAND, stdin=pipe, stdout=pipe, env=own_programs.environment(), start_new_session=True
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        with suppress(ConnectionError):  # that it died is found below
            process.stdin.write(orders.write_order(self._order))
            await process.stdin.drain()
        report = orders.read_report(await process.stdout.readline())
        if report is None:
            raise errors.ConfigError(f"{self.name} ended before it could answer ({_how(await process.wait())})")
        if report.mistake:
            raise errors.ConfigError(report.mistake)
        log.info("worker started", worker=self._order.place.number, pid=process.pid)
        return report.url

    async def keep(self) -> None:
        """Fill the place again whenever its process ends, until cancelled."""
        while self._process is not None:
            how = _how(await self._process.wait())
            steady = self._clock.monotonic() - self._started >= STEADY
            self._short_lives = 0 if steady else self._short_lives + 1
            seconds = pause(self._short_lives)
            log.error("worker exited", worker=self._order.place.number, exit=how, retry_in=seconds)
            await asyncio.sleep(seconds)
            try:
                await self.start()
            except (errors.ConfigError, OSError) as error:  # the system may have no room for it just now
                log.error("worker start failed", worker=self._order.place.number, exc_info=error)

    async def stop(self) -> None:
        """Let it finish what is under way. It is killed where that takes too long, or who calls is cancelled."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.write(orders.STOP)
        try:
            async with asyncio.timeout(self._order.settings.listen.stop_seconds + KILL_AFTER):
                await process.wait()
        except TimeoutError:
            log.error("worker killed", worker=self._order.place.number)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _how(code: int) -> str:
    """`exit code 1`, `SIGKILL`."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
