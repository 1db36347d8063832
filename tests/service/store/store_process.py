"""A store in a process of its own, which a test can kill between any two statements."""

import asyncio
import contextlib
import multiprocessing
import os
import sqlite3
from multiprocessing.connection import Connection
from typing import Any, ClassVar
from unittest import mock

from support import store_client

from proxy import errors
from proxy.kit.clock import ManualClock
from proxy.store.store import Store

CACHE_BYTES = 2**20  # more than a test stores
# Forks a small process, as copies of pytest's memory would cost more than what the store does.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["proxy.store.redis", "proxy.store.sqlite", "pytest", "unittest.mock"])


class DiedError(Exception):
    """The process was killed before it replied."""


class StoreProcess:
    """Process with one store at a time. Those that end well are used again."""

    _idle: ClassVar[list["StoreProcess"]] = []

    def __init__(self) -> None:
        self._pipe, other = SERVER.Pipe()
        self._process = SERVER.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    @classmethod
    def open(cls, now: float, address: str, worker: str) -> "StoreProcess":
        """Open the store in a file, or of a Redis server, in the name of a worker."""
        process = cls._idle.pop() if cls._idle else cls()
        process.call(now, "open", address, worker)
        return process

    def call(self, now: float, name: str, *arguments: Any, die_at: int = 0) -> Any:
        """Call an operation; with `die_at` the process dies before that statement of it. Raises DiedError."""
        try:
            self._pipe.send((now, name, arguments, die_at))
            reply = self._pipe.recv()
        except (EOFError, OSError):
            self.kill()
            raise DiedError from None
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self, now: float) -> None:
        """Close the store."""
        self.call(now, "aclose")
        self._idle.append(self)

    @classmethod
    def end_idle(cls) -> None:
        """End the processes that wait to be used again: they have copies of all files of the tests."""
        while cls._idle:
            cls._idle.pop().kill()

    def kill(self) -> None:
        """End the process at once, by SIGKILL."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    left, clock, store = [0], ManualClock(), None
    plain: Any = sqlite3.connect

    def die(_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            os._exit(1)

    def connect(*arguments: Any, **options: Any) -> Any:
        connection = plain(*arguments, **options)
        connection.set_trace_callback(die)
        return connection

    with mock.patch("sqlite3.connect", connect), asyncio.Runner() as runner, contextlib.suppress(EOFError):
        run = runner.get_loop().run_until_complete  # Runner.run would set handlers of signals each time
        while True:
            now, name, arguments, left[0] = pipe.recv()
            clock.advance(now - clock.now())
            reply: Any = None
            try:
                if name == "open":
                    address, worker = arguments
                    store = run(store_client.open_store(address, clock, worker, CACHE_BYTES))
                else:
                    assert store is not None
                    reply = run(_call(store, name, arguments))
            except errors.StoreUnavailable as error:
                reply = error
            pipe.send(reply)


async def _call(store: Store, name: str, arguments: tuple[Any, ...]) -> Any:
    if name == "view":
        return await store.usage(), await store.quote(*arguments)
    return await getattr(store, name)(*arguments)
