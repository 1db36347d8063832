"""docs/how-to/end-a-migration.md: its commands print what it shows, and its configuration does what it says."""

import asyncio
import datetime
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import running_commands, running_proxy

from proxy.config import loader
from proxy.kit import clock
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen

NOW = datetime.datetime(2027, 1, 15, 12, tzinfo=datetime.UTC).timestamp()
TODAY = int(NOW // DAY_SECONDS)
SERVICE = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
"""
CREDENTIALS = {"client_id": "an-id", "client_secret": "a-secret"}
# application, API key, user agent; day before today; requests, errors, parts
COUNTS = (
    ("shop", "erp", "python-requests/2.31.0", 0, 20_000, 512, 7_000),
    ("shop", "erp", "python-requests/2.28.1", 9, 1_523, 0, 151),
    ("shop", "bom-tool", "OctoCruncher/4.2 (Windows NT 10.0)", 3, 40, 0, 40),
    ("shop", "plm", "Java/1.8.0_292", 26, 3, 0, 3),
    ("", "", "curl/7.88.1", 0, 9, 9, 0),
    ("", "", "curl/7.88.1", 60, 1, 1, 0),
)


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/how-to/end-a-migration.md"]


@pytest.fixture
def shop(page: Any, tmp_path: Path) -> Path:
    """The documented configuration, on a store with the counts that the page shows."""
    (block,) = page.blocks("yaml", "sunset")
    settings = yaml.safe_load(SERVICE + block.text)
    settings["applications"]["shop"] |= CREDENTIALS
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(settings, default_flow_style=False))

    async def work() -> None:
        store = await SqliteStore.open(tmp_path / "state.sqlite", clock.ManualClock(NOW))
        for number, (application, key, user_agent, back, *numbers) in enumerate(COUNTS):
            caller, day = Caller(application, key, "parts/match", user_agent), TODAY - back
            at = day * DAY_SECONDS
            await store.add_callers(str(number), [CallerSeen(caller, at, at)], [CallerCount(day, caller, *numbers)])
        await store.aclose()

    asyncio.run(work())
    return file


@pytest.fixture
def command(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command of the page at the time of its example, and returns what it prints."""
    monkeypatch.setattr(clock.SystemClock, "now", lambda _: NOW)

    def run(*arguments: str) -> str:
        done = running_commands.run_in_this_process(*arguments, "--config", str(shop))
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_clients_are_printed_as_documented(page: Any, command: Callable[..., str]) -> None:
    (block,) = page.blocks("console", "clients")
    typed, _, shown = block.text.partition("\n")
    printed = command(*shlex.split(typed)[2:])
    assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()


def test_documented_options_work(page: Any, command: Callable[..., str]) -> None:
    options = [shlex.split(option) for row in page.table("option") for option in re.findall("`(.+?)`", row[0])]
    assert options
    for option in options:
        assert command("usage", "--clients", *option)


def test_commands_of_the_last_steps_work(page: Any, command: Callable[..., str]) -> None:
    commands = re.findall(r"`v3bridge (usage --clients [^`>]+?)(?: > [\w.]+)?`", page.text)
    assert commands
    for each in commands:
        assert command(*each.split())


async def test_documented_sunset_is_announced_and_ends_the_service(page: Any, tmp_path: Path) -> None:
    (block,), (announced,), (refusal,) = (page.blocks(each, "sunset") for each in ("yaml", "http", "json"))
    file = tmp_path / "config.yaml"
    file.write_text(block.text)
    shop = loader.load(file, {}).applications["shop"]
    sunsets = {name: shop.sunset_of(key) for name, key in shop.clients.items()}
    days = {name: str(sunset.date) if sunset else None for name, sunset in sunsets.items()}
    assert days == {"bom-tool": "2027-06-30", "erp": "2027-12-31", "archive": None}
    settings = running_proxy.settings(
        "http://127.0.0.1:9/graphql",
        "http://127.0.0.1:9/token",
        application={"apikeys": shop.apikeys, "sunset": shop.sunset},
    )
    last_day = datetime.datetime(2027, 7, 1, tzinfo=datetime.UTC).timestamp()
    headers = dict(line.split(": ", 1) for line in announced.text.splitlines())
    async with running_proxy.running(settings, clock.ManualClock(last_day)) as client:
        refused = await client.get("/v3/parts/match?apikey=first-key")
        served = await client.get("/v3/parts/match?apikey=second-key")
    assert {name: refused.headers[name] for name in headers} == headers
    assert (refused.status, await refused.text()) == (410, refusal.text.rstrip())
    assert served.status == 400  # it has no queries


async def test_documented_strict_request_has_the_documented_response(page: Any) -> None:
    (block,) = page.blocks("console", "strict")
    command, _, shown = block.text.partition("\n")
    header, url = shlex.split(command)[4:]
    settings = running_proxy.settings("http://127.0.0.1:9/graphql", "http://127.0.0.1:9/token")
    async with running_proxy.running(settings) as client:
        target = url.removeprefix("http://127.0.0.1:8080")
        response = await client.get(target, headers=dict([header.split(": ")]))
    assert (response.status, await response.text()) == (400, shown.rstrip())
