"""Tests of `v3bridge serve` under a service manager: its sockets and its notifications."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from acceptance import running
from together import service_manager
from together.service_manager import ServiceManager

Command = Callable[..., tuple[str, ...]]


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[ServiceManager]:
    async with service_manager.managing(tmp_path, "http") as started:
        yield started


@pytest.fixture
def serve(tmp_path: Path) -> Command:
    """The command, with a configuration of so many workers."""

    def command(workers: int = 1, *options: str) -> tuple[str, ...]:
        file = tmp_path / "config.yaml"
        file.write_text(f"""
listen: {{workers: {workers}}}
upstream: {{graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}}
applications: {{shop: {{apikeys: ["a-key"], client_id: an-id, client_secret: s3cret}}}}
store: "memory:"
admin: false
log: {{format: json}}
""")
        file.chmod(0o600)
        return ("-m", "proxy", "serve", "--config", str(file), *options)

    return command


def lines(program: service_manager.Program, event: str) -> list[dict[str, object]]:
    whole = [line for line in program.errors.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in map(json.loads, whole) if line["event"] == event]


async def status(port: int) -> int:
    return (await asyncio.to_thread(running.request, f"http://127.0.0.1:{port}", "/healthz")).status


async def test_states_are_reported_and_the_socket_is_kept(
    manager: ServiceManager, serve: Command, tmp_path: Path
) -> None:
    program = await manager.start(*serve(2))
    file, port = tmp_path / "config.yaml", manager.sockets["http"].getsockname()[1]
    # The port of the configuration has no effect, so that a change of it waits for nothing.
    file.write_text(file.read_text().replace("listen: {", "listen: {port: 1, connections: 999, "))
    program.process.send_signal(signal.SIGHUP)
    await program.until(f"STATUS=serving at http://127.0.0.1:{port}; last reload: reloaded")
    assert await status(port) == 200
    assert await program.stop() == 0
    started, reloading, ready, stopping = (message.splitlines() for message in program.notified)
    assert started == ["READY=1", f"STATUS=serving at http://127.0.0.1:{port}"]
    assert (reloading[0], ready[0]) == ("RELOADING=1", "READY=1")
    assert reloading[1].startswith("MONOTONIC_USEC=")
    assert stopping == ["STOPPING=1", "STATUS=finishing requests"]
    line, *_ = lines(program, "socket inherited")
    assert line["address"] == f"127.0.0.1:{port}"
    line, *_ = lines(program, "configuration reloaded")
    assert line["waiting_for_restart"] == []


async def test_socket_that_cannot_be_used_is_one_line_and_exit_code_2(tmp_path: Path, serve: Command) -> None:
    async with service_manager.managing(tmp_path) as manager:
        with socket.socket() as manager.sockets["http"]:
            program = await manager.launch(*serve(1))
        assert await program.process.wait() == 2
    assert program.errors.startswith("v3bridge: socket activation: file descriptor 3 is no listening TCP socket")
    assert program.errors.count("\n") == 1
    assert program.notified == []


async def test_connections_in_the_queue_outlive_the_workers(manager: ServiceManager, serve: Command) -> None:
    program = await manager.start(*serve(2))
    pids = running.descendants(program.process.pid)
    assert len(pids) == 2
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    waiting = [asyncio.create_task(status(manager.sockets["http"].getsockname()[1])) for _ in range(8)]
    await asyncio.sleep(0.1)
    assert not any(each.done() for each in waiting)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert set(await asyncio.gather(*waiting)) == {200}
