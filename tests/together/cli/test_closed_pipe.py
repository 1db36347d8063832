"""Tests of output that nobody reads, as with `| head`: every command does its work, and ends as it does otherwise."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from acceptance import running
from support import commands

SANDBOX = "upstream: sandbox\napplications: {demo: {apikeys: [EXAMPLE_KEY]}}\nadmin: false\n"
ACCOUNT = "--client-id a --client-secret env:SECRET --graphql-url http://127.0.0.1:9/g --token-url http://127.0.0.1:9/t"
FILES = {
    "own.yaml": SANDBOX,
    "stored.yaml": SANDBOX.replace(
        "sandbox", "{graphql_url: 'http://127.0.0.1:9/g', token_url: 'http://127.0.0.1:9/t'}"
    ).replace("{apikeys", "{client_id: c, client_secret: s, apikeys")
    + "store: sqlite:state.sqlite\n",
    "urls.txt": "/v3/brands/search?q=Texas\n/v3/parts/search?q=LM324&limit=1\n/v3/parts/search?q=NE555&limit=1\n",
    "list.csv": "MPN,Qty\nSN74S74N,1\n",
}
COMMANDS = {
    "--version": (0, ()),
    "--help": (0, ()),
    "config --all --config own.yaml": (0, ()),
    "doctor --config own.yaml": (0, ()),
    "explain urls.txt --config own.yaml": (0, ()),
    "explain /v3/nothing --config own.yaml": (1, ()),
    "explain --source Part": (0, ()),
    "usage --config stored.yaml": (0, ()),
    "usage --config stored.yaml --set demo=7": (0, ("state.sqlite",)),
    "usage --config stored.yaml --forget-results --yes": (0, ()),
    "status --admin-port 9": (2, ()),
    f"init --yes {ACCOUNT}": (1, ("our.yaml",)),
    "compare --baseline sandbox --requests urls.txt --yes --html r.html --json r.json": (0, ("r.html", "r.json")),
    "compare --baseline sandbox --requests urls.txt --yes --html r.html --json -": (0, ("r.html",)),
    "conform --against sandbox --only match-spelling": (0, ()),
    "sheet columns": (0, ()),
    "sheet fill list.csv --columns price,stock": (1, ("list.filled.csv",)),
    "sheet fill list.csv": (2, ()),
}


@contextmanager
def closed_pipe() -> Iterator[int]:
    """The end of a pipe into which is written, of which the other is closed."""
    read, written = os.pipe()
    os.close(read)
    try:
        yield written
    finally:
        os.close(written)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(text)
    return tmp_path


async def _start(folder: Path, output: int, *words: str) -> asyncio.subprocess.Process:
    environment = commands.environment(folder, SECRET="a-secret")
    program = ("-m", "proxy", *words)
    return await asyncio.create_subprocess_exec(
        sys.executable, *program, cwd=folder, env=environment, stdin=-3, stdout=output, stderr=output
    )


@pytest.mark.parametrize("command", COMMANDS)
async def test_command_does_its_work_and_ends_as_it_does_with_a_reader(folder: Path, command: str) -> None:
    expected, files = COMMANDS[command]
    with closed_pipe() as output:
        process = await _start(folder, output, *command.split())
        assert await asyncio.wait_for(process.wait(), commands.SECONDS) == expected
    assert [name for name in files if not (folder / name).stat().st_size] == []


@pytest.mark.parametrize("command", ["serve --config own.yaml", "sandbox"])
async def test_services_serve_without_a_reader(folder: Path, command: str) -> None:
    port = running.free_port()
    with closed_pipe() as output:
        process = await _start(folder, output, *command.split(), "--port", str(port))
        async with asyncio.timeout(commands.SECONDS), aiohttp.ClientSession() as session:
            while process.returncode is None:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{port}/healthz"):
                        break
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), commands.SECONDS) == 0
