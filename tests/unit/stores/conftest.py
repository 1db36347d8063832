"""A store of each kind, and a real redis-server, started once for the tests of a process, on a socket of its own."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import redis

from proxy.kit import clock
from proxy.stores.base import Store
from proxy.stores.memory import MemoryStore
from proxy.stores.redis import RedisStore
from proxy.stores.sqlite import SqliteStore

SECONDS = 60.0


class RedisServer:
    """A redis-server that keeps its data between `stop` and `start`, and listens nowhere but on a unix socket."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{folder}/redis.sock"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {"port": "0", "unixsocket": f"{self._folder}/redis.sock", "dir": str(self._folder), "save": ""}
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *options, "--appendonly", "yes", "--appendfsync", "no"], stdout=log, stderr=log
            )
        end = time.monotonic() + SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end, "redis-server did not answer in time"
            time.sleep(0.01)

    def stop(self) -> None:
        """End it as an operator does."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(SECONDS)

    def empty(self) -> None:
        """Forget everything."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False


@pytest.fixture(scope="session")
def _redis_server(needs_program: Callable[[str], str]) -> Iterator[RedisServer]:
    program = needs_program("redis-server")
    folder = Path(tempfile.mkdtemp(prefix="v3bridge-"))  # short: a socket's path has 107 characters at most
    server = RedisServer(program, folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def redis_server(_redis_server: RedisServer) -> RedisServer:
    """The server, with nothing in it."""
    _redis_server.empty()
    return _redis_server


@pytest.fixture
def now() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "redis"])
def lasting(request: pytest.FixtureRequest) -> str:
    """The kinds that several processes share, and that outlive them."""
    return str(request.param)


Opens = Callable[[str], Awaitable[Store]]


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """What `store` says for a kind: the same place each time within a test."""

    def of(kind: str) -> str:
        if kind == "redis":
            return str(request.getfixturevalue("redis_server").url)
        return f"sqlite:{tmp_path}/state/store.sqlite" if kind == "sqlite" else "memory:"

    return of


@pytest.fixture
async def opens(address: Callable[[str], str], now: clock.ManualClock) -> AsyncIterator[Opens]:
    """Opens a store of a kind; closed with the test."""
    opened: list[Store] = []

    async def open_(kind: str) -> Store:
        opened.append(await open_at(address(kind), now))
        return opened[-1]

    yield open_
    for store in opened:
        await store.aclose()


async def open_at(url: str, time_: clock.Clock) -> Store:
    """The store at an address of `address`."""
    if url.startswith("sqlite:"):
        return await SqliteStore.open(Path(url.removeprefix("sqlite:")), time_)
    return MemoryStore(time_) if url == "memory:" else RedisStore(url, time_)


@pytest.fixture
async def store(opens: Opens, kind: str) -> Store:
    return await opens(kind)
