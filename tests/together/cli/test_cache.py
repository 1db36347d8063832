"""Tests of `v3bridge cache`: what the shared cache holds, as table and JSON, and deletion."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import Run

from proxy.kit import clock
from proxy.stores.cache_file import CacheFile
from proxy.stores.protocols import CacheRecord

CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  shop: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-shop"]}
  trial: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-trial"]}
"""


@pytest.fixture
def filled(tmp_path: Path) -> None:
    """Two entries of the shop, a minute and an hour old, and one of the trial application."""
    now = clock.SystemClock().now()
    entries = [("shop", 60, 120), ("shop", 3600, 30), ("trial", 5, 7)]

    async def fill() -> None:
        cache = CacheFile(tmp_path / "state.sqlite.cache", 2**20, clock.SystemClock())
        await cache.put(
            [
                CacheRecord(bytes([number]) * 16, name, now - age, now + 600, bytes(size))
                for number, (name, age, size) in enumerate(entries)
            ]
        )
        await cache.aclose()

    asyncio.run(fill())


def stats(run_command: Run, file: str) -> dict[str, Any]:
    done = run_command("cache", "stats", "--config", file, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return {row["application"]: row for row in json.loads(done.stdout)}


@pytest.mark.usefixtures("filled")
def test_json_has_entries_bytes_and_ages_by_application(run_command: Run, config_file: str) -> None:
    rows = stats(run_command, config_file)
    assert {name: (row["entries"], row["bytes"]) for name, row in rows.items()} == {"shop": (2, 150), "trial": (1, 7)}
    assert 60 <= rows["shop"]["newest_age"] < 3600 <= rows["shop"]["oldest_age"] < 7200


@pytest.mark.usefixtures("filled")
def test_table_has_a_row_per_application_and_the_sum(run_command: Run, config_file: str) -> None:
    done = run_command("cache", "stats", "--config", config_file)
    assert done.returncode == 0
    rows = [[cell.strip() for cell in line.split("│")[1:4]] for line in done.stdout.splitlines() if "│" in line]
    assert rows == [["shop", "2", "150"], ["trial", "1", "7"]]
    assert done.stdout.endswith("3 entries, 157 of 268,435,456 bytes.\n")


@pytest.mark.usefixtures("filled")
def test_clear_deletes_one_application_or_everything(run_command: Run, config_file: str) -> None:
    done = run_command("cache", "clear", "--config", config_file, "--application", "shop", "--yes")
    assert (done.returncode, done.stdout) == (0, "2 entries deleted\n")
    assert set(stats(run_command, config_file)) == {"trial"}
    assert run_command("cache", "clear", "--config", config_file, "--yes").stdout == "1 entry deleted\n"
    assert stats(run_command, config_file) == {}


@pytest.mark.usefixtures("filled")
def test_clear_says_first_what_costs_parts_and_asks(run_command: Run, config_file: str) -> None:
    done = run_command("cache", "clear", "--config", config_file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("3 entries of the shared cache, and results in the memory of workers: ")
    assert "confirm with --yes" in done.stderr
    assert set(stats(run_command, config_file)) == {"shop", "trial"}


def test_unknown_application_is_refused_by_name(run_command: Run, config_file: str) -> None:
    done = run_command("cache", "clear", "--config", config_file, "--application", "shpo")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'shpo' is none of shop, trial" in done.stderr


@pytest.mark.parametrize(
    "change", [("sqlite:state.sqlite", '"memory:"'), (CONFIG.splitlines()[1], "upstream: sandbox")]
)
def test_configuration_that_shares_nothing_is_named(
    run_command: Run, config_file: str, change: tuple[str, str]
) -> None:
    Path(config_file).write_text(CONFIG.replace(*change))
    done = run_command("cache", "stats", "--config", config_file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is shared with `upstream: sandbox` or `store: memory:`" in done.stderr


def test_cache_that_is_switched_off_is_said(run_command: Run, config_file: str) -> None:
    Path(config_file).write_text(CONFIG + "cache: {shared: false}\n")
    done = run_command("cache", "stats", "--config", config_file)
    assert done.stdout.endswith("0 entries, 0 of 268,435,456 bytes. It is switched off in this configuration.\n")
