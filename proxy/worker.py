"""A process forked by the parent (server.py): as the parent sees it, and as a worker, which serves until its pipe ends.

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
from dataclasses import dataclass, replace
from multiprocessing import Pipe

import structlog

from proxy import app, config, errors, metrics
from proxy import log as logging
from proxy.web import ports

STEADY_SECONDS = 10.0  # a child that ran so long is replaced without back-off
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds before a child that ended early is replaced
KILL_AFTER = 5.0  # seconds beyond config.STOP_SECONDS after which a worker is killed

log = structlog.get_logger()


@dataclass(eq=False)
class Child:
    """A process, forked when it is `due`; `pid` is 0 until then. `main` is what it does.

    `number` is its place among the workers, 0 that of the sandbox; `name` its name among all processes of the store,
    `ended` those of predecessors that have died; `mounts` add pages to its routes. It has to report or to end until
    `deadline`. `exit` says how it has ended, `mistake` what it has reported.
    """

    number: int
    opened: ports.WorkerSockets
    main: Callable[["Child", config.Config], None]
    mounts: Sequence[app.Mount] = ()
    retry_in: float = 0.0
    ended: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.name, self.kind = secrets.token_hex(8), "worker" if self.number else "sandbox"
        self.due, self.deadline = time.monotonic() + self.retry_in, math.inf
        self.pid, self.serves, self.mistake, self.exit = 0, False, "", ""
        self.pipe, self.pipe_of_child = Pipe()
        self.sockets = {*self.opened.public, *self.opened.operators}

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
    """Serve to the end. Raises ConfigError if the configuration cannot be served."""
    metrics.begin_process(child.number)
    with logging.Output(sys.stderr).queued() as output:
        logging.configure(settings.log.level, settings.log.format, output)
        logging.log_uncaught_exceptions()
        try:
            asyncio.run(_serve(child, settings, output))
        except Exception as error:
            raise errors.ConfigError(mistake(error)) from error


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
    serving = app.serving(settings, child.opened, name=child.name, ended=child.ended, mounts=child.mounts)
    async with serving as service:
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
