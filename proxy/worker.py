"""Worker: a process forked by the parent (server.py), which serves until its pipe ends or SIGTERM stops it; and the
parent's end of the pipe of such a process.

The pipe brings the configurations of reloads, None at the end, and takes a report after the start and after each of
them: the mistake because of which it cannot serve, or "". It ends with either process, also where that is killed.
"""

import asyncio
import gc
import math
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import structlog

from proxy import app, config, errors, metrics, sockets
from proxy import log as logging

STEADY_SECONDS = 10.0  # a child that ran so long is replaced without back-off
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds before a child that ended early is replaced
KILL_AFTER = 5.0  # seconds beyond config.STOP_SECONDS after which a worker is killed

log = structlog.get_logger()


class Place(NamedTuple):
    """Place of a process: its number among the workers, its sockets, its name among all processes of the store,
    those of predecessors that have died, and what adds pages to its routes."""

    number: int
    opened: sockets.WorkerSockets
    name: str = ""
    ended: Sequence[str] = ()
    mounts: Sequence[app.Mount] = ()


Main = Callable[[Place, config.Config, Connection], None]  # what a process does with its pipe


class Child:
    """A process in a place, forked when it is `due`; `pid` is 0 until then.

    It has to report or to end until `deadline`. `exit` says how it has ended, `mistake` what it has reported.
    """

    def __init__(self, place: Place, main: Main, retry_in: float = 0.0) -> None:
        self.place, self.main, self.retry_in = place._replace(name=secrets.token_hex(8)), main, retry_in
        self.kind = "worker" if place.number else "sandbox"
        self.due, self.deadline = time.monotonic() + retry_in, math.inf
        self.pid, self.serves, self.mistake, self.exit = 0, False, "", ""
        self.pipe, self.pipe_of_child = Pipe()
        self.sockets = {*place.opened.public, *place.opened.operators}

    def hear(self) -> None:
        """Take a report, or the end of the process."""
        self.deadline = math.inf
        try:
            self.mistake = self.pipe.recv()
        except (EOFError, OSError):
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            reason = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
            self.exit = reason if self.serves else self.mistake or reason
            return
        if not self.serves and not self.mistake:
            self.serves = True
            log.info(f"{self.kind} started", worker=self.place.number, pid=self.pid)

    def successor(self) -> "Child":
        """Return the next process of the place. It ends the reservations of those that have died since one served."""
        is_steady = time.monotonic() - self.due >= STEADY_SECONDS
        retry_in = 0.0 if is_steady else min(BACKOFF_MAX, self.retry_in * 2.0 or BACKOFF_FIRST)
        ended = (self.place.name,) if self.serves else (*self.place.ended, self.place.name)
        return Child(self.place._replace(ended=ended), self.main, retry_in)


def mistake(error: Exception) -> str:
    """Return the text for the operator. Errors of the program are logged."""
    if isinstance(error, errors.StartError):
        return error.message
    log.error("internal error caught", exc_info=error)
    return f"internal error: {type(error).__name__}; see the log"


def run(place: Place, settings: config.Config, pipe: Connection) -> None:
    """Serve to the end. Raises ConfigError if the configuration cannot be served."""
    metrics.begin_process(place.number)
    with logging.Output(sys.stderr).queued() as output:
        logging.configure(settings.log.level, settings.log.format, output)
        logging.log_uncaught_exceptions()
        try:
            asyncio.run(_serve(place, settings, pipe, output))
        except Exception as error:
            raise errors.ConfigError(mistake(error)) from error


async def _serve(place: Place, settings: config.Config, pipe: Connection, output: logging.Output) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    serving = app.serving(settings, place.opened, name=place.name, ended=place.ended, mounts=place.mounts)
    async with serving as service:
        gc.freeze()  # a full collection would stop the event loop, and find nothing
        following = asyncio.create_task(_follow(place, service, pipe, output), name="orders of the parent")
        following.add_done_callback(lambda _: stop.set())
        await stop.wait()
        # Nobody else would end this process where the parent has been killed.
        signal.alarm(math.ceil(config.STOP_SECONDS + KILL_AFTER))
        following.cancel()


async def _follow(place: Place, service: app.Service, pipe: Connection, output: logging.Output) -> None:
    """Report, and serve one configuration after the other, until the parent sends none."""
    orders: asyncio.Queue[config.Config | None] = asyncio.Queue()
    asyncio.get_running_loop().add_reader(pipe.fileno(), lambda: orders.put_nowait(_received(pipe)))
    refused = ""
    while True:
        with suppress(OSError):  # the parent is gone
            pipe.send(refused)
        settings = await orders.get()
        if settings is None:
            break
        refused = ""
        try:
            await service.swap(settings)
            logging.configure(settings.log.level, settings.log.format, output)
        except Exception as error:  # the configuration before is served
            refused = mistake(error)
            log.error("configuration refused", worker=place.number, mistakes=refused.splitlines())
    asyncio.get_running_loop().remove_reader(pipe.fileno())


def _received(pipe: Connection) -> Any:
    """Return what the parent sends, None after its end."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None
