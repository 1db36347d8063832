"""`v3bridge init`: what it asks, what it writes, and that the service runs with it."""

import asyncio
import json
import os
import stat
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import cases, commands
from support.running_commands import Run, Start
from together.terminal import Terminal

import nexar_sandbox
from proxy.config import loader


@pytest.fixture(scope="module")
def upstream() -> Iterator[nexar_sandbox.Sandbox]:
    with nexar_sandbox.running() as sandbox:
        yield sandbox


@pytest.fixture
def addresses(upstream: nexar_sandbox.Sandbox) -> tuple[str, ...]:
    """The options that name the sandbox."""
    return ("--graphql-url", upstream.graphql_url, "--token-url", upstream.token_url)


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


async def test_answers_at_a_terminal_make_a_service(
    upstream: nexar_sandbox.Sandbox, addresses: tuple[str, ...], start_command: Start, run_command: Run, tmp_path: Path
) -> None:
    account = upstream.default_application
    primary, secondary = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "init", *addresses),
        cwd=tmp_path,
        env=commands.environment(tmp_path, TERM="xterm"),
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,  # else a password would be read from the terminal of the tests
    )
    os.close(secondary)
    terminal = Terminal(process, primary)
    for question, answer in (
        ("Client id", account.client_id),
        ("Client secret", account.client_secret),
        ("Plan", "premium"),
        ("'premium' is none of", "pro"),
        ("API key", "the-key-of-our-programs"),
    ):
        await terminal.answer(question, answer)
    await terminal.answer("It costs 1 part", "y")
    await terminal.until("The part is booked; the plan has CAD_MODELS, DATASHEETS")
    await terminal.until("v3bridge serve --config our.yaml")
    await terminal.until("the-key-of-our-programs&pretty_print=true")
    assert await process.wait() == 0
    os.close(primary)
    assert account.client_secret not in terminal.shown

    file, secret = tmp_path / "our.yaml", tmp_path / "our.secret"
    assert (mode(file), mode(secret), len(file.read_text().splitlines()) <= 11) == (0o600, 0o600, True)
    assert account.client_secret not in file.read_text()
    application = loader.load(file, {}).applications["our"]
    assert (application.plan, application.parts) == ("pro", 15_000)
    assert "TECH_SPECS" in application.features
    assert upstream.journal.totals.parts == 1
    used = await asyncio.to_thread(run_command, "usage", "--config", str(file), "--json")
    assert [row["used"] for row in json.loads(used.stdout)] == [1, 1]

    options = ("--config", str(file), "--port", "0", "--admin-port", "0")
    service = start_command("serve", *options)
    (line,) = (line for line in await asyncio.to_thread(service.until, "curl") if "listening at" in line)
    url = line.partition("listening at ")[2].partition(". Try")[0]
    query = quote('[{"mpn":"SN74S74N","limit":1}]')
    target = f"{url}/parts/match?apikey=the-key-of-our-programs&queries={query}"
    response = await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(target)))
    assert response["results"][0]["items"][0]["mpn"] == "SN74S74N"
    assert upstream.journal.totals.parts == 1  # it was paid for by init


@pytest.fixture
def init(run_command: Run, addresses: tuple[str, ...], tmp_path: Path) -> Callable[..., Any]:
    """Runs `v3bridge init --yes` on the sandbox, with a file in the test's folder."""

    def run(*options: str) -> Any:
        return run_command("init", "--yes", "--output", str(tmp_path / "own.yaml"), *addresses, *options)

    return run


def test_refused_credentials_are_reported_and_the_file_is_kept(init: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("wrong")
    done = init("--client-id", "nobody", "--client-secret", "file:secret", "--apikey", "k", "--plan", "standard")
    assert done.returncode == 1
    assert "token         failed" in done.stdout
    assert loader.load(tmp_path / "own.yaml", {}).applications["our"].plan == "standard"


@cases.parametrize("options, message")
def test_missing_and_wrong_options_leave_no_file(
    init: Callable[..., Any], tmp_path: Path, options: list[str], message: str | None
) -> None:
    done = init(*options)
    if message is None:  # an empty key is none: one is made
        assert (done.returncode, (tmp_path / "own.yaml").exists()) == (1, True)
        return
    assert (done.returncode, message in done.stderr.replace("'", "")) == (2, True), done.stderr
    assert "PLAIN" not in done.stderr
    assert list(tmp_path.iterdir()) == []
