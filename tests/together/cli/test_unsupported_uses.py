"""Unsupported uses, over sockets: added up for each API key, and shown by a command and on a page."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from together.environment import StartEnvironment, target

from proxy import config
from proxy.kit import clock
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import UnsupportedUse

KEYS = (
    config.ApiKeySettings(config.digest("EXAMPLE_KEY"), name="erp"),
    config.ApiKeySettings(config.digest("quiet"), name="quiet"),
)
SHOWN = "show[]=offers.on_order_eta"
NO_SOURCE = f"{SHOWN} (the service has no date of arrival)"
START = int(clock.ManualClock().now())
CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  demo: {client_id: a, client_secret: "b", apikeys: [{key: "EXAMPLE_KEY", name: erp}, {key: "another", name: unused}]}
"""


@pytest.fixture
async def uses(start: StartEnvironment, tmp_path: Path, time: clock.ManualClock) -> list[UnsupportedUse]:
    """What the store has after some requests."""
    file = tmp_path / "state.sqlite"
    with_field = f"{target({'mpn': 'SN74S74N'})}&{SHOWN}".replace("[", "%5B").replace("]", "%5D")
    sort = "/v3/parts/search?apikey=EXAMPLE_KEY&q=x&sortby=price+asc"
    key = "/v3/parts/match?apikey=EXAMPLE_KEY&queries=%5B%7B%22mpn%22%3A%22LM358N%22%2C%22color%22%3A1%7D%5D"
    async with start(store=f"sqlite:{file}", application={"apikeys": KEYS}, cache={"seconds": 300}) as environment:
        for path, status in ((with_field, 200), (with_field, 200), (sort, 400), (key, 200)):
            assert (await environment.raw(f"GET {path} HTTP/1.1".encode())).status == status
        together = [environment.raw(f"GET {with_field}&limit=1 HTTP/1.1".encode()) for _ in range(2)]
        assert {reply.status for reply in await asyncio.gather(*together)} == {200}
        quiet = target({"mpn": "SN74S74N"}, key="quiet")
        assert (await environment.raw(f"GET {quiet} HTTP/1.1".encode())).status == 200
    store = await SqliteStore.open(file, time)
    try:
        return await store.unsupported_uses()
    finally:
        await store.aclose()


async def test_unsupported_uses_are_added_up(uses: list[UnsupportedUse]) -> None:
    # Misses, hits and a request that waited for an equal one; refused ones, too.
    assert {(each.key, each.name): each.requests for each in uses} == {
        ("erp", NO_SOURCE): 4,
        ("erp", "sort by 'price' (refused)"): 1,
        ("erp", "queries[0].color"): 1,
    }
    assert {(each.first, each.last) for each in uses} == {(START, START)}


async def test_command_lists_unsupported_uses_of_each_client(uses: Any, run_command: Any, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG)

    async def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return await asyncio.to_thread(lambda: run_command("explain", *arguments))

    live = ("--live", "--config", str(file))
    done = await run(*live)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines() if NO_SOURCE.split(maxsplit=1)[0] in line] == [
        "demo/erp"
    ]
    client, quiet, unused = json.loads((await run(*live, "--json")).stdout)
    # By the clock of the machine: the requests were sent a long time ago.
    assert [(each["client"], each["verdict"]) for each in (client, quiet, unused)] == [
        ("demo/erp", "not seen"),
        ("demo/quiet", "not seen"),
        ("demo/unused", "not seen"),
    ]
    assert (client["last_seen"][:10], unused["last_seen"]) == ("2023-11-14", None)
    assert "not seen since 2023-11-14" in done.stdout
    assert (await run(*live, "--csv")).stdout.splitlines()[1].startswith("demo,erp,not seen,2023-11-14T")
    assert "needs --live" in (await run("/v3/parts/match", "--csv")).stderr
    assert {name: client["unsupported"][0][name] for name in ("name", "requests")} == {"name": NO_SOURCE, "requests": 4}
    both = await run(*live, "/v3/parts/match")
    assert (both.returncode, "--live takes no INPUT" in " ".join(both.stderr.split())) == (2, True)
    neither = await run()
    assert neither.returncode == 2
    assert "is missing: a request, a file of requests, or --live" in " ".join(neither.stderr.split())
