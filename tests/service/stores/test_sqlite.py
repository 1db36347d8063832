"""Tests specific to the SQLite store: file permissions, schema version, and errors of an unusable file."""

import asyncio
import os
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from service.stores.test_protocols import NOVEMBER, claim, settlement

from proxy import errors
from proxy.kit import clock
from proxy.stores import sqlite_schema
from proxy.stores.protocols import EntryUsage
from proxy.stores.sqlite import SqliteStore


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return tmp_path / "state.sqlite"


@pytest.fixture
async def store(file: Any, manual_clock: clock.ManualClock) -> Any:
    opened = await SqliteStore.open(file, manual_clock)
    yield opened
    await opened.aclose()


def _mode(path: Any) -> Any:
    return stat.S_IMODE(path.stat().st_mode)


async def test_database_files_are_readable_by_the_owner_only(store: Any, file: Any) -> None:
    await store.put_note("kind", "demo", "a note")
    assert {path.name: _mode(path) for path in file.parent.iterdir()} == {
        "state.sqlite": 0o600,
        "state.sqlite-shm": 0o600,
        "state.sqlite-wal": 0o600,
    }


async def test_existing_folder_keeps_its_mode_and_file_becomes_private(
    tmp_path: Path, manual_clock: clock.ManualClock
) -> None:
    tmp_path.chmod(0o755)
    file = tmp_path / "open.sqlite"
    file.touch(0o644)
    await (await SqliteStore.open(file, manual_clock)).aclose()
    assert (_mode(tmp_path), _mode(file)) == (0o755, 0o600)


async def test_database_uses_wal_and_a_busy_timeout(file: Any, store: Any) -> None:
    def pragmas() -> Any:
        with sqlite3.connect(file) as other:
            return other.execute("PRAGMA journal_mode").fetchone()

    assert await asyncio.to_thread(pragmas) == ("wal",)
    # Private: SQLite has these two for a connection, not for the file.
    asked = [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "busy_timeout")]
    assert asked == [1, 5000]


async def test_store_thread_has_a_name_and_ends_on_close(store: Any) -> None:
    def names() -> Any:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("store")]

    assert names() == ["store_0"]
    await store.aclose()
    await store.aclose()
    assert names() == []
    with pytest.raises(errors.StoreUnavailable, match="closed"):
        await store.all_usage()


@pytest.mark.parametrize("version", [sqlite_schema.VERSION - 1, sqlite_schema.VERSION + 1])
async def test_schema_of_another_version_is_refused_with_what_would_be_lost(
    file: Any, manual_clock: clock.ManualClock, version: int
) -> None:
    await (await SqliteStore.open(file, manual_clock)).aclose()
    content = file.read_bytes()
    with sqlite3.connect(file) as other:
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    written = file.read_bytes()
    assert written != content
    said = rf"state\.sqlite: was made by another version .*\(its schema is {version}.*uncertain parts.*are lost"
    with pytest.raises(errors.ConfigError, match=said):
        await SqliteStore.open(file, manual_clock)
    assert file.read_bytes() == written


async def test_invalid_database_is_refused_by_name(tmp_path: Path, manual_clock: clock.ManualClock) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("These are notes, and no database at all. " * 100)
    with pytest.raises(errors.ConfigError, match=r"notes\.txt: cannot be used: file is not a database"):
        await SqliteStore.open(file, manual_clock)


@pytest.mark.parametrize("version", ["3.37.2", "3.7.17"])
async def test_old_sqlite_library_is_refused_before_creating_a_file(
    file: Any, manual_clock: clock.ManualClock, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", version)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", tuple(map(int, version.split("."))))
    with pytest.raises(errors.ConfigError, match=rf"needs SQLite 3\.38 or later, and this Python has {version}"):
        await SqliteStore.open(file, manual_clock)
    assert not file.exists()


@pytest.mark.parametrize("path", ["", "file/beneath"])
async def test_impossible_path_is_refused_by_name(tmp_path: Path, manual_clock: clock.ManualClock, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.ConfigError, match=r"cannot be opened: (Is a directory|Not a directory)"):
        await SqliteStore.open(tmp_path / path, manual_clock)


async def test_new_file_can_be_opened_concurrently(file: Any, manual_clock: clock.ManualClock) -> None:
    stores = await asyncio.gather(*(SqliteStore.open(file, manual_clock) for _ in range(8)))
    await asyncio.gather(*(store.heartbeat(str(number), 10) for number, store in enumerate(stores)))
    for store in stores:
        await store.aclose()


async def test_failed_operation_is_rolled_back(store: Any, file: Any) -> None:
    with sqlite3.connect(file) as broken:
        broken.execute("CREATE TRIGGER fails BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'it broke'); END")
    with pytest.raises(errors.StoreUnavailable, match="SQLite"):
        await store.settle(settlement(1, (NOVEMBER, 7, 0), claims="a"))
    with broken:
        broken.execute("DROP TRIGGER fails")
    broken.close()
    await store.settle(settlement(1, (NOVEMBER, 7, 0), claims="a"))
    assert [state[1:] for state in await store.usage([NOVEMBER])] == [(7, 0, 0)]


async def test_long_locked_file_is_a_store_error(
    file: Any, manual_clock: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_schema, "BUSY_SECONDS", 0.01)
    store = await SqliteStore.open(file, manual_clock)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.StoreUnavailable, match="locked"):
        await store.reserve([claim("a", 1)])
    holder.execute("ROLLBACK")
    holder.close()
    assert await store.reserve([claim("a", 1)]) == [None]
    await store.aclose()


def test_file_mode_is_independent_of_the_umask(file: Any) -> None:
    before = os.umask(0)
    try:
        sqlite_schema.connect(file).close()
    finally:
        os.umask(before)
    assert _mode(file) == 0o600


@pytest.mark.parametrize("replaced", [False, True])
async def test_deleted_file_is_detected(store: Any, file: Any, replaced: bool) -> None:
    file.unlink()
    if replaced:
        file.touch()
    for work in (store.check_writable(), store.usage([NOVEMBER]), store.settle(settlement(1, (NOVEMBER, 7, 0)))):
        with pytest.raises(errors.StoreUnavailable, match=r"state\.sqlite was deleted or replaced; restart"):
            await work


@pytest.mark.parametrize("content", [b"", b"not a database " * 1000])
async def test_overwritten_file_is_detected(store: Any, file: Any, content: bytes) -> None:
    file.write_bytes(content)
    for work in (store.check_writable(), store.settle(settlement(1, (NOVEMBER, 7, 0)))):
        with pytest.raises(errors.StoreUnavailable, match=r"state\.sqlite was overwritten; stop the service"):
            await work


async def test_read_only_mount_is_detected(store: Any, file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.check_writable()
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (file.parent, os.W_OK))
    with pytest.raises(errors.StoreUnavailable, match=f"{file.parent} is read-only"):
        await store.check_writable()


async def test_unwritable_file_is_detected(store: Any) -> None:
    # Private: root writes to any file, whatever its mode.
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(errors.StoreUnavailable, match="readonly database"):
        await store.check_writable()
    assert await store.usage([NOVEMBER]) == [EntryUsage(NOVEMBER, 0, 0, 0)]
