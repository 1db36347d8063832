"""Parent of the service's processes: a worker for each set of listening sockets, and the embedded sandbox.

It has no event loop, no threads and no state of the service. What is imported before the fork takes memory once.
"""

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from proxy import app, children, config, errors, sockets, worker
from proxy.config import changes
from proxy.kit import event_loop, hangup, service_manager

Addresses = dict[str, str | int]  # of the sandbox, by name

log = structlog.get_logger()


class Source(NamedTuple):
    """Where the configuration comes from, and what the command line does for the parent.

    `sandbox` serves the embedded sandbox at a port, 0 for a free one, and yields its addresses, `port` among them;
    `connect` adds them to a configuration. `started` is called when all workers serve, `reloaded` with the outcome of a
    reload.
    """

    read: Callable[[], config.Config]
    configure_log: Callable[[config.LogSettings], None]
    sandbox: Callable[[int], AbstractAsyncContextManager[Addresses]]
    connect: Callable[[config.Config, Addresses], config.Config]
    started: Callable[[], None]
    reloaded: Callable[[str], None]


class Server:
    """The parent, with a worker for each of `opened`. `folders` are private to the service, and empty."""

    def __init__(
        self,
        settings: config.Config,
        source: Source,
        opened: Sequence[sockets.WorkerSockets],
        folders: Sequence[Path],
        manager: service_manager.ServiceManager = service_manager.NONE,
    ) -> None:
        self._settings, self._source, self._opened = settings, source, opened
        self._folders, self._manager = folders, manager
        self._loaded, self._failed = time.time(), False
        self._pid = os.getpid()
        self._workers = [children.Child("worker", number, self._run_worker) for number in range(1, len(opened) + 1)]
        self._sandbox: list[children.Child] = []
        if settings.upstream == "sandbox":
            self._sandbox.append(children.Child("sandbox", 0, self._run_sandbox))
        self._children = children.Children([*self._sandbox, *self._workers])
        self._terminal_is_gone = hangup.watch_terminal()
        self._announce: Callable[[], None] | None = source.started  # once all follow their orders

    def run(self) -> int:
        """Serve until a signal stops it; return the exit code. Raises StartError if the first workers cannot serve."""
        app.check(self._settings)
        self._children.watch_signals()
        gc.freeze()  # a collection in a child would copy all memory that it shares with the parent
        try:
            while not self._is_stopped():
                self._turn()
            log.info("service stopping", stop_seconds=self._settings.listen.stop_seconds)
            self._manager.stopping("finishing requests")
        finally:
            was_told_again = self._end()
        log.info("service stopped")
        return int(was_told_again)

    def _is_stopped(self) -> bool:
        signals = self._children.signals
        return not children.STOP_SIGNALS.isdisjoint(signals) or (signal.SIGHUP in signals and self._terminal_is_gone())

    def _turn(self) -> None:
        """Wait for something to happen, and act on it."""
        knows_sandbox = all(child.result for child in self._sandbox)
        self._children.start(self._children.places if knows_sandbox else self._sandbox)
        if not self._children.have_started or self._is_stopped():
            return
        if self._announce is not None and not any(child.orders for child in self._workers):
            announce, self._announce = self._announce, None
            announce()
        if signal.SIGHUP in self._children.signals:
            while signal.SIGHUP in self._children.signals:
                self._children.signals.remove(signal.SIGHUP)
            self._reload()

    def _end(self) -> bool:
        """Let the workers finish their requests, and then end the sandbox; return whether a second signal came."""
        for opened in self._opened:
            for each in (*opened.public, *opened.operators):
                each.close()  # so that new connections are refused, unless a service manager has the socket
        seconds = self._settings.listen.stop_seconds + worker.KILL_AFTER
        was_told_again = self._children.end(self._workers, seconds)
        return self._children.end(self._sandbox, worker.KILL_AFTER) or was_told_again

    def _reload(self) -> None:
        """Read and check the configuration, and hand it to the workers, or leave it as it is."""
        self._manager.reloading()
        settings: config.Config | None = None
        waiting: list[str] = []
        mistakes: list[str] = []
        try:
            settings, waiting = changes.with_unchangeable(self._settings, self._source.read())
            app.check(self._resolved(settings))
        except errors.StartError as error:
            mistakes = error.message.splitlines()
        except Exception as error:  # a bug: the running configuration goes on
            log.error("internal error caught", exc_info=error)
            mistakes = [f"internal error: {type(error).__name__}; see the log"]
        if settings is None or mistakes:
            settings, self._failed = None, True
            log.error("configuration reload failed", mistakes=mistakes)
        else:
            self._settings, self._loaded, self._failed = settings, time.time(), False
            self._source.configure_log(settings.log)
        resolved = None if settings is None else self._resolved(settings)
        for place, child in enumerate(each for each in self._workers if each.pid):
            child.send(worker.Order(resolved, self._loaded, counts=place == 0).encode())

        def announce() -> None:
            if settings is not None:
                log.info("configuration reloaded", waiting_for_restart=waiting)
            self._source.reloaded("failed" if settings is None else "reloaded")

        self._announce = announce

    def _resolved(self, settings: config.Config) -> config.Config:
        """Return the settings of the workers: with the addresses of the sandbox, and a store that they share."""
        for child in self._sandbox:
            settings = self._source.connect(settings, child.result)
        if settings.store.reveal() == "memory:" and len(self._workers) > 1:
            store = config.StoreUrl(f"sqlite:{self._folders[0] / 'state.sqlite'}")
            settings = msgspec.structs.replace(settings, store=store)
        return settings

    def _run_worker(self, child: children.Child, pipe: socket.socket) -> int:
        own = self._opened[child.number - 1]
        kept = {*own.public, *own.operators}
        for opened in self._opened:
            # Else connections in their queues would wait for ever once the parent has been killed.
            for each in {*opened.public, *opened.operators} - kept:
                each.close()
        start = worker.Start(
            number=child.number,
            name=child.name,
            ended=tuple(child.ended),
            settings=self._resolved(self._settings),
            opened=own,
            loaded=self._loaded,
            failed=self._failed,
            parent=self._pid,
            folders=self._folders,
        )
        return worker.run(start, pipe)

    def _run_sandbox(self, child: children.Child, pipe: socket.socket) -> int:
        for opened in self._opened:
            for each in (*opened.public, *opened.operators):
                each.close()
        return event_loop.run(self._serve_sandbox(int(child.result.get("port", 0)), pipe))

    async def _serve_sandbox(self, port: int, pipe: socket.socket) -> int:
        """Serve until the pipe ends, whatever signals come: the workers finish their requests first."""
        for number in children.STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)
        async with self._source.sandbox(port) as addresses:
            reader, writer = await asyncio.open_connection(sock=pipe)
            writer.write(children.Report(result=addresses).line())
            await reader.read()
        return 0
