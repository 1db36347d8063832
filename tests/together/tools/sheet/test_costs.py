"""Tests of what `v3bridge sheet fill` spends: on a sandbox in the test, which counts parts and holds requests."""

import asyncio
import csv
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support import commands, served
from support.workbooks import workbook
from together.terminal import terminals

import nexar_sandbox

LINES = 450  # five upstream requests, of which four are sent at once
SECRET = "S3CRET-OF-THE-TEST"


class Service:
    """A sandbox behind a server that can hold requests, and a folder with its configuration `our.yaml`."""

    def __init__(self, sandbox: nexar_sandbox.Sandbox, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.start: Callable[..., Awaitable[Any]] = partial(commands.start, folder)
        self.requests = 0
        self.free = 10**6  # requests that pass before others are held
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    @property
    def billed(self) -> int:
        return self.sandbox.billed_parts

    def bom(self, lines: int) -> None:
        """Write a list of so many lines."""
        (self.folder / "BOM.csv").write_text("MPN\n" + "".join(f"SHEET{n:05}\n" for n in range(lines)))

    def change(self, **settings: Any) -> None:
        """Change settings of the application."""
        config = json.loads((self.folder / "our.yaml").read_text())
        config["applications"]["buying"] |= settings
        (self.folder / "our.yaml").write_text(json.dumps(config))

    async def run(self, *arguments: str) -> commands.CommandResult:
        return await commands.wait(await self.start(*arguments))

    async def forward(self, request: web.Request) -> web.Response:
        self.requests += 1
        number, body = self.requests, await request.read()
        headers = {name: value for name, value in request.headers.items() if name in {"Authorization", "Content-Type"}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.sandbox.graphql_url, data=body, headers=headers) as response,
        ):
            content = await response.read()
        if number > self.free:
            self.reached.set()
            await self.released.wait()
        return web.Response(body=content, status=response.status, content_type="application/json")


@pytest.fixture
async def service(
    tmp_path: Path, numbered: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> AsyncIterator[Service]:
    """A service with a part for each of the lines, and its configuration `our.yaml`."""
    settings = nexar_sandbox.SandboxSettings()
    async with nexar_sandbox.serve(settings, catalog=numbered, key=signing_key) as sandbox:
        running = Service(sandbox, tmp_path)
        async with served.serve(running.forward) as url:
            credentials = {"client_id": sandbox.client_id, "client_secret": sandbox.client_secret}
            config = {
                "upstream": {"graphql_url": f"{url}/graphql", "token_url": sandbox.token_url},
                "applications": {"buying": {**credentials, "apikeys": [SECRET], "features": "all"}},
            }
            (tmp_path / "our.yaml").write_text(json.dumps(config))
            (tmp_path / "our.yaml").chmod(0o600)
            yield running


FILL = ("sheet", "fill", "BOM.csv", "--columns", "stock", "--offers", "none", "--config", "our.yaml")


def statuses(file: Path) -> list[str]:
    with file.open(newline="") as stream:
        return [row[-1] for row in csv.reader(stream)][1:]


async def test_without_a_terminal_a_budget_or_yes_is_needed(service: Service) -> None:
    service.bom(150)
    found = await service.run(*FILL)
    assert found.code == 2
    assert "BOM.csv: 150 lines, 150 distinct queries, 0 in the cache" in found.err
    assert "to fetch: 2 upstream requests, 150 parts if each line has one part, 900 at most" in found.err
    assert "up to 900 parts may be spent: set a limit with --budget, or confirm with --yes" in found.err
    assert (service.billed, service.requests) == (0, 0)
    assert not (service.folder / "BOM.filled.csv").exists()


async def test_what_the_plan_and_the_quota_lack_is_named_before_parts_are_spent(service: Service) -> None:
    service.bom(150)
    service.change(parts=100, features=["LEAD_TIME"])
    command = [*FILL]
    command[command.index("stock")] = "stock,lead_time,datasheet"
    found = await service.run(*command)
    note = "note: datasheet: will be empty: the application has no DATASHEETS (configuration: features)\n"
    cost = "150 parts if each line has one part, 900 at most; the quota has 100 parts left"
    assert -1 < found.err.find(note) < found.err.find(cost), found
    assert (found.code, service.billed) == (2, 0)


async def test_refused_credentials_lead_to_doctor(service: Service) -> None:
    service.bom(3)
    service.change(client_secret="another secret")
    found = await service.run(*FILL, "--yes")
    assert (found.code, service.billed) == (3, 0)
    assert "nothing was fetched: v3bridge doctor --config our.yaml says what to correct" in found.err
    assert "the same command again" not in found.err


async def test_budget_ends_the_run_and_the_next_one_continues(service: Service) -> None:
    service.bom(150)
    found = await service.run(*FILL, "--budget", "120", "--json")
    assert (found.code, service.billed) == (1, 120), found
    assert "budget 120 parts" in found.err
    assert "run the same command again to continue, without paying for it twice" in found.err
    summary = json.loads(found.out)
    assert (summary["found"], summary["not_fetched"], summary["stopped"] is None) == (120, 30, False)
    assert statuses(service.folder / "BOM.filled.csv") == ["found"] * 120 + ["not fetched"] * 30
    found = await service.run(*FILL, "--budget", "120", "--json")
    assert (found.code, service.billed) == (0, 150), found
    assert statuses(service.folder / "BOM.filled.csv") == ["found"] * 150
    assert json.loads(found.out).items() >= {"parts_spent": 30, "upstream_requests": 1, "stopped": None}.items()
    assert SECRET not in found.out + found.err
    found = await service.run(*FILL, "--json")
    assert (found.code, service.billed) == (0, 150), found  # all in the cache: nothing to confirm


async def test_copy_in_which_an_earlier_run_filled_more_is_kept(service: Service) -> None:
    service.bom(3)
    command = [each for each in FILL if each not in ("--offers", "none")]
    await service.run(*command, "--yes")
    for options in (["--budget", "2", "--force-rerun-all"], ["--budget", "1", "--force-rerun-all"], ["--yes"]):
        found = await service.run(*command, *options)
    assert (found.code, statuses(service.folder / "BOM.filled.csv")) == (0, ["found"] * 3), found
    first, second = (statuses(file) for file in sorted(service.folder.glob("BOM.filled.backup-*.csv")))
    assert (first, second) == (["found"] * 3, ["found"] * 2 + ["not fetched"])
    assert len([*service.folder.glob("BOM.offers.backup-*.csv")]) == 2


async def test_budget_that_does_not_cover_the_next_query_says_which_one_would(service: Service) -> None:
    (service.folder / "BOM.csv").write_text("MPN\nLM317T\n")
    found = await service.run(*FILL, "--budget", "3")
    assert (found.code, service.billed) == (3, 1), found
    assert "stopped: the next query may cost 5 parts, and the budget has 2 left; 1 query left" in found.err
    assert "run the same command again with --budget 5 or more to continue" in found.err


async def test_ctrl_c_keeps_what_was_paid(service: Service) -> None:
    service.bom(LINES)
    service.free = 0
    process = await service.start(*FILL, "--yes", "--json")
    async with asyncio.timeout(commands.SECONDS):
        await service.reached.wait()
        process.send_signal(signal.SIGINT)
        while b"stopping: " not in await process.stderr.readline():
            pass
    service.released.set()
    found = await commands.wait(process)
    assert (found.code, service.billed) == (1, 400), found  # the fifth request is not sent
    assert "stopped: interrupted" in found.err
    assert json.loads(found.out).items() >= {"parts_spent": 400, "stopped": "interrupted"}.items()
    # What was in flight is in the file, too.
    assert statuses(service.folder / "BOM.filled.csv") == ["found"] * 400 + ["not fetched"] * 50
    found = await service.run(*FILL, "--yes", "--json")
    assert (found.code, service.billed) == (0, LINES), found  # no part twice
    assert json.loads(found.out).items() >= {"from_cache": 400, "parts_spent": 50}.items()


@pytest.mark.parametrize(
    "kind, saved", [("csv", "over it"), ("csv", "in its place"), ("csv", "elsewhere"), ("xlsx", "over it")]
)
async def test_what_is_saved_during_the_run_stays(service: Service, kind: str, saved: str) -> None:
    read, mine = (
        workbook([["MPN"], [each]]) if kind == "xlsx" else f"MPN\n{each}\n".encode() for each in ("SHEET00001", "MINE")
    )
    file = service.folder / f"BOM.{kind}"
    file.write_bytes(read)
    (service.folder / f"BOM.filled.{kind}").write_bytes(b"another file")
    service.free = 0
    process = await service.start(*FILL[:2], file.name, *FILL[3:], "--in-place", "--yes", "--json")
    async with asyncio.timeout(commands.SECONDS):
        await service.reached.wait()
    if saved == "over it":
        file.write_bytes(mine)
    elif saved == "in its place":
        (service.folder / "new").write_bytes(mine)
        (service.folder / "new").replace(file)
    else:
        file.rename(service.folder / "renamed")
    service.released.set()
    found = await commands.wait(process)
    result = f"BOM.filled-2.{kind}"
    assert f"BOM.{kind}: was changed during the run, and stays as it is; the result is in {result}" in found.err
    assert json.loads(found.out).items() >= {"found": 1, "output": result}.items()
    assert (found.code, (service.folder / result).exists()) == (0, True)
    assert file.exists() == (saved != "elsewhere")
    assert not file.exists() or file.read_bytes() == mine
    assert (service.folder / f"BOM.filled.{kind}").read_bytes() == b"another file"
    assert not list(service.folder.glob("*backup*"))


async def test_terminal_asks_before_parts_are_spent_and_shows_them(service: Service) -> None:
    service.bom(5)
    with terminals(service.start) as run:
        terminal = await run(*FILL)
        await terminal.until("Up to 30 parts may be spent. Continue?")
        terminal.type("n\n")
        assert (await commands.wait(terminal.process)).code == 2
        assert service.billed == 0
        assert not (service.folder / "BOM.filled.csv").exists()
        terminal = await run(*FILL)
        await terminal.until("Continue?")
        terminal.type("y\n")
        await terminal.until("5 parts")
        found = await commands.wait(terminal.process)
    assert found.code == 0
    assert "5 parts spent in " in found.out


async def test_api_key_that_no_application_has_is_a_mistake(service: Service) -> None:
    service.bom(1)
    (service.folder / "key").write_text("WR0NG-KEY-OF-THE-TEST\n")
    found = await service.run(*FILL, "--api-key", "file:key", "--yes")
    assert (found.code, found.out) == (2, "")
    assert "the API key belongs to no application" in found.err
    assert "WR0NG" not in found.err
    (service.folder / "key").write_text(SECRET)
    (service.folder / "key").chmod(0o600)
    found = await service.run(*FILL, "--api-key", "file:key", "--yes")
    assert (found.code, service.billed) == (0, 1), found
