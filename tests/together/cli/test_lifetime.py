"""Tests of the log of `v3bridge serve` at start and stop, where nothing reads it or it cannot be written."""

import fcntl
import http.client
import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from acceptance import running
from support.running_commands import Run
from together.cli.conftest import Serve

import proxy

if TYPE_CHECKING:
    from support.redis_server import RedisServer

CONFIG = """
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
def command(tmp_path: Path) -> list[str]:
    """The command line of a service of one process."""
    (tmp_path / "own.yaml").write_text(CONFIG.format(store="memory:"))
    return [sys.executable, "-m", "proxy", "serve", "--config", str(tmp_path / "own.yaml"), "--port", "0"]


def lines(service: running.Service, event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, service.log.splitlines()) if line["event"] == event]


def test_sighup_is_ignored_while_modules_are_imported(run_command: Run) -> None:
    assert run_command("proxy", "serve", "--config", "missing.yaml", python=("-c", HANGUPS)).returncode == 2


def test_start_and_stop_are_logged_with_version_and_settings(serve: Serve) -> None:
    service = serve(CONFIG.format(store="sqlite:state.sqlite"))
    assert service.stop() == 0
    started, *_ = lines(service, "service started")
    assert started.pop("timestamp")
    assert started == {
        "event": "service started",
        "level": "info",
        "version": proxy.__version__,
        "config": str(service.file),
        "address": service.url,
        "admin": service.operators,
        "workers": 1,
        "upstream": "http://127.0.0.1:9/graphql",
        "store": f"sqlite:{service.folder / 'state.sqlite'}",
    }
    assert {line["stop_seconds"] for line in lines(service, "service stopping")} == {10.0}
    assert service.log.splitlines()[-1].startswith('{"event":"service stopped"')


def test_start_log_line_has_no_password(serve: Serve, redis_server: "RedisServer") -> None:
    import redis

    address = redis_server.url.replace("unix://", "unix://:passw0rd@")
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("requirepass", "passw0rd")
    try:
        service = serve(CONFIG.format(store=address))
        assert service.stop() == 0
    finally:
        with redis.Redis.from_url(address) as client:
            client.config_set("requirepass", "")
    assert {line["store"] for line in lines(service, "service started")} == {redis_server.url}
    assert "passw0rd" not in service.log


def test_service_without_terminal_stops_cleanly(command: list[str]) -> None:
    """If the signal were ignored there too, the process would keep its port and could not be stopped."""
    ours, theirs = pty.openpty()

    def at_its_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        command, cwd=running.ROOT, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=at_its_terminal
    ) as it:
        os.close(theirs)
        shown = b""
        while b"service started" not in shown:
            shown += os.read(ours, 4096)
        os.close(ours)
        assert it.wait(running.SECONDS) == 0


@pytest.mark.parametrize("is_full", [True, False])
def test_log_that_is_full_or_unread_fails_no_request(command: list[str], is_full: bool) -> None:
    """A pipe takes 64 KiB; after that a write would wait for a reader."""
    with (
        open("/dev/full", "w") as full,
        subprocess.Popen(
            command, cwd=running.ROOT, stdout=subprocess.PIPE, stderr=full if is_full else subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        connection = http.client.HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=running.SECONDS)
        for _ in range(600):  # of 200 bytes each
            connection.request("GET", "/v3/nothing")
            response = connection.getresponse()
            assert (response.status, bool(response.read())) == (404, True)
        connection.close()
        process.terminate()
        assert process.wait(running.SECONDS) == 0


def test_log_has_the_line_of_every_request_when_the_service_is_stopped(serve: Serve) -> None:
    service = serve(CONFIG.format(store="memory:"))
    names = {f"number-{number}" for number in range(40)}
    assert {service.get("/nothing", x_request_id=name).status for name in names} == {404}
    assert service.stop() == 0
    assert {line["request"] for line in lines(service, "request completed") if line["route"] == "unknown"} == names
    assert service.log.splitlines()[-1].startswith('{"event":"service stopped"')
