"""Tests that the program is replaced under load without a failed request, with sockets that a service manager holds."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from together import service_manager, strict_load

import nexar_sandbox
from proxy.config import loader
from proxy.gateway.stored_state import StoredState
from proxy.kit import clock

LOAD_SECONDS = 0.6  # of load before and after the replacement


@pytest.fixture
async def sandbox(catalog: nexar_sandbox.Catalog) -> AsyncIterator[nexar_sandbox.Sandbox]:
    plan = nexar_sandbox.SandboxApplication(
        name="A plan", application_id="unlimited", client_id="an-id", client_secret="a-secret", part_limit=10**6
    )
    async with nexar_sandbox.serve(
        nexar_sandbox.SandboxSettings(applications=(plan,)), clock=clock.SystemClock(), catalog=catalog
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


def target(mpn: str) -> str:
    return f"/v3/parts/match?apikey=KEY&queries={quote(json.dumps([{'mpn': mpn}]))}"


def check(status: int, body: bytes) -> None:
    (result,) = json.loads(body)["results"]
    assert status == 200
    assert result["error"] is None


def load_on(port: int, catalog: nexar_sandbox.Catalog) -> strict_load.Load:
    """Load of some 500 requests a second: equal ones on kept connections, ones that are paid for, and new
    connections."""
    load, mpns = strict_load.Load(port, check), itertools.cycle(part.mpn for part in catalog.parts())
    for _ in range(4):
        load.keep_connection(lambda: target("SN74S74N"), 0.02)
        load.keep_connection(lambda: target(next(mpns)), 0.03)
    load.keep_connection(lambda: target("BC547"), 0.9)
    load.open_connections(lambda: target(next(mpns)), 0.01)
    return load


async def test_no_request_fails_when_the_program_is_replaced_under_load(
    catalog: nexar_sandbox.Catalog, sandbox: nexar_sandbox.Sandbox, configured: Path, tmp_path: Path
) -> None:
    command = ("-m", "proxy", "serve", "--config", str(configured))
    async with service_manager.managing(tmp_path, "http") as manager:
        program = await manager.start(*command)
        load = load_on(manager.sockets["http"].getsockname()[1], catalog)
        await asyncio.sleep(LOAD_SECONDS)
        # As `systemctl restart` does it: connections wait in the socket's queue.
        assert await program.stop() == 0
        program = await manager.start(*command)
        await asyncio.sleep(LOAD_SECONDS)
        await load.stop()
        assert await program.stop() == 0
    assert load.failures == [], load.responses
    assert load.closed >= 9  # each client with a kept connection was told to open another one
    state = await StoredState.open(loader.load(configured, {}), clock.SystemClock())
    used = (await state.usage())[0]
    await state.aclose()
    assert (used.used, used.uncertain, used.reserved) == (sandbox.part_usage.used("unlimited"), 0, 0)
    assert used.used > 0
