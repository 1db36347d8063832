"""Child processes of a parent without event loop and threads: forked, replaced when they die, and ended.

A child serves until the end of its pipe, which comes when the parent closes it, and also when the parent has been
killed. On the pipe it reports that it serves, and the result of each order.
"""

import os
import secrets
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec
import structlog

from proxy import errors
from proxy.telemetry import multiprocess

STEADY_SECONDS = 10.0  # a child that ran so long is replaced without back-off
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds before a child that ended early is replaced
SEND_SECONDS = 10.0  # that a child may take to read an order
STOP_SIGNALS = frozenset((signal.SIGTERM, signal.SIGINT))

log = structlog.get_logger()


class Report(msgspec.Struct, frozen=True):
    """Report of a child, as one line: it serves, or follows an order; or why it cannot. `result` is what the parent
    needs to know of it."""

    mistake: str = ""
    result: dict[str, str | int] = {}

    def line(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


class Child:
    """Place of a process: the one that runs, if any, and when the next one is due. `main` is what it does with its
    pipe, and returns the exit code.

    `orders` counts those without a report, `result` is that of the first report, and `ended` has the names of
    predecessors until a successor serves.
    """

    def __init__(self, kind: str, number: int, main: Callable[["Child", socket.socket], int]) -> None:
        self.kind = kind
        self.number = number
        self.main = main
        self.pid = 0
        self.name = ""
        self.serves = False
        self.orders = 0
        self.result: dict[str, str | int] = {}
        self.ended: list[str] = []
        self.due = 0.0
        self.pipe: socket.socket | None = None
        self.received = b""
        self.started = 0.0
        self.early_exits = 0

    def close(self) -> None:
        """Tell the process to stop."""
        if self.pipe is not None:
            self.pipe.close()
            self.pipe = None

    def send(self, order: bytes) -> None:
        """Send an order. A process that does not read it is killed."""
        if self.pipe is None:
            return
        self.pipe.settimeout(SEND_SECONDS)
        try:
            self.pipe.sendall(order)
            self.pipe.setblocking(False)
            self.orders += 1
        except OSError:
            log.error("worker killed", worker=self.number, reason="it did not read its configuration")
            self.kill()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def restart_delay(early_exits: int) -> float:
    """Return the seconds to wait after so many exits in a row that came soon after a start."""
    return min(BACKOFF_MAX, BACKOFF_FIRST * 2.0 ** min(early_exits - 1, 10)) if early_exits else 0.0


class Children:
    """All children, and the signals that the parent has received. `have_started` once all of them have served: until
    then the end or the mistake of one is an error, ConfigError."""

    def __init__(self, places: Sequence[Child]) -> None:
        self.places = places
        self.signals: list[int] = []
        self.have_started = False
        self._wakeup, self._waking = socket.socketpair()

    def watch_signals(self) -> None:
        self._wakeup.setblocking(False)
        self._waking.setblocking(False)
        signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda number, _: self.signals.append(number))

    def start(self, places: Sequence[Child]) -> None:
        """Fork the processes of these places that are due, and wait until something happens, or the next one is due."""
        for child in places:
            if not child.pid and child.due <= time.monotonic():
                self._fork(child)
        due = [child.due - time.monotonic() for child in places if not child.pid]
        self._wait(max(0.0, min(due)) if due else None)
        for child in self.places:
            if child.pid and (status := os.waitpid(child.pid, os.WNOHANG))[0]:
                self._receive(child)
                multiprocess.mark_dead(str(child.number))
                code = os.waitstatus_to_exitcode(status[1])
                self._postpone(child, f"exit code {code}" if code >= 0 else signal.Signals(-code).name)
        self.have_started = self.have_started or all(child.serves for child in self.places)

    def end(self, places: Sequence[Child], seconds: float) -> bool:
        """End processes, and wait for them. A second signal kills them, as do the seconds; return whether it did."""
        before, deadline, was_told = len(self.signals), time.monotonic() + seconds, False
        for child in places:
            child.close()
        while running := [child for child in places if child.pid]:
            was_told = was_told or not STOP_SIGNALS.isdisjoint(self.signals[before:])
            left = deadline - time.monotonic()
            if was_told or left <= 0:
                for child in running:
                    log.error("worker killed", worker=child.number, reason="it did not stop in time")
                    child.kill()
            self._wait(None if was_told or left <= 0 else left)
            for child in running:
                if os.waitpid(child.pid, os.WNOHANG)[0]:
                    child.pid = 0
        return was_told

    def _wait(self, seconds: float | None) -> None:
        """Wait for a signal, the end of a child or a report."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakeup, selectors.EVENT_READ)
            for child in self.places:
                if child.pipe is not None:
                    selector.register(child.pipe, selectors.EVENT_READ)
            selector.select(seconds)
        with suppress(BlockingIOError):
            self._wakeup.recv(4096)
        for child in self.places:
            self._receive(child)

    def _receive(self, child: Child) -> None:
        with suppress(BlockingIOError, ConnectionError):
            while child.pipe is not None:
                if not (data := child.pipe.recv(65_536)):
                    child.close()
                child.received += data
        *lines, child.received = child.received.split(b"\n")
        for line in lines:
            self._follow(child, msgspec.json.decode(line, type=Report))

    def _follow(self, child: Child, report: Report) -> None:
        if report.mistake:
            if not self.have_started:
                raise errors.ConfigError(report.mistake)
            log.error("configuration refused", worker=child.number, mistakes=report.mistake.splitlines())
        if child.serves:
            child.orders -= 1
        elif not report.mistake:
            child.serves, child.result = True, report.result
            child.ended.clear()
            log.info(f"{child.kind} started", worker=child.number, pid=child.pid)

    def _fork(self, child: Child) -> None:
        ours, theirs = socket.socketpair()
        child.name, child.started = secrets.token_hex(8), time.monotonic()
        try:
            child.pid = os.fork()
        except OSError as error:  # no more processes for now
            self._postpone(child, error.strerror or str(error))
            return
        if child.pid == 0:
            ours.close()
            self._become(child, theirs)
        theirs.close()
        ours.setblocking(False)
        child.pipe, child.received = ours, b""

    def _become(self, child: Child, pipe: socket.socket) -> NoReturn:
        """Be a child, in a session of its own: Ctrl-C at a terminal reaches the parent only."""
        code = 1
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (*STOP_SIGNALS, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent reloads
            for each in (self._wakeup, self._waking):
                each.close()
            for other in self.places:
                other.close()  # else their ends would not come with that of the parent
            code = child.main(child, pipe)
        except errors.StartError as error:
            code = 2
            with suppress(OSError):
                pipe.sendall(Report(error.message).line())
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            os._exit(code)

    def _postpone(self, child: Child, reason: str) -> None:
        """Let another process take the place of one that has ended or could not be forked."""
        if not self.have_started:
            raise errors.ConfigError(f"{child.kind} exited before it accepted connections ({reason})")
        child.close()
        child.ended.append(child.name)
        child.pid, child.serves, child.orders = 0, False, 0
        is_steady = time.monotonic() - child.started >= STEADY_SECONDS
        child.early_exits = 0 if is_steady else child.early_exits + 1
        delay = restart_delay(child.early_exits)
        child.due = time.monotonic() + delay
        log.error(f"{child.kind} exited", worker=child.number, exit=reason, retry_in=delay)
