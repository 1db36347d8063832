"""Tests of the processes of `v3bridge serve`: shared port, replacement after a crash, clean shutdown."""

import asyncio
import contextlib
import http.client
import os
import re
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from acceptance import bills, running
from support.running_commands import Run
from together.cli.conftest import Serve

CONFIG = """
upstream: {{graphql_url: "{url}/graphql", token_url: "{url}/connect/token"}}
store: "memory:"
applications: {{shop: {{apikeys: [{key}], features: all, client_id: an-id, client_secret: a-secret}}}}
"""
LOST = (ConnectionError, http.client.HTTPException)


class SlowUpstream:
    """Answers nothing until it is told to `go`; `asked` counts the queries that wait."""

    def __init__(self, upstream: running.ScriptedUpstream) -> None:
        self.url, self._upstream = upstream.url, upstream
        self.go = threading.Event()
        upstream.answer = self._answer

    @property
    def asked(self) -> int:
        return sum(len(each.variables["queries"]) for each in self._upstream.operations)

    async def _answer(self, operation: running.Operation) -> Any:
        await asyncio.to_thread(self.go.wait, running.SECONDS)
        return {"data": {"supMultiMatch": [{"hits": 0, "parts": []} for _ in operation.variables["queries"]]}}


@pytest.fixture
def upstream(processes: running.Processes) -> Iterator[SlowUpstream]:
    slow = SlowUpstream(processes.upstream())
    yield slow
    slow.go.set()


@pytest.fixture
def start(serve: Serve, upstream: SlowUpstream, tmp_path: Path) -> Callable[[int], running.Service]:
    """`start(2)` is a service of two workers that are up. What it leaves in its folder for files is in `tmp`."""
    (tmp_path / "tmp").mkdir()

    def started(workers: int) -> running.Service:
        text = CONFIG.format(url=upstream.url, key=bills.KEY)
        service = serve(text, "--workers", str(workers), TMPDIR=str(tmp_path / "tmp"))
        assert len(service.workers) == workers
        return service

    return started


@pytest.fixture
def ask(start: Callable[..., Any], upstream: SlowUpstream) -> Iterator[Callable[..., list[Future[int]]]]:
    """`ask(service, 8)` requests eight numbers, and returns once the upstream has the queries; the statuses to come."""
    with ThreadPoolExecutor(8) as clients:

        def asked(service: running.Service, count: int) -> list[Future[int]]:
            targets = [bills.match(f"X{number}") for number in range(count)]
            sent = [clients.submit(lambda target: service.get(target).status, target) for target in targets]
            running.until(lambda: upstream.asked == count, "the queries have arrived")
            return sent

        yield asked
        upstream.go.set()


def refuses(service: running.Service) -> bool:
    with contextlib.suppress(*LOST):
        return not service.get("/healthz")
    return True


def is_alive(pid: int) -> bool:
    """Return true if a process runs; a zombie does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_counters_outlive_a_killed_worker(start: Callable[[int], running.Service]) -> None:
    service = start(2)

    def counted() -> float:
        """Requests for health, of all workers, by whichever is asked."""
        text = running.request(service.operators, "/metrics").text
        found = re.search(r'v3bridge_requests_total\{route="/healthz",status="200"\} (\S+)', text)
        return float(found[1]) if found else 0.0

    running.until(lambda: all([counted() for _ in range(10)]), "all workers know")  # each writes once a second
    shown, workers = [counted()], service.workers
    os.kill(workers[0], signal.SIGKILL)
    while len({*service.workers} - {*workers}) < 1:
        with contextlib.suppress(*LOST):  # the dead one had accepted the connection
            assert service.get("/healthz").status == 200
            shown.append(counted())
    running.until(lambda: "exit=SIGKILL" in service.log, "the log says so")
    assert min([*shown, counted()]) == shown[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_finishes_requests_in_flight_and_accepts_no_more(
    start: Callable[[int], running.Service], ask: Any, upstream: SlowUpstream, workers: int
) -> None:
    service = start(workers)
    asked = ask(service, 8)
    os.kill(service.pid, signal.SIGTERM)
    running.until(lambda: refuses(service), "nothing more is accepted")
    assert not any(each.done() for each in asked)
    upstream.go.set()
    assert {each.result() for each in asked} == {200}
    assert running.until(lambda: service.ended is not None and [service.ended], "the service ends") == [0]


def test_requests_beyond_the_shutdown_limit_are_cancelled(start: Callable[[int], running.Service], ask: Any) -> None:
    service = start(2)
    (asked,) = ask(service, 1)
    assert service.stop() == 0
    with pytest.raises(LOST):
        asked.result()


def test_second_signal_stops_at_once(start: Callable[[int], running.Service], ask: Any) -> None:
    service = start(2)
    (asked,), workers = ask(service, 1), service.workers
    os.kill(service.pid, signal.SIGTERM)
    running.until(lambda: refuses(service), "nothing more is accepted")
    os.kill(service.pid, signal.SIGINT)
    assert running.until(lambda: service.ended, "the service ends") == 1
    with pytest.raises(LOST):
        asked.result()
    running.until(lambda: not any(map(is_alive, workers)), "the workers are killed")
    assert "Traceback" not in service.log


def test_worker_killed_while_it_starts_does_not_end_the_service(start: Callable[[int], running.Service]) -> None:
    service = start(1)
    for _ in range(3):
        before = service.workers
        os.kill(before[0], signal.SIGKILL)
        running.until(lambda: {*service.workers} - {*before}, "it is replaced")  # noqa: B023
    assert running.until(lambda: not refuses(service), "the last one serves")
    assert service.stop() == 0


def test_service_whose_last_worker_cannot_be_replaced_ends_with_the_reason(
    serve: Serve, upstream: SlowUpstream
) -> None:
    service = serve(CONFIG.format(url=upstream.url, key=bills.KEY).replace("memory:", "sqlite:store"))
    for file in [*service.folder.glob("store*")]:
        file.unlink()
    (service.folder / "store").mkdir()
    os.kill(service.workers[0], signal.SIGKILL)
    assert running.until(lambda: service.ended, "the service ends") == 1
    reason = f"no worker can serve: store: {service.folder}/store is a folder or a device; name a file"
    assert service.log.splitlines()[-1] == f"v3bridge: {reason}"


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_parent_leaves_nothing(start: Callable[[int], running.Service], tmp_path: Path, workers: int) -> None:
    service = start(workers)
    (folder,) = (tmp_path / "tmp").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    children = service.workers
    os.kill(service.pid, signal.SIGKILL)
    running.until(lambda: not any(map(is_alive, children)), "the workers are gone")
    assert refuses(service)
    running.until(lambda: not list((tmp_path / "tmp").iterdir()), "nothing is left")


def test_mistake_found_by_a_worker_is_one_line_and_exit_code_2(run_command: Run, tmp_path: Path) -> None:
    for name in ("proxy", "mappings"):
        shutil.copytree(running.ROOT / name, tmp_path / name)
    part = tmp_path / "mappings" / "part.yaml"
    part.write_text(part.read_text().replace("    mpn: mpn\n", "    mpn: mpnn\n"))
    (tmp_path / "own.yaml").touch(0o600)  # it holds a secret
    (tmp_path / "own.yaml").write_text(CONFIG.format(url="http://127.0.0.1:9", key=bills.KEY) + "admin: false\n")
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from proxy.__main__ import main; main()"
    options = ("--config", str(tmp_path / "own.yaml"), "--workers", "2", "--port", str(running.free_port()))
    done = run_command("serve", *options, python=("-c", start))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "v3bridge: part.yaml:9:5: Part.mpn: the service's type SupPart has no field 'mpnn'\n"


def test_embedded_sandbox_is_replaced_at_its_address(serve: Serve) -> None:
    service = serve((running.ROOT / "config.yaml").read_text())

    def started() -> list[int]:
        return [int(pid) for pid in re.findall(r"sandbox started pid=(\d+)", service.log)]

    os.kill(started()[0], signal.SIGKILL)
    running.until(lambda: len(started()) == 2, "another sandbox is there")
    found = service.get(bills.match("SN74S74N", key="EXAMPLE_KEY"))
    assert (found.status, bills.found(found)) == (200, ["SN74S74N"] * 3)
    assert service.stop() == 0
