"""Tests of the log of `v3bridge serve` at start and stop, where nothing reads it or it cannot be written."""

import fcntl
import http.client
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import proxy

if TYPE_CHECKING:
    from support.redis_server import RedisServer

ROOT = Path(__file__).parents[3]
SECONDS = 30.0  # that a line or an end may take
CONFIG = """
listen: {{port: 0, workers: {workers}}}
upstream: {{graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}}
store: "{store}"
log: {{format: json}}
applications: {{shop: {{apikeys: ["a-key"], client_id: an-id, client_secret: "s3cret"}}}}
"""

# Runs a module as a program, with a SIGHUP at each of its imports from within the package.
HANGUPS = """
import os, runpy, signal, sys
class Hangups:
    def find_spec(self, name, *_):
        if name.startswith(("proxy.cli", "proxy.config", "proxy.log")):
            os.kill(os.getpid(), signal.SIGHUP)
sys.meta_path.insert(0, Hangups())
runpy.run_module(sys.argv.pop(1), run_name="__main__")
"""


@pytest.fixture
def start_service(start_command: Any, tmp_path: Path) -> Any:
    """`start_service(2)` is a running service of two workers and its URL."""

    def serve(workers: int = 1, store: str = "memory:") -> Any:
        file = tmp_path / "own.yaml"
        file.write_text(CONFIG.format(workers=workers, store=store))
        serving = start_command("serve", "--config", str(file))
        (line, *_) = serving.until("curl")
        return serving, next(word for word in line.split() if word.startswith("http://")).removesuffix("/v3.")

    return serve


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """The command line of a service of one process."""
    (tmp_path / "own.yaml").write_text(CONFIG.format(workers=1, store="memory:"))
    return [sys.executable, "-m", "proxy", "serve", "--config", str(tmp_path / "own.yaml")]


def lines(serving: Any, event: Any) -> Any:
    return [line for line in map(json.loads, serving.errors.splitlines()) if line["event"] == event]


def alive(url: Any) -> Any:
    with urllib.request.urlopen(f"{url.removesuffix('/v3')}/healthz", timeout=SECONDS) as response:
        return response.status == 200


def test_sighup_is_ignored_while_modules_are_imported(run_command: Any) -> None:
    assert run_command("proxy", "serve", "--config", "missing.yaml", python=("-c", HANGUPS)).returncode == 2


def test_start_and_stop_are_logged_with_version_and_settings(start_service: Any, tmp_path: Path) -> None:
    serving, url = start_service(1, "sqlite:state.sqlite")
    assert serving.stop(signal.SIGTERM) == 0
    (started,) = lines(serving, "service started")
    assert started.pop("timestamp")
    assert started.pop("admin").startswith("http://127.0.0.1:")
    assert started == {
        "event": "service started",
        "level": "info",
        "version": proxy.__version__,
        "config": str(tmp_path / "own.yaml"),
        "address": url.removesuffix("/v3"),
        "workers": 1,
        "upstream": "http://127.0.0.1:9/graphql",
        "store": f"sqlite:{tmp_path / 'state.sqlite'}",
    }
    assert [line["stop_seconds"] for line in lines(serving, "service stopping")] == [10.0]
    assert serving.errors.splitlines()[-1].startswith('{"event":"service stopped"')


def test_start_log_line_has_no_password(start_service: Any, redis_server: "RedisServer") -> None:
    import redis

    address = redis_server.url.replace("unix://", "unix://:passw0rd@")
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("requirepass", "passw0rd")
    try:
        serving, _ = start_service(1, address)
        assert serving.stop(signal.SIGTERM) == 0
    finally:
        with redis.Redis.from_url(address) as client:
            client.config_set("requirepass", "")
    assert [line["store"] for line in lines(serving, "service started")] == [redis_server.url]
    assert "passw0rd" not in serving.errors


def test_service_without_terminal_stops_cleanly(command: list[str]) -> None:
    """If the signal were ignored there too, the process would keep its port and could not be stopped."""
    ours, theirs = pty.openpty()

    def at_its_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=at_its_terminal
    ) as it:
        os.close(theirs)
        shown = b""
        while b"service started" not in shown:
            shown += os.read(ours, 4096)
        os.close(ours)
        assert it.wait(SECONDS) == 0


def test_unwritable_log_fails_no_request(command: list[str]) -> None:
    with (
        open("/dev/full", "w") as full,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=full, text=True) as it,
    ):
        assert it.stdout is not None
        line = it.stdout.readline()
        url = next(word for word in line.split() if word.startswith("http://")).removesuffix("/v3.")
        try:
            assert all(alive(url) for _ in range(3))
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{url}/v3/parts/match", timeout=SECONDS)
            with refused.value as reply:
                assert reply.code == 400
        finally:
            it.terminate()
            assert it.wait(SECONDS) == 0


def test_log_has_the_line_of_every_request_when_the_service_is_stopped(start_service: Any) -> None:
    serving, url = start_service()
    for number in range(40):
        request = urllib.request.Request(f"{url}/nothing", headers={"X-Request-Id": f"number-{number}"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(request, timeout=SECONDS)
    assert serving.stop(signal.SIGTERM) == 0
    assert {line["request"] for line in lines(serving, "request completed")} == {f"number-{n}" for n in range(40)}
    assert serving.errors.splitlines()[-1].startswith('{"event":"service stopped"')


def test_unread_log_does_not_block_requests(command: list[str]) -> None:
    """A pipe takes 64 KiB; after that a write would wait for a reader."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http")).removesuffix("/v3.")
        connection = http.client.HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=SECONDS)
        for _ in range(600):  # of 200 bytes each
            connection.request("GET", "/v3/nothing")
            assert connection.getresponse().read()
        connection.close()
        process.terminate()
        assert process.wait(SECONDS) == 0
