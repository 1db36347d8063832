"""`python -m bench.request_way`: functions of the service that a new request passes from its socket to the upstream and
back, by module.

Starts the sandbox and the service in this process, as shipped, sends distinct queries over a socket, and notes each
function of the service that is called meanwhile. What only some of the requests call is left out.
"""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

import nexar_sandbox
import proxy
from proxy import app, config
from proxy.cli import embedded
from proxy.config import loader
from proxy.kit import event_loop, shipped

PACKAGE = Path(proxy.__file__).parent
WARM = ("SN74S74N", "LM358N", "NE555P")
TRACED = ("BC547B", "1N4148", "LM317T", "ATMEGA328P-PU")
PAUSE = 0.3  # seconds, in which what follows a response is done
UPSTREAM_MS = 20
MAPPING = "compiled mapping"


class Function(NamedTuple):
    """A function of a module."""

    module: str
    name: str


async def way() -> list[Function]:
    """Return the functions that every new request calls, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        async with _service(Path(folder)) as port:
            others = asyncio.all_tasks()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for number in WARM:
                await _get(reader, writer, number)
            traces = [await _trace(reader, writer, number, others) for number in TRACED]
            writer.close()
    return [each for each in traces[0] if all(each in trace for trace in traces)]


@contextlib.asynccontextmanager
async def _service(folder: Path) -> AsyncIterator[int]:
    """Start the sandbox and the service; yields its port."""
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
        service = await stack.enter_async_context(app.serving(settings))
        yield int(service.url.rstrip("/").rpartition(":")[2])


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: str) -> None:
    queries = quote(f'[{{"mpn":"{number}"}}]')
    target = f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={queries}"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", head)[0]))


async def _trace(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: str, others: set["asyncio.Task[object]"]
) -> dict[Function, None]:
    """Return the functions that are called for a request: by its connection, by callbacks, and by tasks that it
    starts."""
    await asyncio.sleep(PAUSE)  # what the request before has left to do
    called: dict[Function, None] = {}
    with _noting(called, others):
        await _get(reader, writer, number)
    return called


@contextlib.contextmanager
def _noting(called: dict[Function, None], others: set["asyncio.Task[object]"]) -> Iterator[None]:
    """Note the functions of the service that this thread calls, except in these tasks."""

    def note(frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        own = code.co_filename.startswith((str(PACKAGE), "<mapping "))
        if event == "call" and own and code.co_name[0] != "<" and asyncio.current_task() not in others:
            called.setdefault(Function(_module(code.co_filename), code.co_qualname))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def _module(file: str) -> str:
    return MAPPING if file.startswith("<") else str(Path(file).relative_to(PACKAGE))


def main() -> None:
    """Print the modules with the number of their functions, and how many there are in all."""
    functions = event_loop.run(way())
    modules = Counter(function.module for function in functions)
    for module, count in modules.items():
        print(f"{count:4} {module}")
    print(f"{len(functions)} functions in {len(modules)} modules")


if __name__ == "__main__":
    main()
