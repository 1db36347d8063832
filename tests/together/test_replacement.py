"""The program is replaced under load without a failed request, with sockets that a service manager holds."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from together import service_manager

import nexar_sandbox
from proxy.config import loader
from proxy.gateway import StoredState
from proxy.kit import clock

LOAD_SECONDS = 0.6  # of load before and after the replacement


@pytest.fixture
async def sandbox(catalog: nexar_sandbox.Catalog) -> AsyncIterator[nexar_sandbox.Sandbox]:
    plan = nexar_sandbox.SandboxApplication(
        name="A plan", application_id="unlimited", client_id="an-id", client_secret="a-secret", part_limit=10**6
    )
    async with nexar_sandbox.serve(
        nexar_sandbox.SandboxSettings(applications=(plan,)), clock=clock.Clock(), catalog=catalog
    ) as running:
        yield running


@pytest.fixture
def configured(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(f"""
upstream: {{graphql_url: "{sandbox.graphql_url}", token_url: "{sandbox.token_url}"}}
store: sqlite:{tmp_path}/state.sqlite
applications: {{unlimited: {{client_id: an-id, client_secret: a-secret, apikeys: [KEY]}}}}
admin: false
log: {{format: json, level: warning}}
""")
    file.chmod(0o600)
    return file


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mpn: str, last: bool) -> bool:
    """Request a part, and return whether the response ends its connection. What is not a whole response fails."""
    target = f"/v3/parts/match?apikey=KEY&queries={quote(json.dumps([{'mpn': mpn}]))}"
    connection = "close" if last else "keep-alive"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: {connection}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    body = await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
    assert head.startswith("http/1.1 200")
    assert json.loads(body)["results"][0]["error"] is None
    return "connection: close" in head


async def send(port: int, numbers: Callable[[], str], stopped: asyncio.Event, pause: float, keep: bool) -> int:
    """Send requests, each on a connection of its own or on one until a response ends it; how many connections ended so.
    Nothing is sent again, as HTTP libraries do if a connection breaks."""
    ended = 0
    while not stopped.is_set():
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
        while not (is_last := await ask(reader, writer, numbers(), last=not keep)) and not stopped.is_set():
            await asyncio.sleep(pause)
        ended += is_last
        writer.close()
        await asyncio.sleep(pause)
    return ended


async def test_no_request_fails_when_the_program_is_replaced_under_load(
    catalog: nexar_sandbox.Catalog, sandbox: nexar_sandbox.Sandbox, configured: Path, tmp_path: Path
) -> None:
    command = ("-m", "proxy", "serve", "--config", str(configured))
    stopped, mpns = asyncio.Event(), itertools.cycle(part.mpn for part in catalog.parts())
    async with service_manager.managing(tmp_path, "http") as manager:
        program = await manager.start(*command)
        port = manager.sockets["http"].getsockname()[1]
        kept = [
            asyncio.create_task(send(port, numbers, stopped, pause, keep=True))
            for numbers, pause in [(lambda: "SN74S74N", 0.02), (lambda: next(mpns), 0.03), (lambda: "BC547", 0.9)] * 3
        ]
        new = [asyncio.create_task(send(port, lambda: next(mpns), stopped, 0.02, keep=False)) for _ in range(4)]
        await asyncio.sleep(LOAD_SECONDS)
        # As `systemctl restart` does it: connections wait in the socket's queue.
        assert await program.stop() == 0
        program = await manager.start(*command)
        await asyncio.sleep(LOAD_SECONDS)
        stopped.set()
        assert min(await asyncio.gather(*kept)) >= 1  # each was told to open another connection
        assert min(await asyncio.gather(*new)) > 1
        assert await program.stop() == 0
    async with StoredState.open(loader.load(configured, {}), clock.Clock()) as state:
        used = (await state.usage())[0]
    assert (used.used, used.uncertain, used.reserved) == (sandbox.part_usage.used("unlimited"), 0, 0)
    assert used.used > 0
