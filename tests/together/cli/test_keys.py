"""Tests of `v3bridge keys`: what it prints of the configuration and of the store."""

import asyncio
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.kit import clock
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import UnknownKey

CONFIG = """\
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  shop:
    client_id: an-id
    client_secret: "the-secret"
    rate: 5
    apikeys:
      - {key: "k3y-of-erp", name: erp, parts: 1000, expires: 2020-01-31}
      - {key: "k3y-of-plm", name: plm, rate: 0, expires: 2099-01-31}
  trial: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-trial"]}
"""
AT = 1_700_000_000

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture
def config_file(tmp_path: Path) -> str:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG)
    return str(file)


def record(folder: Path, *keys: UnknownKey) -> None:
    """Store unknown keys in the file of the configuration."""

    async def work() -> None:
        store = await SqliteStore.open(folder / "state.sqlite", clock.SystemClock())
        await store.add_callers("1", [], [], keys)
        await store.aclose()

    asyncio.run(work())


def run(run_command: Run, config_file: str, *arguments: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = run_command("keys", *arguments, "--config", config_file)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_list_has_every_key_with_its_limits_and_last_day(run_command: Run, config_file: str) -> None:
    rows = [line.split() for line in run(run_command, config_file, "list").splitlines()]
    assert rows[1][0] == "key"
    assert rows[3:] == [
        ["shop/erp", "1,000", "5", "a", "second", "expired", "2020-01-31"],
        ["shop/plm", "unlimited", "unlimited", "expires", "2099-01-31"],
        ["trial/1", "unlimited", "unlimited"],
    ]
    erp, *_ = json.loads(run(run_command, config_file, "list", "--json"))
    assert erp == {
        "application": "shop",
        "name": "erp",
        "expires": "2020-01-31",
        "expired": True,
        "parts": 1000,
        "rate": 5,
    }


def test_unknown_keys_are_listed_until_an_application_has_them(
    run_command: Run, config_file: str, tmp_path: Path
) -> None:
    assert "No program has sent" in run(run_command, config_file, "unknown")
    old, alike = "ab12" + "0" * 60, "ab12" + "1" * 60
    record(
        tmp_path,
        UnknownKey(old, "192.0.2.1", "erp/1\x1b[31m", AT, AT + 60, 1234),
        UnknownKey(alike, "192.0.2.2", "", AT, AT, 1),
        UnknownKey(digest("k3y-of-trial"), "192.0.2.3", "", AT, AT, 1),  # it was added since
    )
    rows = run(run_command, config_file, "unknown").splitlines()[3:]
    seen = "2023-11-14 22:13  2023-11-14 22:1"
    assert rows[0].split() == f"ab120 1,234 {seen}4 192.0.2.1 erp/1\\x1b[31m".split()
    assert rows[1].split() == f"ab121 1 {seen}3 192.0.2.2 (none)".split()
    assert [each["fingerprint"] for each in json.loads(run(run_command, config_file, "unknown", "--json"))] == [
        "ab120",
        "ab121",
    ]


@pytest.mark.parametrize("store", ["memory:", "sandbox"])
def test_records_in_the_memory_of_a_service_are_on_its_page(run_command: Run, tmp_path: Path, store: str) -> None:
    file = tmp_path / "own.yaml"
    changed = CONFIG.replace("sqlite:state.sqlite", '"memory:"')
    file.write_text(changed if store == "memory:" else "applications: {demo: {apikeys: [EXAMPLE_KEY]}}\n")
    done = run_command("keys", "unknown", "--json", "--config", str(file))
    assert (done.returncode, json.loads(done.stdout), "admin interface" in done.stderr) == (0, [], True)
