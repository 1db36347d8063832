"""Tests of `v3bridge shadow`: the switch and the results, in the store that the configuration names."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.running_commands import Run

from proxy.kit import clock
from proxy.shadow.results import ResultSlot
from proxy.stores.sqlite import SqliteStore
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.tally import Tally
from proxy.traffic.v3_request import V3Request

CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
shadow: {baseline_url: "http://127.0.0.1:1/v3"}
applications:
  shop: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y"], shadow: {share: 0.5}}
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Any:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG)
    return str(file)


def gather(tmp_path: Path) -> None:
    """A worker's note of two requests."""

    async def inside() -> None:
        store = await SqliteStore.open(tmp_path / "state.sqlite", clock.SystemClock())
        place = ResultSlot(store, "a worker")
        await place.refresh()
        await place.resume()
        tally = Tally()
        tally.add(Comparison(V3Request("/parts/match", client="shop/1"), 1.0))
        tally.add(Comparison(V3Request("/parts/match", client="shop/1"), 2.0, failure="old: cannot be reached"))
        await place.put(msgspec.json.encode(tally).decode())
        await store.aclose()

    asyncio.run(inside())


def test_shadowing_is_switched_off_and_on(run_command: Run, config_file: Any) -> None:
    def message(*wish: Any) -> Any:
        done = run_command("shadow", *wish, "--config", config_file)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    assert message() == ["Shadowing is on.", "No request has been compared yet."]
    assert message("off")[0] == message("status")[0] == "Shadowing is off."
    assert message("on")[0] == message()[0] == "Shadowing is on."


def test_results_are_shown_and_reset(run_command: Run, config_file: Any, tmp_path: Path) -> None:
    gather(tmp_path)
    lines = run_command("shadow", "--config", config_file).stdout.splitlines()
    assert lines[1] == "shop/1 /parts/match: 1 of 1 request without a difference, 1 could not be compared"
    report, command = lines[2].split(": ")
    assert (report, command) == ("Report", f"v3bridge compare --shadow --config {config_file}")
    assert "equivalent on 100" in run_command(*shlex.split(command)[1:]).stdout
    assert "No request has been compared yet." in run_command("shadow", "reset", "--config", config_file).stdout


def test_results_become_the_report_of_a_run(run_command: Run, config_file: Any, tmp_path: Path) -> None:
    none = run_command("compare", "--shadow", "--config", config_file)
    assert (none.returncode, none.stdout) == (2, "")
    assert none.stderr == "v3bridge: there are no results yet: no request has been compared with this store\n"
    gather(tmp_path)
    done = run_command("compare", "--shadow", "--config", config_file, "--json", str(tmp_path / "report.json"))
    assert (done.returncode, done.stderr) == (2, "")  # one of its requests was trouble
    report = json.loads((tmp_path / "report.json").read_text())
    assert [side["place"] for side in report["sides"]] == ["http://127.0.0.1:1/v3", "http://127.0.0.1:8080/v3"]
    assert [(row["client"], row["requests"], row["not_compared"]) for row in report["rows"]] == [("shop/1", 1, 1)]
    assert (report["started"], report["ended"], report["source"]) == (1.0, 2.0, "live requests")
    assert "live requests" in done.stdout


@pytest.mark.parametrize(
    "more", [("--baseline", "http://x"), ("--requests", "log"), ("--replay", "x"), ("--sample", "3")]
)
def test_report_sends_no_request_and_refuses_options_of_sides(run_command: Run, config_file: Any, more: Any) -> None:
    done = run_command("compare", "--shadow", "--config", config_file, *more)
    assert done.returncode == 2
    assert more[0] in done.stderr


def test_configuration_without_shadowing_is_reported(run_command: Run, config_file: Any, tmp_path: Path) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text(CONFIG.replace("share: 0.5", "share: 0"))
    assert run_command("shadow", "--config", str(file)).stdout.startswith(
        "Shadowing is on; this configuration samples no"
    )


def test_memory_store_cannot_be_read(
    run_command: Run,
) -> None:
    done = run_command("shadow", "off")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("v3bridge: store: is known to the running service alone")
