"""A process that is killed while it fetches parts: the next run pays for the rest only."""

import asyncio
import sys
from pathlib import Path

from together.environment import single_application
from together.tools.sheet.sheet_source import NUMBERS, billed, booked, fetched, numbers, settings

import nexar_sandbox
from proxy.kit import clock
from proxy.tools.sheet import source as sources
from proxy.tools.sheet.source import ROUND

# Prints a line for each result.
PROGRAM = """
import asyncio, sys
from proxy import config
from proxy.kit import clock
from proxy.tools.sheet import source as sources
from proxy.tools.sheet.parts import PartQuery

graphql_url, token_url, client_id, store = sys.argv[1:5]
application = config.ApplicationSettings(
    apikeys=(config.ApiKeySettings(config.digest("EXAMPLE_KEY")),),
    client_id=config.ClientId(client_id),
    client_secret=config.Secret(sys.stdin.readline().strip()),
)
settings = config.Config(
    applications={"demo": application},
    store=config.StoreUrl(store),
    upstream=config.UpstreamSettings(graphql_url=graphql_url, token_url=token_url),
)

async def run():
    async with sources.open_source(settings, clock.SystemClock()) as source:
        async for result in source.fetch([PartQuery(f"SHEET{n:05}") for n in range(1000)]):
            print(result.query.mpn, flush=True)

asyncio.run(run())
"""


async def killed_run(sandbox: nexar_sandbox.Sandbox, store_url: str, results: int) -> int:
    """Start a run, and kill it when it has yielded so many results; return how many it had."""
    account = sandbox.default_application
    arguments = (sandbox.graphql_url, sandbox.token_url, account.client_id, store_url)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, *arguments, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(account.client_secret.encode() + b"\n")
    for _ in range(results):
        await process.stdout.readuntil(b"SHEET")  # the log is on standard output, too
    process.kill()
    rest = await process.stdout.read()
    await process.wait()
    return results + rest.count(b"SHEET")


async def test_second_run_after_a_kill_pays_for_the_rest_only(
    numbered: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> None:
    time, file = clock.SystemClock(), tmp_path / "state.sqlite"
    chosen = nexar_sandbox.SandboxSettings(
        applications=single_application(part_limit=2 * NUMBERS), faults=nexar_sandbox.parse_faults("latency ms=200")
    )
    async with nexar_sandbox.serve(chosen, clock=time, catalog=numbered, key=signing_key) as sandbox:
        yielded = await killed_run(sandbox, f"sqlite:{file}", 150)
        paid = billed(sandbox)
        assert yielded <= paid < NUMBERS
        async with sources.open_source(settings(sandbox, file), time) as source:
            cached = (await source.estimate(numbers(NUMBERS))).stored
            assert yielded <= cached
            assert len(await fetched(source, *numbers(NUMBERS))) == NUMBERS
            assert source.parts_spent == NUMBERS - cached
        # What was in flight is lost, though it was billed; the ledger has it as uncertain usage.
        assert billed(sandbox) - NUMBERS <= ROUND
        assert billed(sandbox) <= await booked(sandbox, file, time) <= NUMBERS + ROUND
