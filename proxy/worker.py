"""Worker: a process forked by the parent (server.py), which serves until its pipe ends or a signal stops it.

The pipe brings the configurations of reloads, and takes a report after the start and after each of them. It ends when
the parent closes it, and also when the parent has been killed.
"""

import asyncio
import math
import os
import pickle
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from proxy import app, children, config, errors, sockets
from proxy.kit import clock, event_loop, garbage
from proxy.telemetry import log as logging
from proxy.telemetry import log_queue, multiprocess

LENGTH_BYTES = 8  # of the length of an order
KILL_AFTER = 5.0  # seconds beyond listen.stop_seconds after which a worker is killed

log = structlog.get_logger()


class Order(NamedTuple):
    """Result of a reload: the configuration, None if it has mistakes, and when it was read. One worker `counts` it."""

    settings: config.Config | None
    at: float
    counts: bool

    def encode(self) -> bytes:
        content = pickle.dumps(self)
        return len(content).to_bytes(LENGTH_BYTES, "big") + content


class Start(NamedTuple):
    """What a worker starts with: its number among the workers, its name among all processes of the store, and those of
    predecessors that have died; when the configuration was loaded, and whether a later one has mistakes; and the
    process id of the parent, whose `folders` it removes if the parent has been killed."""

    number: int
    name: str
    ended: tuple[str, ...]
    settings: config.Config
    opened: sockets.WorkerSockets
    loaded: float
    failed: bool
    parent: int
    folders: Sequence[Path]


def run(start: Start, pipe: socket.socket) -> int:
    """Serve to the end; return the exit code. Raises StartError if the configuration cannot be served."""
    with log_queue.queued(sys.stderr) as stream:

        def configure_log(settings: config.LogSettings) -> None:
            logging.configure(settings.level, settings.format, stream)

        configure_log(start.settings.log)
        logging.log_uncaught_exceptions()
        multiprocess.count_as(str(start.number))
        try:
            return event_loop.run(_Worker(start, configure_log).serve(pipe))
        except errors.StartError:
            raise
        except Exception as error:
            log.error("internal error caught", exc_info=error)
            return 1


class _Worker:
    def __init__(self, start: Start, configure_log: Callable[[config.LogSettings], None]) -> None:
        self._start = start
        self._configure_log = configure_log
        self._process = app.Process(clock.SystemClock(), start.name, start.ended)
        self._process.report(loaded=start.loaded)
        if start.failed:
            self._process.report(loaded=None)

    async def serve(self, pipe: socket.socket) -> int:
        start, stop = self._start, event_loop.stop_on_signal()
        async with app.serving(start.settings, self._process, start.opened) as service:
            garbage.tune()
            reader, writer = await asyncio.open_connection(sock=pipe)
            following = asyncio.create_task(self._follow(reader, writer, service), name="orders of the parent")
            following.add_done_callback(lambda _: stop.set())
            await stop.wait()
            # Nobody else would end this process where the parent has been killed.
            signal.alarm(math.ceil(service.app.gateway.settings.listen.stop_seconds + KILL_AFTER))
            following.cancel()
        if os.getppid() != start.parent:
            for folder in start.folders:
                shutil.rmtree(folder, ignore_errors=True)
        return 0

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: app.Service) -> None:
        """Report, and follow one order after the other, until the pipe ends."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            mistake = ""
            while True:
                writer.write(children.Report(mistake).line())
                size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
                order: Order = pickle.loads(await reader.readexactly(size))  # noqa: S301 - of the parent
                mistake = await self._obey(order, service)

    async def _obey(self, order: Order, service: app.Service) -> str:
        """Serve the configuration; return why that is not possible. The one before is served then."""
        mistake = ""
        try:
            if order.settings is not None:
                await service.swap(order.settings)
                self._configure_log(order.settings.log)
        except errors.StartError as error:
            mistake = error.message
        except Exception as error:
            log.error("internal error caught", exc_info=error)
            mistake = f"internal error: {type(error).__name__}; see the log"
        is_served = order.settings is not None and not mistake
        self._process.report(loaded=order.at if is_served else None, counts=order.counts)
        return mistake
