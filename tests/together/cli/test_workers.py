"""Tests of the processes of `v3bridge serve`: shared port, replacement after a crash, clean shutdown."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
import yarl
from aiohttp import web
from support import served
from support.running_commands import Run, Start

ROOT = Path(__file__).parents[3]
SECONDS = 60.0  # that a condition may take before its test fails
KEY = "a-key-of-our-own"
TOKEN = jwt.encode({"exp": 4_000_000_000}, "a secret of the tests that is long enough", algorithm="HS256")
CONFIG = """
listen: {{port: 0}}
admin: {{port: 0}}
upstream: {{graphql_url: "{url}/graphql", token_url: "{url}/token"}}
applications: {{shop: {{apikeys: ["{key}"], features: all, client_id: an-id, client_secret: a-secret}}}}
log: {{format: json}}
"""


class SlowUpstream:
    """A service that answers nothing until it is told to `go`; `asked` counts the queries that wait."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()
        self.url = ""

    async def token(self, request: web.Request) -> web.Response:
        return web.json_response({"access_token": TOKEN, "expires_in": 86_400})

    async def graphql(self, request: web.Request) -> web.Response:
        queries = (await request.json())["variables"]["queries"]
        self.asked += len(queries)
        await self.go.wait()
        return web.json_response({"data": {"supMultiMatch": [{"hits": 0, "parts": []} for _ in queries]}})


@pytest.fixture
async def upstream() -> AsyncIterator[SlowUpstream]:
    slow = SlowUpstream()
    app = web.Application()
    app.router.add_post("/token", slow.token)
    app.router.add_post("/graphql", slow.graphql)
    async with served.on_loopback(app) as slow.url:
        yield slow
        slow.go.set()


class Service:
    """A running service of several workers, asked over a new connection each time."""

    def __init__(self, process: Any, url: str, operators_url: str) -> None:
        self.process = process
        self.url = url
        self.operators_url = operators_url

    async def get(self, path: str) -> tuple[int, str, str]:
        """Status, request id, text."""
        url = self.operators_url if path == "/metrics" else self.url
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=timeout) as session,
            session.get(yarl.URL(url + path, encoded=True)) as response,
        ):
            return response.status, response.headers.get("X-Request-Id", ""), await response.text()

    async def match(self, number: int) -> int:
        """The status of a question of its own."""
        queries = urllib.parse.quote(json.dumps([{"mpn": f"X{number}"}]))
        return (await self.get(f"/v3/parts/match?apikey={KEY}&queries={queries}"))[0]

    async def answering(self) -> str:
        """Return the process that responds: the first half of its request ids."""
        status, request, _ = await self.get("/healthz")
        assert status == 200
        return request[:8]

    async def counted(self) -> float:
        """Requests for health, of all workers, by whichever is asked."""
        _, _, text = await self.get("/metrics")
        found = re.search(r'v3bridge_requests_total\{route="/healthz",status="200"\} (\S+)', text)
        return float(found[1]) if found else 0.0

    async def refuses(self) -> bool:
        try:
            await self.get("/healthz")
        except aiohttp.ClientError:
            return True
        return False

    def lines(self, event: str) -> list[dict[str, Any]]:
        lines = [line for line in self.process.errors.splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in map(json.loads, lines) if line["event"] == event]

    @property
    def pids(self) -> list[int]:
        """Every worker that ever answered."""
        return [line["pid"] for line in self.lines("worker started")]


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition, plain or awaitable."""
    async with asyncio.timeout(SECONDS):
        while True:
            met = condition()
            if await met if asyncio.iscoroutine(met) else met:
                return
            await asyncio.sleep(0.02)


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Return true if a process runs; a zombie does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def start_service(start_command: Start, tmp_path: Path, upstream: SlowUpstream, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`await serves(2)` is a service of two workers that is up. What it leaves in its folder for files is in `tmp`."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))

    async def serve(workers: int) -> Service:
        file = tmp_path / "own.yaml"
        file.write_text(CONFIG.format(url=upstream.url, key=KEY))
        process = start_command("serve", "--config", str(file), "--workers", str(workers))
        lines = await asyncio.to_thread(process.until, "For operators")
        url, operators_url = (re.findall(r"http://[^/]+", line)[0] for line in (lines[0], lines[-1]))
        service = Service(process, url, operators_url)
        await until(lambda: len(service.pids) == workers)
        return service

    return serve


async def test_killed_worker_is_restarted_without_outage_or_counter_reset(start_service: Any) -> None:
    service = await start_service(2)
    await service.answering()

    async def is_known_to_all() -> bool:
        return all([await service.counted() for _ in range(10)])

    await until(is_known_to_all)  # each process writes its counters once a second
    shown = [await service.counted()]
    os.kill(service.pids[0], signal.SIGKILL)
    await until(lambda: service.lines("worker exited"))
    while len(service.pids) < 3:
        with contextlib.suppress(aiohttp.ClientConnectionError):  # the dead one had accepted the connection
            assert len(await service.answering()) == 8
            shown.append(await service.counted())
    shown.append(await service.counted())
    assert min(shown) == shown[0]
    assert [line["exit"] for line in service.lines("worker exited")] == ["SIGKILL"]


@pytest.mark.parametrize("workers", [1, 2])
async def test_sigterm_finishes_requests_in_flight_and_accepts_no_more(
    start_service: Any, upstream: SlowUpstream, workers: int
) -> None:
    service = await start_service(workers)
    asking = [asyncio.create_task(service.match(number)) for number in range(8)]
    await until(lambda: upstream.asked == 8)
    service.process.tell(signal.SIGTERM)
    await until(service.refuses)
    assert not any(task.done() for task in asking)
    upstream.go.set()
    assert set(await asyncio.gather(*asking)) == {200}
    assert await asyncio.to_thread(service.process.ended) == 0


async def test_requests_beyond_the_shutdown_limit_are_cancelled(start_service: Any, upstream: SlowUpstream) -> None:
    service = await start_service(2)
    asking = asyncio.create_task(service.match(1))
    await until(lambda: upstream.asked == 1)
    assert await asyncio.to_thread(service.process.stop, signal.SIGTERM) == 0
    with pytest.raises(aiohttp.ClientError):
        await asking


async def test_second_signal_stops_at_once(start_service: Any, upstream: SlowUpstream) -> None:
    service = await start_service(2)
    asking = asyncio.create_task(service.match(1))
    await until(lambda: upstream.asked == 1)
    service.process.tell(signal.SIGTERM)
    await until(service.refuses)
    assert await asyncio.to_thread(service.process.stop, signal.SIGINT) == 1
    with pytest.raises(aiohttp.ClientError):
        await asking
    await until(lambda: not any(map(alive, service.pids)))  # they are killed, which takes a moment
    assert "Traceback" not in service.process.errors


def _is_replaced(service: Service, killed: int) -> bool:
    return len(service.lines("worker exited")) == killed and bool(children(service.process.pid))


async def test_worker_that_is_killed_while_it_starts_does_not_end_the_service(start_service: Any) -> None:
    service = await start_service(1)
    for killed in range(1, 4):
        before = set(children(service.process.pid))
        os.kill(before.pop(), signal.SIGKILL)
        await until(partial(_is_replaced, service, killed))
    assert len(await service.answering()) == 8
    assert await asyncio.to_thread(service.process.stop, signal.SIGTERM) == 0


@pytest.mark.parametrize("workers", [1, 2])
async def test_workers_of_a_killed_parent_exit_and_leave_no_files(
    start_service: Any, tmp_path: Path, workers: int
) -> None:
    service = await start_service(workers)
    (folder,) = (tmp_path / "tmp").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert await asyncio.to_thread(service.process.stop, signal.SIGKILL) == -signal.SIGKILL
    await until(lambda: not any(map(alive, service.pids)))
    assert await service.refuses()
    await until(lambda: not list((tmp_path / "tmp").iterdir()))


def test_mistake_found_by_a_worker_is_one_line_and_exit_code_2(run_command: Run, tmp_path: Path) -> None:
    for name in ("proxy", "mappings"):
        shutil.copytree(ROOT / name, tmp_path / name)
    part = tmp_path / "mappings" / "part.yaml"
    part.write_text(part.read_text().replace("    mpn: mpn\n", "    mpn: mpnn\n"))
    (tmp_path / "own.yaml").touch(0o600)  # it holds a secret
    (tmp_path / "own.yaml").write_text(CONFIG.format(url="http://127.0.0.1:9", key=KEY))
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from proxy.__main__ import main; main()"
    options = ("--config", str(tmp_path / "own.yaml"), "--workers", "2")
    done = run_command("serve", *options, python=("-c", start))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "v3bridge: part.yaml:9:5: Part.mpn: the service's type SupPart has no field 'mpnn'\n"


def test_embedded_sandbox_is_replaced_at_its_address(start_command: Start) -> None:
    serving = start_command("serve", "--port", "0")
    (line, *_) = serving.until("curl")
    url = line.partition("listening at ")[2].partition(" on")[0]
    first, end = _started_sandboxes(serving.errors)[0], time.monotonic() + SECONDS
    os.kill(first, signal.SIGKILL)
    while len(_started_sandboxes(serving.errors)) < 2:
        assert time.monotonic() < end, serving.errors
        time.sleep(0.02)
    query = urllib.parse.quote('[{"mpn":"SN74S74N"}]')
    with urllib.request.urlopen(f"{url}/parts/match?apikey=EXAMPLE_KEY&queries={query}", timeout=SECONDS) as response:
        assert json.load(response)["results"][0]["hits"] > 0
    assert serving.stop(signal.SIGTERM) == 0


def _started_sandboxes(log: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"sandbox started pid=(\d+)", log)]
