"""Parent of the service's processes: a worker for each set of listening sockets, and the embedded sandbox. It has no
event loop, no threads and no state of the service, and waits in one place: for signals, and for the pipes of its
children, which bring reports and end with them. What is imported before the fork takes memory once.
"""

import gc
import math
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from msgspec.structs import asdict, replace

from proxy import app, config, errors, metrics
from proxy import log as logging
from proxy.gateway import assembly

REPORT_SECONDS = 60.0  # that a child may take to start, or to follow a reload
CONFIGURATION = 2  # exit code of a child after a mistake in the configuration
STOP_SIGNALS = frozenset((signal.SIGTERM, signal.SIGINT))

log = structlog.get_logger()


def with_unchangeable(running: config.Config, wanted: config.Config) -> tuple[config.Config, list[str]]:
    """Return the wanted configuration with what waits for a restart as it is running, such as the store, and the names
    of these settings. Raises ConfigError where the rest is of no use without it."""
    bound = running.listen
    listen = replace(wanted.listen, host=bound.host, port=bound.port, workers=bound.workers)
    admin = running.admin
    if admin and wanted.admin:
        admin = replace(wanted.admin, host=admin.host, port=admin.port)
    upstream = running.upstream if "sandbox" in (running.upstream, wanted.upstream) else wanted.upstream
    kept = {"store": running.store, "listen": listen, "admin": admin, "upstream": upstream}
    # Only the sandbox serves applications without credentials.
    if upstream != "sandbox" and any(each.client_id is None for each in wanted.applications.values()):
        raise errors.ConfigError("upstream: the change to sandbox, which needs no credentials, needs a restart")
    waiting = []
    for name, each in kept.items():
        new = getattr(wanted, name)
        if isinstance(each, config.Settings) and isinstance(new, config.Settings):
            waiting += [f"{name}.{field}" for field, value in asdict(each).items() if value != getattr(new, field)]
        elif each != new:
            waiting.append(name)
    return replace(wanted, **kept), waiting


@dataclass(eq=False)
class Server:
    """The parent of the workers, and perhaps of the embedded sandbox. `read` reads the configuration, `resolve` returns
    what workers are given of it, `announce` is told "started", when all children serve, "reloading", then "reloaded" or
    "failed", and "stopping"."""

    settings: config.Config
    children: list[app.Child]
    read: Callable[[], config.Config]
    resolve: Callable[[config.Config], config.Config]
    announce: Callable[[str], None]
    _signals: set[int] = field(default_factory=set)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> int:
        """Serve until a signal stops it; return the exit code. Raises ConfigError, and StartError where the first
        workers cannot serve, or later no worker can."""
        assembly.translate(self.resolve(self.settings))
        is_at_terminal = os.isatty(0)
        wakeup, waking = socket.socketpair()
        waking.setblocking(False)
        signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # its number comes out of the other end
        self._selector.register(wakeup, selectors.EVENT_READ, lambda: self._signals.update(wakeup.recv(4096)))
        gc.freeze()  # a collection in a child would copy all memory that it shares with the parent
        try:
            while not (all(child.serves for child in self.children) or self._signals & STOP_SIGNALS):
                for child in self._wait():
                    kind = errors.ConfigError if child.code == CONFIGURATION else errors.StartError
                    raise kind(child.mistake or f"{child.kind} exited before it served ({child.exit})")
            if self._signals.isdisjoint(STOP_SIGNALS):
                self.announce("started")
            while self._signals.isdisjoint(STOP_SIGNALS):
                if signal.SIGHUP not in self._signals:
                    self._replace_ended()
                elif is_at_terminal and not os.isatty(0):
                    break  # the terminal is gone: nothing could stop the service there
                else:
                    self._reload()
            log.info("service stopping", stop_seconds=config.STOP_SECONDS)
            self.announce("stopping")
        finally:
            code = self._end()
        log.info("service stopped")
        return code

    def _reload(self) -> None:
        """Read and check the configuration, and hand it to the workers, or leave it as it is."""
        self._signals.clear()
        self.announce("reloading")
        try:
            settings, waiting = with_unchangeable(self.settings, self.read())
            resolved = self.resolve(settings)
            assembly.translate(resolved)
        except Exception as error:
            log.error("configuration reload failed", mistakes=app.mistake(error).splitlines())
            self.announce("failed")
            return
        self.settings = settings
        logging.configure(settings.log.level, settings.log.format, logging.Output(sys.stderr))
        for child in self.children:
            if child.pid and child.number:
                child.deadline = time.monotonic() + REPORT_SECONDS
                with suppress(OSError):  # who does not read it does not report, either
                    child.pipe.send(resolved)
        while any(child.deadline < math.inf for child in self.children) and self._signals.isdisjoint(STOP_SIGNALS):
            self._replace_ended()
        if any(child.mistake for child in self.children):
            self.announce("failed")
        elif self._signals.isdisjoint(STOP_SIGNALS):
            log.info("configuration reloaded", waiting_for_restart=waiting)
            self.announce("reloaded")

    def _replace_ended(self) -> None:
        """Wait for something to happen; successors take the places of children that have ended. Raises StartError."""
        for child in self._wait():
            if child.mistake and not child.serves and not any(each.pid and each.number for each in self.children):
                # Clients would be connected, and wait for a worker that does not come.
                raise errors.StartError(f"no worker can serve: {child.mistake}")
            successor = child.successor()
            log.error(f"{child.kind} exited", worker=child.number, exit=child.exit, retry_in=successor.retry_in)
            self.children.append(successor)

    def _wait(self) -> list[app.Child]:
        """Start children that are due, kill those that are late, wait, and return those that have ended."""
        for child in self.children:
            if not child.pid and child.due <= time.monotonic():
                self._fork(child)
        until = min(child.deadline if child.pid else child.due for child in self.children)
        for key, _ in self._selector.select(None if until == math.inf else max(0.0, until - time.monotonic())):
            key.data()
        for child in self.children:
            if child.pid and child.deadline <= time.monotonic():
                log.error("worker killed", worker=child.number, reason="it did not start, reload or stop in time")
                child.deadline = math.inf
                os.kill(child.pid, signal.SIGKILL)
        ended = [child for child in self.children if child.exit]
        for child in ended:
            self._selector.unregister(child.pipe)
            child.pipe.close()
            self.children.remove(child)
            metrics.forget_gauges(child.number)
        return ended

    def _fork(self, child: app.Child) -> None:
        self._selector.register(child.pipe, selectors.EVENT_READ, child.hear)
        child.deadline, code = time.monotonic() + REPORT_SECONDS, 1
        try:
            child.pid = os.fork()
        except OSError as error:  # no more processes for now
            child.exit = str(error)
            return
        if child.pid:
            child.pipe_of_child.close()
            return
        try:
            # Ctrl-C at a terminal reaches a child, too; the parent reloads, and ends the pipe.
            for number in (*STOP_SIGNALS, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            # Else pipes would not end with the parent, and connections would wait in queues after its end.
            for other in self.children:
                other.pipe.close()
                if other is not child:
                    other.pipe_of_child.close()
                for each in other.sockets - child.sockets:
                    each.close()
            child.main(child, self.resolve(self.settings))
            code = 0
        except Exception as error:
            code = CONFIGURATION if isinstance(error, errors.ConfigError) else 1
            child.pipe_of_child.send(app.mistake(error))
        finally:
            os._exit(code)

    def _end(self) -> int:
        """Let the workers finish their requests, then end all; return 1 if a second signal cut that short."""
        self._signals.clear()
        for child in self.children:
            for each in child.sockets:
                each.close()  # so that new connections are refused, unless a service manager has the socket
        self.children = [child for child in self.children if child.pid]
        workers = [child for child in self.children if child.number]
        for child in workers:
            with suppress(OSError):
                child.pipe.send(None)
        end = time.monotonic() + config.STOP_SECONDS + app.KILL_AFTER
        while not (all(child.exit for child in workers) or self._signals & STOP_SIGNALS):
            for child in workers:
                child.deadline = end  # also after a report, which ends another deadline
            self._wait()
        for child in self.children:
            os.kill(child.pid, signal.SIGKILL)
        while self.children:
            self._wait()
        return int(not self._signals.isdisjoint(STOP_SIGNALS))
