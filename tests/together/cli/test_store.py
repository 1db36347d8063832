"""Tests of `v3bridge store`: a backup beside a running service, what a restore says and refuses, and the export."""

import asyncio
import contextlib
import csv
import functools
import json
import sqlite3
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support import cases, commands, running_proxy
from support.redis_server import RedisServer
from support.running_commands import Run
from together.environment import ProxyEnvironment, target
from together.terminal import terminals

from proxy import config
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.stores.protocols import ExhaustedQuota, LedgerEntry, Settlement, Store, UsageIncrement
from proxy.telemetry.callers import Caller, CallerCount, CallerSeen, MonthlyRequests, UnknownKey, UnsupportedUse

CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: STORE
applications:
  shop: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-shop"]}
"""

Work = Callable[[Store], Awaitable[Any]]
MONTH = LedgerEntry("shop", "2026-11")


@pytest.fixture
def config_file(tmp_path: Path) -> str:
    file = tmp_path / "own.yaml"
    file.write_text(CONFIG.replace("STORE", "sqlite:state.sqlite"))
    return str(file)


async def with_store(address: str, work: Work) -> Any:
    store = await opening.open_store(config.StoreUrl(address), clock.SystemClock())
    try:
        return await work(store)
    finally:
        await store.aclose()


@pytest.fixture
def use(tmp_path: Path) -> Callable[[Work], Any]:
    """Do something with the configured store."""
    return lambda work: asyncio.run(with_store(f"sqlite:{tmp_path}/state.sqlite", work))


def booking(used: int, sequence: int = 1) -> Work:
    settlement = Settlement("worker", sequence, (), (UsageIncrement(MONTH, used, 0),))
    return lambda store: store.settle(settlement)


async def used(store: Store) -> int:
    return (await store.usage([MONTH]))[0].used


async def test_running_service_is_backed_up_and_must_stop_for_a_restore(
    environment: ProxyEnvironment, run_command: Run, config_file: str, tmp_path: Path
) -> None:
    account = environment.sandbox.default_application
    own = {"client_id": config.ClientId(account.client_id), "client_secret": config.Secret(account.client_secret)}
    address = f"sqlite:{tmp_path}/state.sqlite"
    settings = running_proxy.settings(
        environment.sandbox.graphql_url, environment.sandbox.token_url, store=address, application=own
    )
    backup = str(tmp_path / "backup.sqlite")

    async def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return await asyncio.to_thread(run_command, "store", *words, "--config", config_file)

    async with running_proxy.running(settings, environment.time) as proxy:
        await proxy.get(target({"mpn": "SN74S74N"}))
        entries: list[Any] = []
        while not entries:  # usage comes from the journal to the ledger soon after the response
            done = await run("backup", backup)
            assert (done.returncode, done.stderr) == (0, "")
            with contextlib.closing(sqlite3.connect(backup)) as copy:
                entries = copy.execute("SELECT * FROM ledger").fetchall()
        await proxy.get(target({"mpn": "NE555P"}))
        refused = await run("restore", backup, "--yes")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "state.sqlite: is in use; stop the service and the commands that use it" in refused.stderr
    after = await with_store(address, lambda store: store.all_usage())
    done = await run("restore", backup, "--yes")
    assert done.returncode == 0, done.stderr
    before = await with_store(address, lambda store: store.all_usage())
    lost = {each.entry: each.used for each in after}
    kept = {each.entry: each.used for each in before}
    assert lost.keys() == kept.keys()
    for entry, parts in lost.items():
        assert 0 < kept[entry] < parts
        assert f"{entry.account} {entry.period}: {parts} parts used, {kept[entry]} in the backup" in done.stderr
    async with running_proxy.running(settings, environment.time) as proxy:
        assert (await proxy.get(target({"mpn": "NE555P"}))).status == 200


def test_restore_needs_a_yes_and_says_what_is_lost(
    run_command: Run, config_file: str, use: Callable[[Work], Any], tmp_path: Path
) -> None:
    use(booking(40))
    backup = str(tmp_path / "backup.sqlite")
    assert run_command("store", "backup", backup, "--config", config_file).returncode == 0
    use(booking(1000, 2))
    done = run_command("store", "restore", backup, "--config", config_file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "state.sqlite is overwritten: usage, callers. The backup has 1 ledger entry." in done.stderr
    assert "  shop 2026-11: 1,040 parts used, 40 in the backup\n" in done.stderr
    assert "confirm with --yes" in done.stderr
    assert use(used) == 1040
    assert run_command("store", "restore", backup, "--config", config_file, "--yes").returncode == 0
    assert use(used) == 40


async def test_declined_restore_changes_nothing(run_command: Run, config_file: str, tmp_path: Path) -> None:
    address, backup = f"sqlite:{tmp_path}/state.sqlite", str(tmp_path / "backup.sqlite")
    await with_store(address, booking(40))
    await asyncio.to_thread(run_command, "store", "backup", backup, "--config", config_file)
    await with_store(address, booking(1000, 2))
    with terminals(functools.partial(commands.start, tmp_path)) as run:
        terminal = await run("store", "restore", backup, "--config", config_file)
        await terminal.until("Restore?")
        terminal.type("n\n")
        assert (await commands.wait(terminal.process)).code == 1
    assert await with_store(address, used) == 1040


def test_restore_makes_a_missing_store_for_its_owner_only(
    run_command: Run, config_file: str, use: Callable[[Work], Any], tmp_path: Path
) -> None:
    use(booking(40))
    assert run_command("store", "backup", str(tmp_path), "--config", config_file).returncode == 0
    (backup,) = tmp_path.glob("v3bridge-*.sqlite")
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    done = run_command("store", "restore", str(backup), "--config", config_file, "--yes")
    assert done.returncode == 0
    assert "Nexar has billed" not in done.stderr
    assert [file.stat().st_mode & 0o777 for file in (backup, tmp_path / "state.sqlite")] == [0o600, 0o600]
    assert use(used) == 40


def test_backup_keeps_encrypted_tokens_only(
    run_command: Run, config_file: str, use: Callable[[Work], Any], tmp_path: Path
) -> None:
    async def keep(store: Store) -> None:
        for key, token in (("a", "eyJ-in-clear"), ("b", "fernet:encrypted"), ("c", "eyJ-dropped")):
            await store.keep_token(key, token, time.time() + 3600)
        await store.drop_token("c", "eyJ-dropped")  # what a page still holds of it

    use(keep)
    backup = tmp_path / "backup.sqlite"
    assert run_command("store", "backup", str(backup), "--config", config_file).returncode == 0
    assert b"eyJ" not in backup.read_bytes()
    assert sqlite3.connect(backup).execute("SELECT token FROM tokens").fetchall() == [("fernet:encrypted",)]


def test_later_backup_replaces_an_earlier_one_and_nothing_else(
    run_command: Run, config_file: str, use: Callable[[Work], Any], tmp_path: Path
) -> None:
    use(booking(40))
    backup, notes = tmp_path / "backup.sqlite", tmp_path / "notes.txt"
    notes.write_text("mine")
    with contextlib.closing(sqlite3.connect(of_another := tmp_path / "another.sqlite")) as database:
        database.execute("CREATE TABLE mine (id)")
    for _ in range(2):
        assert run_command("store", "backup", str(backup), "--config", config_file).returncode == 0
    refused = dict.fromkeys((notes, of_another), "exists and is not a backup")
    for wrong, reason in (refused | {tmp_path / "state.sqlite": "is the store itself"}).items():
        done = run_command("store", "backup", str(wrong), "--config", config_file)
        assert done.returncode == 2
        assert f"{wrong}: {reason}" in done.stderr
    assert notes.read_text() == "mine"
    assert b"CREATE TABLE mine" in of_another.read_bytes()
    assert not list(tmp_path.glob("backup.sqlite.*"))


@cases.parametrize("content, reason")
def test_file_that_is_no_usable_backup_is_refused(
    run_command: Run, config_file: str, use: Callable[[Work], Any], tmp_path: Path, content: str, reason: str
) -> None:
    use(booking(40))
    backup = tmp_path / "backup.sqlite"
    assert run_command("store", "backup", str(backup), "--config", config_file).returncode == 0
    if content == "text":
        backup.write_text("a text")
    elif content == "other":
        with sqlite3.connect(backup) as other:
            other.execute("PRAGMA user_version = 4711")
    elif content == "damaged":
        whole = backup.read_bytes()
        backup.write_bytes(whole[:4096] + bytes(4096) + whole[8192:])
    else:
        backup.unlink()
    done = run_command("store", "restore", str(backup), "--config", config_file, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{backup}: {reason}" in done.stderr
    assert use(used) == 40


def test_damaged_store_is_restored_once_it_is_moved_away(
    run_command: Run, config_file: str, use: Callable[[Work], Any], tmp_path: Path
) -> None:
    use(booking(40))
    store, backup = tmp_path / "state.sqlite", tmp_path / "backup.sqlite"
    assert run_command("store", "backup", str(backup), "--config", config_file).returncode == 0
    store.write_bytes(b"something else" * 1000)
    done = run_command("store", "restore", str(backup), "--config", config_file, "--yes")
    assert done.returncode == 2
    assert f"{store}: is damaged; stop the service, move the file away, and try again" in done.stderr
    store.unlink()
    assert run_command("store", "restore", str(backup), "--config", config_file, "--yes").returncode == 0
    assert use(used) == 40


@pytest.mark.parametrize("command", ["backup", "restore"])
@pytest.mark.parametrize(
    "address, reason",
    [
        ("redis://:s3cret@127.0.0.1:1/0", "has backups of its own: copy the files of Redis"),
        ('"memory:"', "in the memory"),
    ],
)
def test_store_without_a_file_is_named(
    run_command: Run, config_file: str, command: str, address: str, reason: str
) -> None:
    Path(config_file).write_text(CONFIG.replace("STORE", address))
    done = run_command("store", command, "backup.sqlite", "--config", config_file)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert "s3cret" not in done.stderr


@pytest.fixture(params=["sqlite", "redis"])
def filled(request: pytest.FixtureRequest, config_file: str, tmp_path: Path) -> None:
    """One record of each kind."""
    address = f"sqlite:{tmp_path}/state.sqlite"
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        address = server.url
    Path(config_file).write_text(CONFIG.replace("STORE", address))
    now = int(time.time())
    caller = Caller("shop", "1", "parts/match", "=BOM tool")
    month = time.strftime("%Y-%m", time.gmtime(now))

    async def fill(store: Store) -> None:
        await booking(40)(store)
        await store.mark_exhausted(ExhaustedQuota("shop", now + 3600, "part limit"))
        await store.add_callers(
            "batch",
            [CallerSeen(caller, now - 60, now)],
            [CallerCount(now // 86_400, caller, 3, 1, 9)],
            unknown=[UnknownKey("ab" * 32, "192.0.2.1", "curl", now - 60, now, 2)],
            unsupported=[UnsupportedUse("shop", "1", "show[] (no source)", 2, now - 60, now)],
            months=[MonthlyRequests(month, "shop", "1", 3, 1, 4, 0)],
        )
        await store.keep_token("key", "eyJ-token", now + 3600.0)

    asyncio.run(with_store(address, fill))


@pytest.mark.usefixtures("filled", "within_a_day")
def test_export_has_a_line_for_each_record_and_no_token(run_command: Run, config_file: str) -> None:
    done = run_command("store", "export", "--config", config_file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "eyJ" not in done.stdout
    rows = {row.pop("record"): row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["usage"] == {"account": "shop", "period": "2026-11", "used": 40, "uncertain": 0, "reserved": 0}
    assert (rows["exhausted"]["account"], rows["exhausted"]["reason"]) == ("shop", "part limit")
    assert (rows["months"]["requests"], rows["months"]["cached"]) == (3, 4)
    assert rows["callers"]["user_agent"] == rows["days"]["user_agent"] == "=BOM tool"
    assert rows["days"]["day"] == time.strftime("%Y-%m-%d", time.gmtime())
    assert (rows["days"]["requests"], rows["days"]["errors"], rows["days"]["parts"]) == (3, 1, 9)
    assert (rows["unsupported"]["name"], rows["unsupported"]["requests"]) == ("show[] (no source)", 2)
    assert rows["unknown-keys"]["requests"] == 2


@pytest.mark.usefixtures("filled", "within_a_day")
def test_csv_has_one_kind_of_records_and_no_formulas(run_command: Run, config_file: str) -> None:
    done = run_command("store", "export", "--csv", "days", "--config", config_file)
    header, row = csv.reader(done.stdout.splitlines())
    assert header == ["day", "application", "key", "endpoint", "user_agent", "requests", "errors", "parts"]
    assert row[1:] == ["shop", "1", "parts/match", "'=BOM tool", "3", "1", "9"]
