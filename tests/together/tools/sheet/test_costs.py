"""Tests of what `v3bridge sheet fill` spends: on a sandbox in the test, which counts parts and holds requests."""

import asyncio
import csv
import json
import signal
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support import commands, comparison_server
from support.workbooks import workbook
from together.terminal import terminals

import nexar_sandbox

LINES = 450  # five upstream requests, of which four are sent at once
SECRET = "S3CRET-OF-THE-TEST"


class _Service:
    """A sandbox behind a server that can hold requests."""

    def __init__(self, sandbox: nexar_sandbox.Sandbox) -> None:
        self.sandbox = sandbox
        self.requests = 0
        self.free = 10**6  # requests that pass before others are held
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    @property
    def billed(self) -> int:
        return self.sandbox.billed_parts

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
) -> AsyncIterator[_Service]:
    """A service with a part for each of the lines, and its configuration `our.yaml`."""
    settings = nexar_sandbox.SandboxSettings()
    async with nexar_sandbox.serve(settings, catalog=numbered, key=signing_key) as sandbox:
        running = _Service(sandbox)
        async with comparison_server.serve(running.forward) as url:
            credentials = {"client_id": sandbox.client_id, "client_secret": sandbox.client_secret}
            config = {
                "upstream": {"graphql_url": f"{url}/graphql", "token_url": sandbox.token_url},
                "applications": {"buying": {**credentials, "apikeys": [SECRET], "features": "all"}},
            }
            (tmp_path / "our.yaml").write_text(json.dumps(config))
            (tmp_path / "our.yaml").chmod(0o600)
            yield running


@pytest.fixture
def bom(tmp_path: Path) -> Callable[[int], Path]:
    def write(lines: int = LINES) -> Path:
        file = tmp_path / "BOM.csv"
        file.write_text("MPN\n" + "".join(f"SHEET{n:05}\n" for n in range(lines)))
        return file

    return write


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Any]:
    return partial(commands.start, tmp_path)


FILL = ("sheet", "fill", "BOM.csv", "--columns", "stock", "--offers", "none", "--config", "our.yaml")


def statuses(file: Path) -> list[str]:
    with file.open(newline="") as stream:
        return [row[-1] for row in csv.reader(stream)][1:]


def change(folder: Path, **settings: Any) -> None:
    config = json.loads((folder / "our.yaml").read_text())
    config["applications"]["buying"] |= settings
    (folder / "our.yaml").write_text(json.dumps(config))


async def test_without_a_terminal_a_budget_or_yes_is_needed(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(150)
    found = await commands.wait(await start(*FILL))
    assert found.code == 2
    assert "BOM.csv: 150 lines, 150 distinct queries, 0 in the cache" in found.err
    assert "to fetch: 2 upstream requests, 150 parts if each line has one part, 900 at most" in found.err
    assert "up to 900 parts may be spent: set a limit with --budget, or confirm with --yes" in found.err
    assert (service.billed, service.requests) == (0, 0)
    assert not (tmp_path / "BOM.filled.csv").exists()


async def test_what_the_plan_and_the_quota_lack_is_named_before_parts_are_spent(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(150)
    change(tmp_path, parts=100, features=["LEAD_TIME"])
    command = [*FILL]
    command[command.index("stock")] = "stock,lead_time,datasheet"
    found = await commands.wait(await start(*command))
    note = "note: datasheet: will be empty: the application has no DATASHEETS (configuration: features)\n"
    cost = "150 parts if each line has one part, 900 at most; the quota has 100 parts left"
    assert -1 < found.err.find(note) < found.err.find(cost), found
    assert (found.code, service.billed) == (2, 0)


async def test_refused_credentials_lead_to_doctor(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(3)
    change(tmp_path, client_secret="another secret")
    found = await commands.wait(await start(*FILL, "--yes"))
    assert (found.code, service.billed) == (3, 0)
    assert "nothing was fetched: v3bridge doctor --config our.yaml says what to correct" in found.err
    assert "the same command again" not in found.err


async def test_budget_ends_the_run_and_the_next_one_continues(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(150)
    found = await commands.wait(await start(*FILL, "--budget", "120", "--json"))
    assert (found.code, service.billed) == (1, 120), found
    assert "budget 120 parts" in found.err
    assert "run the same command again to continue, without paying for it twice" in found.err
    summary = json.loads(found.out)
    assert (summary["found"], summary["not_fetched"], summary["stopped"] is None) == (120, 30, False)
    assert statuses(tmp_path / "BOM.filled.csv") == ["found"] * 120 + ["not fetched"] * 30
    found = await commands.wait(await start(*FILL, "--budget", "120", "--json"))
    assert (found.code, service.billed) == (0, 150), found
    assert statuses(tmp_path / "BOM.filled.csv") == ["found"] * 150
    assert json.loads(found.out).items() >= {"parts_spent": 30, "upstream_requests": 1, "stopped": None}.items()
    assert SECRET not in found.out + found.err
    found = await commands.wait(await start(*FILL, "--json"))
    assert (found.code, service.billed) == (0, 150), found  # all in the cache: nothing to confirm


async def test_ctrl_c_keeps_what_was_paid(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(LINES)
    service.free = 0
    process = await start(*FILL, "--yes", "--json")
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
    assert statuses(tmp_path / "BOM.filled.csv") == ["found"] * 400 + ["not fetched"] * 50
    found = await commands.wait(await start(*FILL, "--yes", "--json"))
    assert (found.code, service.billed) == (0, LINES), found  # no part twice
    assert json.loads(found.out).items() >= {"from_cache": 400, "parts_spent": 50}.items()


@pytest.mark.parametrize(
    "kind, saved", [("csv", "over it"), ("csv", "in its place"), ("csv", "elsewhere"), ("xlsx", "over it")]
)
async def test_what_is_saved_during_the_run_stays(
    start: Callable[..., Any], service: _Service, tmp_path: Path, kind: str, saved: str
) -> None:
    read, mine = (
        workbook([["MPN"], [each]]) if kind == "xlsx" else f"MPN\n{each}\n".encode() for each in ("SHEET00001", "MINE")
    )
    file = tmp_path / f"BOM.{kind}"
    file.write_bytes(read)
    (tmp_path / f"BOM.filled.{kind}").write_bytes(b"another file")
    service.free = 0
    process = await start(*FILL[:2], file.name, *FILL[3:], "--in-place", "--yes", "--json")
    async with asyncio.timeout(commands.SECONDS):
        await service.reached.wait()
    if saved == "over it":
        file.write_bytes(mine)
    elif saved == "in its place":
        (tmp_path / "new").write_bytes(mine)
        (tmp_path / "new").replace(file)
    else:
        file.rename(tmp_path / "renamed")
    service.released.set()
    found = await commands.wait(process)
    result = f"BOM.filled-2.{kind}"
    assert f"BOM.{kind}: was changed during the run, and stays as it is; the result is in {result}" in found.err
    assert json.loads(found.out).items() >= {"found": 1, "output": result}.items()
    assert (found.code, (tmp_path / result).exists()) == (0, True)
    assert file.exists() == (saved != "elsewhere")
    assert not file.exists() or file.read_bytes() == mine
    assert (tmp_path / f"BOM.filled.{kind}").read_bytes() == b"another file"
    assert not list(tmp_path.glob("*backup*"))


async def test_terminal_asks_before_parts_are_spent_and_shows_them(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(5)
    with terminals(start) as run:
        terminal = await run(*FILL)
        await terminal.until("Up to 30 parts may be spent. Continue?")
        terminal.type("n\n")
        assert (await commands.wait(terminal.process)).code == 2
        assert service.billed == 0
        assert not (tmp_path / "BOM.filled.csv").exists()
        terminal = await run(*FILL)
        await terminal.until("Continue?")
        terminal.type("y\n")
        await terminal.until("5 parts")
        found = await commands.wait(terminal.process)
    assert found.code == 0
    assert "5 parts spent in " in found.out


async def test_api_key_that_no_application_has_is_a_mistake(
    start: Callable[..., Any], service: _Service, bom: Callable[[int], Path], tmp_path: Path
) -> None:
    bom(1)
    (tmp_path / "key").write_text("WR0NG-KEY-OF-THE-TEST\n")
    found = await commands.wait(await start(*FILL, "--api-key", "file:key", "--yes"))
    assert (found.code, found.out) == (2, "")
    assert "the API key belongs to no application" in found.err
    assert "WR0NG" not in found.err
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o600)
    found = await commands.wait(await start(*FILL, "--api-key", "file:key", "--yes"))
    assert (found.code, service.billed) == (0, 1), found
