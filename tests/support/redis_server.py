"""A real redis-server on a socket of its own, as a process that a test can stop and start."""

import subprocess
import time
from pathlib import Path

import redis

SECONDS = 60.0


class RedisServer:
    """A redis-server on a unix socket, with further settings such as a TLS port. Data survives `kill` and `start`."""

    def __init__(self, program: str, folder: Path, more: dict[str, str] | None = None) -> None:
        self._more = more or {}
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{folder}/redis.sock"

    def start(self) -> None:
        """Start it, and wait until it responds."""
        settings = {"port": "0", "unixsocket": f"{self._folder}/redis.sock", "dir": str(self._folder), "save": ""}
        settings |= {"appendonly": "yes", "appendfsync": "no"} | self._more
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([self._program, *options], stdout=log, stderr=log)
        end = time.monotonic() + SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end, "redis-server did not answer in time"
            time.sleep(0.01)

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(SECONDS)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(SECONDS)

    def empty(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False
