"""The service, its sandbox, commands and a scripted upstream, as a user has them: processes, files, URLs.

Nothing here imports the service, nor anything that does. All listen on loopback only, and end with their `Processes`.
"""

import asyncio
import contextlib
import glob
import http.client
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jwt
from aiohttp import web

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PROGRAM = str(BIN / "v3bridge")
SECONDS = 60.0  # that something may take before its test fails
FIRST_PORT, PORT_RANGES, PORTS = 15_000, 16, 1_000  # below those that the system gives away

T = TypeVar("T")


class Response(NamedTuple):
    """What a client received; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def request(
    url: str, target: str = "", *, method: str = "GET", body: str | bytes | None = None, **headers: str
) -> Response:
    """Send one request over a connection of its own, its target exactly as given. `user_agent=` is User-Agent."""
    host, slash, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=SECONDS)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, slash + path + target, body, named)
        answer = connection.getresponse()
        text = answer.read().decode()
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
    finally:
        connection.close()


def until(condition: Callable[[], T], what: str = "the condition", seconds: float = SECONDS) -> T:
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"{what} did not come true in {seconds} s"
        time.sleep(0.02)


def free_port() -> int:
    """Return a free port that the system gives to nobody who asks for any, nor another process of these tests."""
    while True:
        port = next(_ports)
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.bind(("127.0.0.1", port))
            return port


def _own_ports() -> Iterator[int]:
    """Yield the ports of this process of xdist, of which each has a range, again and again from anywhere in it."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PORT_RANGES
    first = FIRST_PORT + number * PORTS
    begin = random.randrange(PORTS)
    return itertools.cycle(first + (begin + each) % PORTS for each in range(PORTS))


_ports = _own_ports()


def environment(folder: Path, changes: dict[str, str]) -> dict[str, str]:
    """Return the environment of a user whose home is the folder."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "NO_COLOR": "1", **changes}


def command(
    *arguments: str | Path, folder: Path, given: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run `v3bridge ARGUMENTS` in a folder to its end."""
    return run([PROGRAM, *map(str, arguments)], folder, given, variables)


def run(
    words: list[str], folder: Path, given: str = "", variables: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder to its end."""
    env = environment(folder, variables or {})
    return subprocess.run(
        words, cwd=folder, env=env, input=given, capture_output=True, text=True, timeout=SECONDS, check=False
    )


class Clock:
    """The time of all processes that are started with it (faketime); theirs goes on from where it is turned to."""

    def __init__(self, folder: Path) -> None:
        (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        self._file = folder / "time"
        self.ahead = 0.0
        self.turn(0)
        names = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(self._file)}
        self.variables = {**names, "FAKETIME_NO_CACHE": "1"}

    def turn(self, seconds: float) -> None:
        """Turn it on (or back) by so many seconds."""
        self.ahead += seconds
        new = self._file.with_suffix(".new")
        new.write_text(f"{self.ahead:+.3f}\n")
        new.replace(self._file)

    def turn_to(self, moment: float) -> None:
        """Turn it to a moment, in seconds since 1970."""
        self.turn(moment - time.time() - self.ahead)


class Process:
    """A `v3bridge` that goes on until it is ended, in a process group of its own."""

    def __init__(self, folder: Path, variables: dict[str, str], clock: Clock | None) -> None:
        self.folder, self.clock = folder, clock
        self._variables = environment(folder, {**(clock.variables if clock else {}), **variables})
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, *arguments: str) -> None:
        with (self.folder / "out").open("ab") as out, (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, *arguments],
                cwd=self.folder, env=self._variables, stdout=out, stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The exit code, once it has ended."""
        assert self._process is not None
        return self._process.poll()

    @property
    def log(self) -> str:
        """What it wrote to standard error since its first start."""
        return (self.folder / "log").read_text()

    @property
    def output(self) -> str:
        """What it wrote to standard output since its first start."""
        return (self.folder / "out").read_text()

    def stop(self) -> int:
        """Send SIGTERM, wait for its end and return the exit code."""
        assert self._process is not None
        os.kill(self.pid, signal.SIGTERM)
        return self._process.wait(SECONDS)

    def kill(self) -> None:
        """End it with all its workers, which have sessions of their own, by SIGKILL."""
        if self._process is not None:
            for pid in [self.pid, *descendants(self.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, children) for each in (child, *descendants(child))]


class Service(Process):
    """`v3bridge serve` with a configuration from its text. `url` is for clients, `operators` for operators; the text
    leaves both ports out."""

    def __init__(
        self, folder: Path, text: str, options: tuple[str, ...], variables: dict[str, str], clock: Clock | None
    ) -> None:
        super().__init__(folder, variables, clock)
        self.file = folder / "v3bridge.yaml"
        self._options = options
        self._ports = free_port(), free_port()
        self.url, self.operators = (f"http://127.0.0.1:{port}" for port in self._ports)
        self.write(text)
        self.start()

    def write(self, text: str) -> None:
        """Write the configuration, which is read at the next start or SIGHUP."""
        operators = "" if "\nadmin:" in f"\n{text}" else f"\nadmin: {{port: {self._ports[1]}}}\n"
        self.file.touch(0o600)
        self.file.write_text(text + operators)

    def start(self) -> None:
        """Start it (again, on the same files) and wait until it serves."""
        self._start("serve", "--config", str(self.file), "--port", str(self._ports[0]), *self._options)
        until(self._serves, "the service serves")

    def _serves(self) -> bool:
        assert self.ended is None, f"exit code {self.ended}\n{self.log}"
        with contextlib.suppress(OSError):
            return request(self.url, "/healthz").status == 200
        return False

    @property
    def workers(self) -> list[int]:
        """The process ids of its workers; none if it is one process."""
        return [int(each) for each in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def restart(self) -> None:
        self.stop()
        self.start()

    def reload(self, text: str) -> None:
        """Write another configuration and send SIGHUP; it is taken over a moment later."""
        self.write(text)
        os.kill(self.pid, signal.SIGHUP)

    def get(self, target: str, **options: Any) -> Response:
        return request(self.url, target, **options)


class Sandbox(Process):
    """`v3bridge sandbox`. `ways` are the addresses and credentials that it prints, by name."""

    def __init__(self, folder: Path, options: tuple[str, ...], variables: dict[str, str], clock: Clock | None) -> None:
        super().__init__(folder, variables, clock)
        self._start("sandbox", "--port", str(free_port()), *options)
        until(self._is_ready, "the sandbox is ready")
        self.ways = {words[0]: words[1] for words in map(str.split, self.output.splitlines()) if len(words) == 2}
        self.url = self.ways["sandbox"]

    def _is_ready(self) -> bool:
        assert self.ended is None, self.log
        return "design_client_secret" in self.output

    @property
    def upstream(self) -> str:
        """The setting `upstream` for a service in front of it."""
        return f'upstream: {{graphql_url: "{self.ways["graphql_url"]}", token_url: "{self.ways["token_url"]}"}}'

    @property
    def credentials(self) -> str:
        """The credentials of its first application, as settings of an application."""
        return f"client_id: {self.ways['client_id']}, client_secret: {self.ways['client_secret']}"

    def journal(self, last: int = 50_000) -> Any:
        """Return its `totals` and `entries` of requests."""
        return request(self.url, f"/admin/journal?last={last}").json

    @property
    def parts(self) -> int:
        """Parts billed."""
        return int(self.journal(0)["totals"]["parts"])

    def requests(self, service: str) -> int:
        """Return how many requests a service has read: graphql, token, legacy, design."""
        return int(self.journal(0)["totals"]["requests"].get(service, 0))

    def inject(self, *faults: str) -> None:
        """Replace all faults by these: `inject("5xx share=0.5")`; none at all without any."""
        answer = request(self.url, "/admin/faults", method="PUT", body=json.dumps(faults))
        assert answer.status == 200, answer.text


@dataclass(frozen=True)
class Operation:
    """A GraphQL request that the scripted upstream has read."""

    client_id: str
    name: str | None
    query: str
    variables: dict[str, Any]
    headers: dict[str, str]


@dataclass
class ScriptedUpstream:
    """Identity service and GraphQL API in a thread. Tokens say whose they are. `answer` returns bodies, or responses of
    aiohttp; it may be a coroutine function and wait."""

    answer: Callable[[Operation], Any] = lambda _: {"data": None}
    operations: list[Operation] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)  # the client id of each token request
    token_seconds: float = 86_400
    url: str = ""

    @property
    def upstream(self) -> str:
        """The setting `upstream` for a service in front of it."""
        return f'upstream: {{graphql_url: "{self.url}/graphql", token_url: "{self.url}/connect/token"}}'

    def of(self, client_id: str) -> list[Operation]:
        """Return the operations of an application."""
        return [each for each in self.operations if each.client_id == client_id]

    async def give_token(self, request: web.Request) -> web.Response:
        client_id = str((await request.post())["client_id"])
        self.tokens.append(client_id)
        claims = {"client_id": client_id, "exp": int(time.time() + self.token_seconds)}
        token = jwt.encode(claims, "a secret of the tests that is long enough", algorithm="HS256")
        return web.json_response({"access_token": token, "expires_in": self.token_seconds, "token_type": "Bearer"})

    async def execute(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        token = request.headers["Authorization"].removeprefix("Bearer ")
        client_id = jwt.decode(token, options={"verify_signature": False})["client_id"]
        headers = {name.lower(): value for name, value in request.headers.items()}
        names = body.get("operationName"), body["query"], body.get("variables") or {}
        operation = Operation(client_id, *names, headers)
        self.operations.append(operation)
        value = self.answer(operation)
        value = await value if isinstance(value, Coroutine) else value
        return value if isinstance(value, web.StreamResponse) else web.json_response(value)


@contextlib.contextmanager
def scripted_upstream() -> Iterator[ScriptedUpstream]:
    """Serve in a thread while the block runs."""
    upstream = ScriptedUpstream()
    app = web.Application()
    app.router.add_post("/connect/token", upstream.give_token)
    app.router.add_post("/graphql", upstream.execute)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(step: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, loop).result(SECONDS)

    async def listen() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    try:
        run(listen())
        yield upstream
    finally:
        run(runner.cleanup())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Processes(contextlib.ExitStack):
    """Starts processes, each with a folder of its own, and ends them with its block."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder, self._number = folder, 0

    def service(self, text: str, *options: str, clock: Clock | None = None, **variables: str) -> Service:
        """Start `v3bridge serve OPTIONS` with the text as its configuration; it serves when this returns."""
        return self._ended_later(Service(self.new_folder(), text, options, variables, clock))

    def sandbox(self, *options: str, clock: Clock | None = None, **variables: str) -> Sandbox:
        """Start `v3bridge sandbox OPTIONS`; it is ready when this returns."""
        return self._ended_later(Sandbox(self.new_folder(), options, variables, clock))

    def upstream(self) -> ScriptedUpstream:
        return self.enter_context(scripted_upstream())

    def clock(self) -> Clock:
        """Return a clock for processes that are started with it."""
        return Clock(self.new_folder())

    def new_folder(self) -> Path:
        """Return a new empty folder."""
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        return folder

    def _ended_later(self, process: T) -> T:
        assert isinstance(process, Process)
        self.callback(process.kill)
        return process
