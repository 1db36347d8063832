"""Tests of the stage store: each trouble of a store is one diagnosis, and no store is changed."""

import asyncio
import os
import socket
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import cases

from proxy import config
from proxy.doctor import store
from proxy.kit import clock
from proxy.store import open as opening
from proxy.store import redis as redis_store
from proxy.store import sqlite_file

from .conftest import Examine, diagnoses, the_finding

if TYPE_CHECKING:
    from support.redis_server import RedisServer

APPLICATIONS = "applications: {demo: {apikeys: [a-key]}}\n"
FILE = APPLICATIONS + "store: sqlite:kept/state.sqlite\n"


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """A store with something in it, which nobody uses at the moment."""
    path = tmp_path / "kept" / "state.sqlite"
    path.parent.mkdir()
    url = config.StoreUrl(f"sqlite:{path}")
    await (await opening.open_store(url, clock.SystemClock(), worker="", cache_bytes=0)).aclose()
    return path


@pytest.fixture
def unprivileged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions count for root, too, who may run the tests."""

    def access(path: Any, mode: int) -> bool:
        bits = (os.stat(path).st_mode >> 6) & 7
        return bits & mode == mode

    monkeypatch.setattr(os, "access", access)


async def test_a_store_is_usable_and_stays_as_it_is(examine: Examine, file: Path) -> None:
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    findings = await examine(store.check, FILE)
    assert diagnoses(findings) == []
    text = the_finding(findings, "store_usable").text
    assert text.startswith(f"{file}, writable, ")
    assert text.endswith(" ms a transaction")
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before


async def test_a_store_that_is_missing_is_not_made(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (finding,) = await examine(store.check, FILE)
    assert (finding.code, finding.outcome) == ("store_new", "passed")
    assert str(tmp_path / "kept" / "state.sqlite") in finding.text
    assert not list((tmp_path / "kept").iterdir())


async def test_a_folder_that_is_missing_is_named_with_the_command_that_makes_it(
    examine: Examine, tmp_path: Path
) -> None:
    (finding,) = await examine(store.check, FILE)
    assert (finding.code, finding.outcome) == ("store_folder_missing", "failed")
    assert f"mkdir -p {tmp_path}/kept" in str(finding.advice)


async def test_the_default_place_is_named(examine: Examine, tmp_path: Path) -> None:
    (finding,) = await examine(store.check, APPLICATIONS)
    assert finding.text.startswith(f"{tmp_path}/config.sqlite does not exist yet")


@pytest.mark.usefixtures("unprivileged")
async def test_a_folder_that_cannot_be_written_to_is_named(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir(mode=0o500)
    findings = await examine(store.check, FILE)
    assert diagnoses(findings) == ["store_folder_unwritable"]
    assert f"cannot be made in {tmp_path}/kept" in findings[0].text


async def test_a_folder_in_place_of_the_file_is_named(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "kept" / "state.sqlite").mkdir(parents=True)
    (finding,) = await examine(store.check, FILE)
    assert (finding.code, finding.advice) == ("store_unwritable", "name a file in it with store: sqlite:PATH")


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"])
async def test_a_full_disk_is_no_question_of_permissions(
    examine: Examine, file: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(_: Path) -> int:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = name
        raise error

    monkeypatch.setattr(sqlite_file, "try_out", full)
    assert diagnoses(await examine(store.check, FILE)) == ["store_disk_failed"]


async def test_a_database_of_another_program_is_named(examine: Examine, file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA application_id = 1")
    connection.close()
    findings = await examine(store.check, FILE)
    assert diagnoses(findings) == ["store_of_other_program"]
    assert findings[0].text == f"{file} has other tables than the store's"


async def test_a_file_that_is_no_database_is_named(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "state.sqlite").write_text("not a database, but text " * 100)
    assert diagnoses(await examine(store.check, FILE)) == ["store_damaged"]


async def test_a_store_that_is_read_only_is_named(
    examine: Examine, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    # Of root's files none is read-only; SQLite says the same for a connection that is.
    monkeypatch.setattr(sqlite3, "connect", lambda name, **more: connect(name.replace("=rw", "=ro"), **more))
    findings = await examine(store.check, FILE)
    assert diagnoses(findings) == ["store_unwritable"]
    assert "readonly" in findings[0].text


async def test_a_store_that_another_program_writes_to_is_named(
    examine: Examine, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.01)
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert diagnoses(await examine(store.check, FILE)) == ["store_busy"]
    finally:
        writer.close()


async def test_a_store_in_memory_forgets(examine: Examine) -> None:
    assert diagnoses(await examine(store.check, APPLICATIONS + "store: 'memory:'\n")) == ["store_volatile"]


async def test_redis_is_usable_and_stays_as_it_is(examine: Examine, redis_server: "RedisServer") -> None:
    import redis

    findings = await examine(store.check, f"{APPLICATIONS}store: {redis_server.url}\n")
    assert diagnoses(findings) == []
    assert ": Redis " in the_finding(findings, "store_usable").text
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.dbsize() == 0


@cases.parametrize("setting, value, default, code")
async def test_trouble_with_redis_is_one_diagnosis(
    examine: Examine, redis_server: "RedisServer", setting: str, value: str, default: str, code: str
) -> None:
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru" if setting == "maxmemory" else "noeviction")
        client.config_set(setting, value)
        try:
            findings = await examine(store.check, f"{APPLICATIONS}store: {redis_server.url}\n")
        finally:
            client.config_set(setting, default)
    assert diagnoses(findings) == [code]
    assert "another-password" not in str(findings)


@cases.parametrize("info, codes")
async def test_settings_of_redis_count_only_where_usage_is_at_risk(
    examine: Examine, redis_server: "RedisServer", monkeypatch: pytest.MonkeyPatch, info: Any, codes: list[str]
) -> None:
    # Not set in the server: it would write a new file, and not end until it is written.
    async def try_out(_: Any) -> Any:
        return info

    monkeypatch.setattr(redis_store, "try_out", try_out)
    assert diagnoses(await examine(store.check, f"{APPLICATIONS}store: {redis_server.url}\n")) == codes


async def test_a_replica_is_named(examine: Examine, redis_server: "RedisServer") -> None:
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        client.replicaof("127.0.0.1", "1")
        try:
            findings = await examine(store.check, f"{APPLICATIONS}store: {redis_server.url}\n")
        finally:
            client.replicaof("NO", "ONE")
    assert diagnoses(findings) == ["redis_read_only"]


async def test_redis_that_is_not_there_is_named_without_its_password(examine: Examine) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    findings = await examine(store.check, f"{APPLICATIONS}store: redis://me:hidden@127.0.0.1:{port}\n")
    assert diagnoses(findings) == ["redis_unreachable"]
    assert findings[0].text == f"redis://127.0.0.1:{port} cannot be used: ConnectionError"


async def test_another_program_in_place_of_redis_is_named(examine: Examine) -> None:
    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        findings = await examine(store.check, f"{APPLICATIONS}store: redis://127.0.0.1:{port}\n")
    assert diagnoses(findings) == ["redis_unreachable"]
