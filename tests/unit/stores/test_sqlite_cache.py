"""Tests specific to the shared cache in a file: modes, damage, deletion, and expiry under a clock that jumps."""

import errno
import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import log_lines
from unit.stores.test_protocols_cache import SIZE, A, B, C, contents, record

from proxy import errors
from proxy.kit import clock
from proxy.stores.sqlite_cache import EXPIRED, WAL_BYTES, SqliteCache, _Claims


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.sqlite.cache"


@pytest.fixture
async def cache(file: Path, manual_clock: clock.ManualClock) -> AsyncIterator[SqliteCache]:
    opened = SqliteCache(file.with_suffix(""), SIZE, manual_clock)
    yield opened
    await opened.aclose()


async def test_files_are_readable_by_the_owner_only(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock
) -> None:
    await cache.put([record(A, manual_clock.now())])
    await cache.look_up([A, B], 0.0, claim=True)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == dict.fromkeys([f"state.sqlite.cache{end}" for end in ("", "-shm", "-wal", ".claims")], 0o600)


@pytest.mark.parametrize("damage", [b"not a database at all" * 400, b""])
async def test_damaged_file_is_replaced(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock, damage: bytes
) -> None:
    file.parent.mkdir()
    file.write_bytes(damage)
    with log_lines.collected() as output:
        assert await contents(cache, A) == [None]
        await cache.put([record(A, manual_clock.now())])
        assert await contents(cache, A) == [b"content"]
    assert output.getvalue().count("shared cache deleted") == (1 if damage else 0)


async def test_file_damaged_while_it_is_open_is_replaced(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock
) -> None:
    now = manual_clock.now()
    await cache.put([record(number.to_bytes(16, "big"), now, bytes(3000)) for number in range(200)])
    await cache.aclose()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    opened = SqliteCache(file.with_suffix(""), SIZE, manual_clock)
    assert await contents(opened, bytes(16)) == [None]
    await opened.put([record(A, now)])
    assert await contents(opened, A) == [b"content"]
    await opened.aclose()


async def test_deleted_file_is_begun_anew(cache: SqliteCache, file: Path, manual_clock: clock.ManualClock) -> None:
    await cache.put([record(A, manual_clock.now())])
    for path in file.parent.glob("state.sqlite.cache*"):
        path.unlink()
    assert await contents(cache, A) == [None]
    await cache.put([record(B, manual_clock.now())])
    other = SqliteCache(file.with_suffix(""), SIZE, manual_clock)
    assert await contents(other, A, B) == [None, b"content"]
    await other.aclose()


async def test_unusable_folder_is_an_error(tmp_path: Path, manual_clock: clock.ManualClock) -> None:
    (tmp_path / "file").touch()
    cache = SqliteCache(tmp_path / "file" / "state.sqlite", SIZE, manual_clock)
    for work in (cache.look_up([A], 0.0, claim=True), cache.put([]), cache.cache_usage(), cache.clear(None)):
        with pytest.raises(errors.StoreUnavailable, match="shared cache"):
            await work
    await cache.aclose()


async def test_file_of_another_version_is_emptied(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock
) -> None:
    await cache.put([record(A, manual_clock.now())])
    await cache.aclose()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    opened = SqliteCache(file.with_suffix(""), SIZE, manual_clock)
    assert await contents(opened, A) == [None]
    await opened.aclose()


async def test_entries_beyond_a_day_are_deleted_after_the_clock_is_set_back(
    cache: SqliteCache, manual_clock: clock.ManualClock
) -> None:
    await cache.put([record(A, manual_clock.now() + 10 * 86_400)])
    await cache.put([record(B, manual_clock.now()), record(C, manual_clock.now())])
    assert await contents(cache, A, B) == [None, b"content"]


async def test_everything_that_has_expired_is_deleted_at_once(
    cache: SqliteCache, manual_clock: clock.ManualClock
) -> None:
    """While nothing is stored, as a service that nobody uses."""
    now = manual_clock.now()
    await cache.put([record(A, now, life=86_400)])
    await cache.put([record(number.to_bytes(16, "big"), now) for number in range(2 * EXPIRED + 1)])
    manual_clock.advance(61)
    await cache.put([])
    assert [usage.entries for usage in await cache.cache_usage()] == [1]


async def test_large_transaction_takes_space_only_for_a_while(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock
) -> None:
    now, content = manual_clock.now(), bytes(range(256)) * 4000
    await cache.put([record(number.to_bytes(16, "big"), now, content) for number in range(8)])
    for _ in range(3):
        await cache.put([record(A, now)])
    assert file.with_name(file.name + "-wal").stat().st_size <= WAL_BYTES


async def test_look_up_whose_claims_fail_halfway_leaves_none(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = _Claims.lock

    def no_locks_left(claims: _Claims, key: bytes) -> bool:
        if key == B:
            raise OSError(errno.ENOLCK, "No locks available")
        return lock(claims, key)

    with monkeypatch.context() as patch:
        patch.setattr(_Claims, "lock", no_locks_left)
        with pytest.raises(errors.StoreUnavailable, match="No locks available"):
            await cache.look_up([A, B], 0.0, claim=True)
    other = SqliteCache(file.with_suffix(""), SIZE, manual_clock)
    assert [claimed for _, claimed in await other.look_up([A, B], 0.0, claim=True)] == [True, True]
    await other.aclose()


async def test_failed_look_up_releases_its_claims(
    cache: SqliteCache, file: Path, manual_clock: clock.ManualClock
) -> None:
    file.mkdir(parents=True)
    with pytest.raises(errors.StoreUnavailable):
        await cache.look_up([A], 0.0, claim=True)
    file.rmdir()
    other = SqliteCache(file.with_suffix(""), SIZE, manual_clock)
    assert [claimed for _, claimed in await other.look_up([A], 0.0, claim=True)] == [True]
    await other.aclose()
