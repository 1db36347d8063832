"""Tests specific to the shared cache in a file: modes, damage, deletion, and expiry under a clock that jumps."""

import asyncio
import contextlib
import errno
import fcntl
import itertools
import os
import random
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from service.stores.test_protocols_cache import NOW, SIZE, A, B, C, claims, contents, record
from support import log_lines

from proxy import errors
from proxy.kit import clock
from proxy.stores.cache_file import LOOP_MAX, VERSION, CacheFile
from proxy.stores.protocols import CacheLookup


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite.cache"


Opens = Callable[..., CacheFile]


@pytest.fixture
async def open_file(file: Path, manual_clock: clock.ManualClock) -> AsyncIterator[Opens]:
    """Opens the file, or another one, each time as another process would; closed with the test."""
    async with contextlib.AsyncExitStack() as stack:

        def opened(size: int = SIZE, path: Path = file) -> CacheFile:
            cache = CacheFile(path, size, manual_clock)
            stack.push_async_callback(cache.aclose)
            return cache

        yield opened


@pytest.fixture
def cache(open_file: Opens) -> CacheFile:
    return open_file()


async def test_files_are_readable_by_the_owner_only(cache: CacheFile, file: Path) -> None:
    await cache.put([record(A)])
    await cache.look_up([A, B], 0.0, claim=True)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == dict.fromkeys([f"state.sqlite.cache{end}" for end in ("", "-journal", ".claims")], 0o600)


@pytest.mark.parametrize("damage", [b"not a database at all" * 400, b""])
async def test_damaged_file_is_replaced(cache: CacheFile, file: Path, damage: bytes) -> None:
    file.write_bytes(damage)
    with log_lines.collected() as output:
        assert await contents(cache, A) == [None]
        await cache.put([record(A)])
        assert await contents(cache, A) == [b"content"]
    assert output.getvalue().count("shared cache deleted") == (1 if damage else 0)


async def test_file_damaged_while_it_is_open_is_replaced(cache: CacheFile, file: Path, open_file: Opens) -> None:
    await cache.put([record(number.to_bytes(16, "big"), bytes(3000)) for number in range(200)])
    await cache.aclose()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    opened = open_file()
    assert await contents(opened, bytes(16)) == [None]
    await opened.put([record(A)])
    assert await contents(opened, A) == [b"content"]


async def test_deleted_file_is_begun_anew(cache: CacheFile, file: Path, open_file: Opens) -> None:
    await cache.put([record(A)])
    for path in file.parent.glob("state.sqlite.cache*"):
        path.unlink()
    assert await contents(cache, A) == [None]
    await cache.put([record(B)])
    other = open_file()
    assert await contents(other, A, B) == [None, b"content"]


async def test_unusable_folder_is_an_error(tmp_path: Path, open_file: Opens) -> None:
    (tmp_path / "file").touch()
    cache = open_file(path=tmp_path / "file" / "state.sqlite.cache")
    for work in (cache.look_up([A], 0.0, claim=True), cache.put([]), cache.cache_usage(), cache.clear(None)):
        with pytest.raises(errors.StoreUnavailable, match="shared cache"):
            await work


async def test_file_of_another_version_is_replaced(cache: CacheFile, file: Path, open_file: Opens) -> None:
    await cache.put([record(A)])
    await cache.aclose()
    with contextlib.closing(sqlite3.connect(file)) as later:
        later.execute(f"PRAGMA user_version = {VERSION + 1}")
    other = open_file()
    with log_lines.collected() as output:
        assert await contents(other, A) == [None]
    assert "shared cache deleted" in output.getvalue()


async def test_entries_beyond_a_day_are_deleted_after_the_clock_is_set_back(cache: CacheFile) -> None:
    await cache.put([record(A, stored=NOW + 10 * 86_400)])
    await cache.put([record(B), record(C)])
    assert await contents(cache, A, B) == [None, b"content"]


async def test_everything_that_has_expired_is_deleted_at_once(
    cache: CacheFile, manual_clock: clock.ManualClock
) -> None:
    """While nothing is stored, as a service that nobody uses."""
    await cache.put([record(A, life=86_400)])
    await cache.put([record(number.to_bytes(16, "big")) for number in range(2001)])
    manual_clock.advance(61)
    await cache.put([])
    assert [usage.entries for usage in await cache.cache_usage()] == [1]


async def test_expired_entries_are_overwritten(cache: CacheFile, file: Path, manual_clock: clock.ManualClock) -> None:
    await cache.put([record(A, b"PLANTED"), record(B, b"STAYS", life=600)])
    manual_clock.advance(61)
    await cache.put([])
    assert (b"PLANTED" in file.read_bytes(), b"STAYS" in file.read_bytes()) == (False, True)


async def test_cleared_entries_are_overwritten(cache: CacheFile, file: Path) -> None:
    for stored in (b"earlier copy", b"later copy"):
        await cache.put([record(A, stored, name="shop"), record(B, b"of another")])
    assert await cache.clear("shop") == 1
    assert b"copy" not in file.read_bytes()
    assert await contents(cache, A, B) == [None, b"of another"]


async def test_look_up_whose_claims_fail_halfway_leaves_none(
    cache: CacheFile, monkeypatch: pytest.MonkeyPatch, open_file: Opens
) -> None:
    lock, requests = fcntl.fcntl, itertools.count(1)

    def one_lock_left(*request: Any) -> Any:
        if next(requests) == 2:
            raise OSError(errno.ENOLCK, "No locks available")
        return lock(*request)

    await contents(cache, A)
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "fcntl", one_lock_left)
        with pytest.raises(errors.StoreUnavailable, match="No locks available"):
            await cache.look_up([A, B], 0.0, claim=True)
    other = open_file()
    assert await claims(other, A, B) == [True, True]


async def test_failed_look_up_releases_its_claims(cache: CacheFile, file: Path, open_file: Opens) -> None:
    file.mkdir(parents=True)
    with pytest.raises(errors.StoreUnavailable):
        await cache.look_up([A], 0.0, claim=True)
    file.rmdir()
    other = open_file()
    assert await claims(other, A) == [True]


def content_of(key: bytes, size: int) -> bytes:
    """Content that tells which entry it is."""
    return (key * (size // len(key) + 1))[:size]


@given(sizes=st.lists(st.integers(0, 400_000), min_size=1, max_size=40), batch=st.integers(1, 7))
@example(sizes=[10] + [240_000] * 5, batch=1)
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_what_is_found_is_what_was_stored_last(cache: CacheFile, sizes: list[int], batch: int) -> None:
    """However the file is filled: no entry is mistaken for another, the newest are there, the limit holds."""
    await cache.clear(None)
    records = []
    for number, size in enumerate(sizes):
        key = number.to_bytes(8, "big") * 2
        records.append(record(key, content_of(key, size)))
    for start in range(0, len(records), batch):
        await cache.put(records[start : start + batch])
    found = await contents(cache, *(each.key for each in records))
    assert all(content in (None, each.content) for each, content in zip(records, found, strict=True))
    newest_bytes = 0
    for each, content in zip(reversed(records), reversed(found), strict=True):
        newest_bytes += len(each.content) + 100
        if len(each.content) > SIZE // 5:  # may be too large
            continue
        if newest_bytes < SIZE // 4:
            assert content is not None
    assert sum(usage.entries for usage in await cache.cache_usage()) == sum(content is not None for content in found)


async def test_file_stays_below_its_size(cache: CacheFile, file: Path) -> None:
    for number in range(300):
        await cache.put([record(number.to_bytes(16, "big"), bytes(10_000))])
    assert file.stat().st_size <= SIZE


async def test_writers_and_readers_side_by_side_mistake_no_entry(cache: CacheFile, open_file: Opens) -> None:
    """While two caches replace entries again and again, a third reads what they store."""
    caches = [open_file() for _ in range(2)]
    keys = [number.to_bytes(8, "big") * 2 for number in range(200)]

    async def write(writer: CacheFile, seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(60):
            batch = [(key, chosen.randrange(20_000)) for key in chosen.sample(keys, 8)]
            await writer.put([record(key, content_of(key, size)) for key, size in batch])

    writing = [asyncio.create_task(write(writer, seed)) for seed, writer in enumerate(caches)]
    hits = 0
    while not all(task.done() for task in writing):
        for key, content in zip(keys, await contents(cache, *keys), strict=True):
            assert content is None or content == content_of(key, len(content))
            hits += content is not None
    await asyncio.gather(*writing)
    assert hits


@pytest.mark.parametrize("size", [0, 5_000, 100_000])
async def test_truncated_file_is_begun_anew(cache: CacheFile, file: Path, size: int, open_file: Opens) -> None:
    """As by a person who wants its space back. The file of claims goes with it, and what is claimed stays so."""
    other = open_file()
    await cache.put([record(bytes([n]) * 16, bytes(10_000)) for n in range(200, 220)])
    assert await claims(cache, A) == [True]
    assert await claims(other, A, B) == [False, True]
    with log_lines.collected() as output:
        os.truncate(file, size)
        os.truncate(f"{file}.claims", 0)
        for each in (cache, other):
            each.look_up_now([C], 0.0, False)
            await contents(each, C)
            await each.put([record(C)])
        for each in (cache, other):
            assert await contents(each, C) == [b"content"]
    assert output.getvalue().count("shared cache deleted") == 1
    assert (await claims(cache, B), await claims(other, A)) == ([False], [False])


async def test_damaged_file_is_replaced_once_by_several_processes(
    file: Path, cache: CacheFile, open_file: Opens
) -> None:
    file.write_bytes(b"no cache" * 1000)
    caches = [open_file() for _ in range(5)]
    with log_lines.collected() as output:
        await asyncio.gather(*(each.put([record(bytes([n]) * 16)]) for n, each in enumerate(caches)))
    assert output.getvalue().count("shared cache deleted") >= 1
    for each in caches:
        assert await contents(each, *(bytes([n]) * 16 for n in range(5))) == [b"content"] * 5


async def test_smaller_size_deletes_the_oldest_and_shrinks_the_file(
    cache: CacheFile, file: Path, manual_clock: clock.ManualClock, open_file: Opens
) -> None:
    """By the next entry that is stored, and not by services and commands that only read."""
    larger = open_file(2 * SIZE)
    keys = [number.to_bytes(16, "big") for number in range(150)]
    for key in keys:
        await larger.put([record(key, bytes(10_000), stored=manual_clock.now())])
        manual_clock.advance(0.01)
    assert await contents(cache, *keys) == [bytes(10_000)] * 150
    assert await cache.clear("nobody") == 0
    assert file.stat().st_size > SIZE
    await cache.put([record(A)])
    kept = [content is not None for content in await contents(cache, *keys)]
    assert 60 <= kept.count(True) < 100
    assert all(kept[kept.index(True) :])
    assert file.stat().st_size <= SIZE


async def test_writer_in_the_way_is_waited_for_by_threads(cache: CacheFile, file: Path, open_file: Opens) -> None:
    """Also by one that opens the file, for itself and for the event loop, which never waits."""
    await cache.put([record(A)])
    await claims(cache)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert cache.look_up_now([A], 0.0, True) is None
        reading = [asyncio.create_task(claims(each, A)) for each in (cache, open_file())]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in reading)
        writer.execute("COMMIT")
    assert await asyncio.gather(*reading) == [[False], [False]]
    assert cache.look_up_now([A], 0.0, True) == [CacheLookup(b"content", False)]


async def test_many_keys_are_left_to_the_thread(cache: CacheFile) -> None:
    await contents(cache)
    assert cache.look_up_now([bytes([n]) * 16 for n in range(LOOP_MAX + 1)], 0.0, False) is None


async def test_claims_hold_against_another_process(cache: CacheFile, open_file: Opens) -> None:
    assert await claims(cache, A, B) == [True, True]
    other = open_file()
    assert await claims(other, A, B, C) == [False, False, True]
    assert await claims(cache, C) == [False]
    await cache.release([A, B])
    await other.release([C])
    assert await claims(other, A, B) == [True, True]
    assert await claims(cache, C, A) == [True, False]
    await other.aclose()
    assert await claims(cache, A) == [True]
