"""The way of a request in docs/explanation/performance.md, from traces of the code: `python -m docs.request_ways`.

Starts the sandbox and the service in this process, as shipped, sends requests over a socket, and notes each function of
the service that is called meanwhile. What only some of several equal traces have is no part of the way.
"""

import ast
import asyncio
import contextlib
import os
import re
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import starmap
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

import nexar_sandbox
import proxy
from proxy import config
from proxy.cli import embedded
from proxy.config import loader
from proxy.gateway.cache import shared
from proxy.kit import event_loop, shipped
from proxy.telemetry import log, log_writer
from proxy.workers import single_process

PAGE = Path(__file__).parent / "explanation/performance.md"
END = "## Results\n"  # the section that follows
PACKAGE = Path(proxy.__file__).parent
FUNCTIONS_GOAL, MODULES_GOAL = 45, 25
READABLE = 100  # functions on a way, beyond which they are only counted
WARM = ("SN74S74N", "LM358N", "NE555P")
RESUMING = "2N3904"
TRACED = ("BC547B", "1N4148", "LM317T", "ATMEGA328P-PU")
LOG = "log"
PAUSE = 0.3  # seconds, in which what follows a response is done
UPSTREAM_MS = 200
HANDLE = "ConnectionHandler._handle_request"  # what the task of a connection calls
JOIN = "V3Routes._join"  # what a request calls that waits for an equal one
MAPPING = "compiled mapping"

TITLE = "## The way of a request\n"
HEAD = f"""{TITLE}
The functions that a request passes from its socket to the upstream and back, by module, as
`python -m docs.request_ways` traces them: one query to `/v3/parts/match`, as shipped, on the sandbox. Functions of
libraries are left out. [Architecture](../../ARCHITECTURE.md#data-flow-of-one-request) explains the steps.

"""
WAYS = {
    "A new request": "No cache has its result: it is planned, reserved, sent, settled, translated and stored.",
    "A repeated request": "Its bytes are those of an earlier hit, so that nothing is parsed.",
    "An equal request in flight": "It waits for the first one, and gets the same body.",
}


class Call(NamedTuple):
    """A function that was called, or a coroutine that was begun or continued: its file, its name, and its task."""

    file: str
    name: str
    task: int


class Hop(NamedTuple):
    """The functions of one module on a way, in order."""

    module: str
    functions: list[str]


Way = list[Hop]


async def ways() -> dict[str, Way]:
    """Trace all ways."""
    with _folder() as folder:
        async with _service(folder) as port:
            with _connection(port) as first, _connection(port) as second:
                for number in WARM:
                    await _get(first, number)
                    await _get(second, number)
                await asyncio.sleep(PAUSE)
                if "shared cache suspended" in (folder / LOG).read_text(encoding="utf-8"):  # a busy machine
                    await asyncio.sleep(shared.COOLDOWN)
                    await _get(first, RESUMING)
                new = [await _trace(first, number) for number in TRACED]
                for _ in range(4):
                    await _get(first, TRACED[0])
                repeated = [await _trace(first, TRACED[0]) for _ in TRACED]
                joined = [await _joined(first, second, f"{number}-NONE") for number in TRACED]
    return dict(zip(WAYS, map(_common, (new, repeated, joined)), strict=True))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Yield a temporary folder, to which the log is written as by `v3bridge serve`."""
    with (
        tempfile.TemporaryDirectory() as name,
        Path(name, LOG).open("w", encoding="utf-8") as file,
        log_writer.buffered(file) as stream,
    ):
        log.configure("info", "console", stream)
        yield Path(name)


async def page() -> str:
    """Trace all ways, and return the page with their section."""
    traced = await ways()
    rows = [
        f"| {name} | {_functions(way)} | {len(way)} | {FUNCTIONS_GOAL} in {MODULES_GOAL} |"
        for name, way in traced.items()
    ]
    counts = "| way | functions | modules | goal |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    text = HEAD + counts + "".join(_section(name, way) for name, way in traced.items())
    before, _, after = PAGE.read_text(encoding="utf-8").partition(END)
    return f"{before.partition(TITLE)[0]}{text}\n{END}{after}"


def _functions(way: Way) -> int:
    return sum(len(hop.functions) for hop in way)


def _section(name: str, way: Way) -> str:
    are_named = _functions(way) <= READABLE
    rows = (
        f"| `{hop.module}` | {_reason(hop.module)} | {_named(hop.functions) if are_named else len(hop.functions)} |\n"
        for hop in way
    )
    return f"\n### {name}\n\n{WAYS[name]}\n\n| module | what for | functions |\n|---|---|---|\n{''.join(rows)}"


def _named(functions: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in functions)


def _reason(module: str) -> str:
    """Return what the docstring of a module begins with."""
    if module == MAPPING:
        return "what `mapping/compiler.py` has made of a mapping file"
    docstring = ast.get_docstring(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))) or ""
    sentence = " ".join(docstring.split()).partition(". ")[0]
    return re.split(r":(?= [^`]*$)| \(|;", sentence, maxsplit=1)[0].rstrip(".")


@contextlib.asynccontextmanager
async def _service(folder: Path) -> AsyncIterator[int]:
    """Start the sandbox and the service; yield its port."""
    shipped_settings = loader.load(shipped.path("config.yaml"), os.environ, upstream=False)
    slow = nexar_sandbox.SandboxSettings(faults=nexar_sandbox.parse_faults(f"latency ms={UPSTREAM_MS}"))
    async with contextlib.AsyncExitStack() as stack:
        connected, _ = await embedded.with_sandbox(shipped_settings, stack, slow)
        settings = msgspec.structs.replace(
            connected,
            store=config.StoreUrl(f"sqlite:{folder}/state.sqlite"),
            listen=msgspec.structs.replace(connected.listen, port=0),
            admin=False,
        )
        service = await stack.enter_async_context(single_process.running(settings))
        yield int(service.urls.public.rstrip("/").rpartition(":")[2])


@contextlib.contextmanager
def _connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        yield connection


async def _get(connection: socket.socket, number: str) -> None:
    """Send a request, and wait for its response."""
    await asyncio.to_thread(_exchange, connection, number)


def _exchange(connection: socket.socket, number: str) -> None:
    queries = quote(f'[{{"mpn":"{number}"}}]')
    target = f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={queries}"
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
    while len(body) < length:
        body += connection.recv(65_536)


async def _trace(connection: socket.socket, number: str) -> list[Call]:
    """Return the calls of the service for a request: of its connection, of callbacks, and of tasks that it starts."""
    await asyncio.sleep(PAUSE)  # what the request before has left to do
    calls: list[Call] = []
    others = {id(task) for task in asyncio.all_tasks()}
    with _noting(calls):
        await _get(connection, number)
    others -= {call.task for call in calls if call.name == HANDLE}
    return [call for call in calls if call.task not in others]


async def _joined(first: socket.socket, second: socket.socket, number: str) -> list[Call]:
    """Return the calls of a request that waits for an equal one."""
    leader = asyncio.ensure_future(_get(first, number))
    await asyncio.sleep(UPSTREAM_MS / 4_000)
    calls: list[Call] = []
    with _noting(calls):
        await _get(second, number)
    await leader
    task = next(call.task for call in calls if call.name == JOIN)
    began = next(place for place, call in enumerate(calls) if call.task == task)
    return [call for place, call in enumerate(calls) if call.task == task or (not call.task and place < began)]


@contextlib.contextmanager
def _noting(calls: list[Call]) -> Iterator[None]:
    """Add the calls of this thread to a list, those of the service only."""

    def note(frame: object, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code  # type: ignore[attr-defined]
            if code.co_name[0] != "<" and code.co_filename.startswith((str(PACKAGE), "<mapping ")):
                task = asyncio.current_task()
                calls.append(Call(code.co_filename, code.co_qualname, 0 if task is None else id(task)))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def _common(traces: list[list[Call]]) -> Way:
    """Return the modules and functions that all traces have, in the order of the first."""
    called = [dict.fromkeys((_module(call), call.name) for call in trace) for trace in traces]
    way: dict[str, list[str]] = {}
    for module, name in called[0]:
        if all((module, name) in others for others in called):
            way.setdefault(module, []).append(name)
    return list(starmap(Hop, way.items()))


def _module(call: Call) -> str:
    return MAPPING if call.file.startswith("<") else str(Path(call.file).relative_to(PACKAGE))


if __name__ == "__main__":
    PAGE.write_text(event_loop.run(page()), encoding="utf-8")
