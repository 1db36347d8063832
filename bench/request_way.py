"""Functions of the service that a new request passes from its socket to the upstream and back.

The sandbox and the service run in this process, as shipped. Distinct queries are sent over a socket, and each function
of the service that is called meanwhile is noted; what only some of the requests call is left out.
"""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

import nexar_sandbox
import proxy
from bench.processes import target
from proxy import app, cli, config
from proxy.config import loader
from proxy.kit import shipped

PACKAGE = Path(proxy.__file__).parent
NUMBERS = ("SN74S74N", "LM358N", "NE555P", "BC547B", "1N4148", "LM317T", "ATMEGA328P-PU")
WARM = 3  # of them
PAUSE = 0.3  # seconds, in which what follows a response is done
GOALS = {"functions of a new request": -150, "modules of a new request": -30}


def run() -> dict[str, float]:
    """Return how many there are."""
    modules = Counter(asyncio.run(_way()))
    return {"functions of a new request": modules.total(), "modules of a new request": len(modules)}


async def _way() -> list[str]:
    """Return the module of each function that every new request calls."""
    settings = loader.load(shipped("config.yaml"), os.environ, upstream=False)
    slow = nexar_sandbox.SandboxSettings(faults=nexar_sandbox.parse_faults("latency ms=20"))
    async with contextlib.AsyncExitStack() as stack:
        store = config.StoreUrl(f"sqlite:{stack.enter_context(tempfile.TemporaryDirectory())}/state.sqlite")
        connected, _ = await cli.with_sandbox(settings, stack, slow)
        listen = msgspec.structs.replace(connected.listen, port=0)
        served = msgspec.structs.replace(connected, store=store, listen=listen, admin=False)
        service = await stack.enter_async_context(app.serving(served))
        others = asyncio.all_tasks()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(service.url.rstrip("/").rpartition(":")[2]))
        stack.callback(writer.close)

        async def get(number: str) -> None:
            writer.write(f"GET {target(number)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", head)[0]))

        async def traced(number: str) -> set[tuple[str, str]]:
            """Return the functions that are called for a request: by its connection, by callbacks, and by tasks that it
            starts."""
            await asyncio.sleep(PAUSE)
            called: set[tuple[str, str]] = set()

            def note(frame: object, event: str, _: object) -> None:
                code = frame.f_code  # type: ignore[attr-defined]
                own = code.co_filename.startswith((str(PACKAGE), "<mapping "))
                if event == "call" and own and code.co_name[0] != "<" and asyncio.current_task() not in others:
                    called.add((code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname))

            sys.setprofile(note)
            try:
                await get(number)
            finally:
                sys.setprofile(None)
            return called

        functions = set.intersection(*[await traced(number) for number in NUMBERS][WARM:])
        return sorted(module for module, _ in functions)
