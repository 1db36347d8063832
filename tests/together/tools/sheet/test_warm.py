"""Tests of `v3bridge warm`: the service finds what it has fetched, and it costs what was said."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from support import running_proxy
from support.running_commands import Run, run_command

import nexar_sandbox
from proxy.config import loader
from proxy.tools.sheet.command import warm

__all__ = ["run_command"]

NUMBERS = ("SN74S74N", "1N4007", "NE555P")
CONFIG = """
upstream: {{graphql_url: "{graphql}", token_url: "{token}"}}
store: sqlite:state.sqlite
applications:
  shop: {{client_id: "{id}", client_secret: "{secret}", plan: pro, apikeys: ["k3y-of-shop"]}}
"""

Started = Callable[..., Any]


@pytest.fixture
async def upstream() -> Any:
    """A sandbox by the clock of the machine, which the command has, too."""
    async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings()) as running:
        yield running


@pytest.fixture
def bom(tmp_path: Path) -> str:
    file = tmp_path / "bom.csv"
    file.write_text("Part Number,Qty\n" + "".join(f"{number},1\n" for number in NUMBERS))
    return str(file)


@pytest.fixture
def config_file(upstream: nexar_sandbox.Sandbox, tmp_path: Path) -> str:
    account, file = upstream.default_application, tmp_path / "own.yaml"
    urls = {"graphql": upstream.graphql_url, "token": upstream.token_url}
    file.write_text(CONFIG.format(**urls, id=account.client_id, secret=account.client_secret))
    return str(file)


@pytest.fixture
def run(run_command: Run, bom: str, config_file: str) -> Started:
    """Run the command beside the sandbox; its output as JSON follows."""

    async def run(*words: str) -> Any:
        done = await asyncio.to_thread(run_command, "warm", bom, "--config", config_file, "--json", *words)
        return done.returncode, done.stderr, json.loads(done.stdout) if done.stdout else None

    return run


def billed(upstream: nexar_sandbox.Sandbox) -> int:
    return upstream.billed_parts


@pytest.mark.parametrize("more", ["", "&include[]=specs&include[]=datasheets", "&show[]=mpn"])
async def test_v3_requests_cost_nothing_after_it(
    run: Started, config_file: str, upstream: nexar_sandbox.Sandbox, more: str
) -> None:
    code, said, summary = await run("--budget", "100")
    assert code == 0
    assert "3 lines: 0 in the cache, up to 9 parts for the others" in said
    spent = billed(upstream)
    assert 0 < spent == summary["parts_spent"] <= 9
    settings = loader.load(Path(config_file), {})
    async with running_proxy.running(settings) as proxy:
        queries = json.dumps([{"mpn": number, "reference": number} for number in NUMBERS])
        found = await proxy.match(queries, more, key="k3y-of-shop")
        alone = await proxy.match('[{"mpn": "NE555P"}]', more, key="k3y-of-shop")
    assert all(result["items"] for result in (*found["results"], *alone["results"]))
    assert billed(upstream) == spent
    code, said, summary = await run("--budget", "100")
    assert (code, summary["parts_spent"], summary["cached"], summary["left"]) == (0, 0, 3, 0)
    assert summary["fresh_until"] is not None


async def test_budget_is_kept_and_the_next_run_goes_on(run: Started, upstream: nexar_sandbox.Sandbox) -> None:
    code, said, summary = await run("--budget", "4")
    assert (code, summary["left"]) == (1, 2)
    assert summary["stopped"] == "the next line may cost more than the 1 part left of the budget"
    assert billed(upstream) == summary["parts_spent"] <= 4
    code, said, summary = await run("--yes")
    assert "3 lines: 1 in the cache, up to 6 parts for the others" in said
    assert (code, summary["left"]) == (0, 0)


async def test_what_a_line_costs_less_than_its_worst_case_pays_for_others(
    run: Started, bom: str, upstream: nexar_sandbox.Sandbox
) -> None:
    Path(bom).write_text("Part Number\nNO-SUCH-1\nNO-SUCH-2\nNO-SUCH-3\n")
    code, _, summary = await run("--budget", "3")  # one line's worst case
    assert (code, summary["left"], summary["stopped"]) == (0, 0, None)
    assert billed(upstream) == summary["parts_spent"] == 0


async def test_line_that_no_request_can_name_is_left_out(
    run: Started, bom: str, upstream: nexar_sandbox.Sandbox
) -> None:
    file = Path(bom)
    file.write_text(file.read_text().replace("1N4007", "1*") + ",5\n")
    code, said, summary = await run("--yes")
    assert "note: left out: bom.csv:3 mpn needs at least" in said
    assert "note: 1 line left out: bom.csv:5 has no part number" in said
    assert (code, summary["lines"], summary["left"]) == (0, 2, 0)
    assert billed(upstream) == summary["parts_spent"] > 0


async def test_cost_must_be_bounded_or_confirmed(run: Started, upstream: nexar_sandbox.Sandbox) -> None:
    code, said, summary = await run()
    assert (code, summary) == (2, None)
    assert "up to 9 parts may be spent: set a limit with --budget" in said
    assert billed(upstream) == 0


async def test_failure_ends_the_run_with_its_reason(run: Started, upstream: nexar_sandbox.Sandbox) -> None:
    upstream.faults.replace(nexar_sandbox.parse_faults("quota at=0"))
    code, _, summary = await run("--yes")
    assert (code, summary["left"], summary["parts_spent"]) == (1, 3, 0)
    assert summary["stopped"]


async def test_time_of_this_minute_is_now(run: Started) -> None:
    code, said, _ = await run("--yes", "--at", time.strftime("%H:%M"))
    assert code == 0
    assert "waiting until" in said


@pytest.mark.parametrize(
    "text, expected", [("03:00", "2026-11-29 03:00"), ("23:59", "2026-11-28 23:59"), ("9:15", "2026-11-28 09:15")]
)
def test_time_is_the_next_one(text: str, expected: str) -> None:
    now = time.mktime((2026, 11, 28, 9, 15, 40, 0, 0, -1))
    assert time.strftime("%Y-%m-%d %H:%M", time.localtime(warm.next_time(text, now))) == expected


@pytest.mark.parametrize("text", ["24:00", "3", "03:60", "3am"])
def test_wrong_time_is_named(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"'{text}' is not a time of the day, such as 03:00"):
        warm.next_time(text, 0.0)


@pytest.mark.parametrize(
    "change, reason",
    [
        (("store: sqlite:state.sqlite", 'store: "memory:"'), "no service finds what is fetched"),
        (("store: sqlite:state.sqlite", "store: sqlite:state.sqlite\ncache: {shared: false}"), "nothing is kept"),
    ],
)
async def test_service_that_shares_no_cache_is_refused(
    run: Started, config_file: str, change: tuple[str, str], reason: str
) -> None:
    file = Path(config_file)
    file.write_text(file.read_text().replace(*change))
    code, said, summary = await run("--yes")
    assert (code, summary) == (2, None)
    assert reason in said
