"""Tests of the file of the SQLite store: what happens to it, other processes, and what does not fit the disk."""

import asyncio
import contextlib
import fcntl
import os
import random
import resource
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from service.store.conftest import CACHE_BYTES, NOW, Opens
from service.store.store_process import StoreProcess
from support.store_client import Client, begins, result

from proxy import errors
from proxy.kit.clock import ManualClock
from proxy.store import sqlite
from proxy.store.protocol import Reserved
from proxy.store.sqlite import SqliteStore

PAGE_BYTES = 4096  # SQLite's default


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def file(address: str) -> Path:
    return Path(address)


@pytest.fixture
def process() -> Iterator[type[StoreProcess]]:
    """Opens a store in another process."""
    yield StoreProcess
    StoreProcess.end_idle()


async def test_process_that_is_alone_ends_what_a_killed_one_had_reserved(
    process: type[StoreProcess], address: str, time: ManualClock, open_client: Opens
) -> None:
    other = process.open(NOW, address, "other")
    other.call(NOW, "begin", begins("x", "a", "b", time=time))
    beside = await open_client()
    assert await beside.counts() == (0, 0, 2)
    await beside.store.aclose()
    other.kill()
    alone = await open_client()
    assert await alone.counts() == (0, 2, 0)
    assert await alone.begin("y", "a") == Reserved(None)
    await alone.finish("x a")
    assert await alone.counts() == (1, 1, 1)


async def test_others_wait_until_the_process_that_is_alone_has_ended_what_was_reserved(
    file: Path, time: ManualClock
) -> None:
    """Else it would end theirs, too."""

    class Opening(SqliteStore):
        async def end_worker(self, worker: str | None) -> None:
            if worker is None:
                with pytest.raises(BlockingIOError):
                    share()
            await super().end_worker(worker)

    def share() -> None:
        with file.with_name("store.sqlite.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

    store = await Opening.open(file, time, "one", CACHE_BYTES)
    share()
    await store.aclose()


USAGE = """
import sys
from proxy.cli.main import program

command = program()
for _ in range(100):
    command(["usage", "--config", sys.argv[1], "--json"], standalone_mode=False)
"""


async def test_command_beside_a_process_that_opens_and_reloads_loses_no_booking(
    client: Client, file: Path, open_client: Opens, process: type[StoreProcess]
) -> None:
    configuration = file.with_name("own.yaml")
    configuration.write_text(
        "upstream: {graphql_url: http://127.0.0.1:1/, token_url: http://127.0.0.1:1/}\n"
        f"store: sqlite:{file}\napplications: {{shop: {{client_id: i, client_secret: s, apikeys: [KEY]}}}}\n"
    )
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", USAGE, str(configuration)), stdout=asyncio.subprocess.DEVNULL
    )
    booked = 0
    while command.returncode is None:
        again = await open_client()
        for each in (client, again):
            await each.begin(str(booked), "a")
            await each.finish(str(booked))
            booked += 1
        await again.store.aclose()
        await asyncio.sleep(0.005)
    assert command.returncode == 0
    assert await client.counts() == (booked, 0, 0)
    other = process.open(NOW, str(file), "other")
    usage, _ = other.call(NOW, "view", [])
    other.close(NOW)
    assert usage == [("erp", "2023-11", booked, 0, 0)]


async def test_transaction_of_another_process_is_waited_for(
    client: Client, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(client.begin("x", "a"))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    other.execute("ROLLBACK")
    assert await waiting == Reserved(None)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.StoreUnavailable, match="locked"):
        await client.begin("y", "b")
    other.close()


async def test_file_can_be_opened_while_another_process_has_it_for_itself(file: Path, open_client: Opens) -> None:
    """As one has that recovers it after a death."""
    await (await open_client()).store.aclose()
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, other.close).start()
    await open_client()


def _replace(file: Path) -> None:
    file.rename(file.with_name("old"))
    file.write_bytes(file.with_name("old").read_bytes())


def _retarget(file: Path) -> None:
    file.rename(file.with_name("moved"))
    file.with_name("another").touch()
    file.symlink_to("another")


@pytest.mark.parametrize(
    "change, said",
    [
        (Path.unlink, r"store\.sqlite was deleted or cannot be reached .*restart to begin a new file"),
        (lambda file: file.with_name("store.sqlite-wal").unlink(), r"store\.sqlite-wal was deleted"),
        (_replace, r"store\.sqlite was replaced; restart"),
        (_retarget, r"store\.sqlite was replaced; restart"),
        (lambda file: file.with_name("link").hardlink_to(file), "second name.*delete that name"),
        (lambda file: os.truncate(file, 0), r"was truncated; stop the service, restore the file from a backup"),
        (lambda file: os.truncate(file.with_name("store.sqlite-wal"), 0), r"was truncated; stop the service"),
    ],
)
async def test_file_that_was_changed_is_not_used(client: Client, file: Path, change: Any, said: str) -> None:
    await client.begin("x", "a")
    change(file)
    for work in (client.begin("y", "b"), client.finish("x"), client.store.usage(), client.store.put_value("a", "", 1)):
        with pytest.raises(errors.StoreUnavailable, match=said):
            await work


async def test_a_new_file_is_begun_beside_a_process_whose_own_was_deleted(
    client: Client, file: Path, open_client: Opens
) -> None:
    await client.begin("x", "a")
    file.unlink()
    assert await (await open_client()).begin("y", "a") == Reserved(None)


async def test_values_that_have_ended_are_deleted(client: Client, file: Path) -> None:
    await client.store.put_value("a", "1", 10)
    client.time.advance(10)
    await client.store.sweep()
    with contextlib.closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT * FROM value WHERE key = 'a'").fetchall() == []


async def test_file_is_used_again_once_its_second_name_is_gone(client: Client, file: Path) -> None:
    link = file.with_name("link")
    link.hardlink_to(file)
    with pytest.raises(errors.StoreUnavailable):
        await client.begin("x", "a")
    link.unlink()
    assert await client.begin("x", "a") == Reserved(None)


@contextlib.contextmanager
def room(file: Path, pages: int) -> Iterator[None]:
    """Let the write-ahead log grow by so many pages, as a disk does that is almost full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = file.with_name(f"{file.name}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + pages * 4120, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_usage_is_booked_where_the_results_do_not_fit_the_disk(client: Client, file: Path) -> None:
    await client.begin("x", "a")
    with room(file, 20):
        await client.finish("x", result("a", "u", body=random.randbytes(200_000)))
        assert await client.counts() == (1, 0, 0)
        assert await client.stored("a") is None


async def test_full_disk_changes_nothing_and_is_passing(client: Client, file: Path) -> None:
    await client.begin("x", "a")
    with room(file, 0):
        for work in (client.begin("y", "b"), client.finish("x", result("a", "u")), client.store.put_value("a", "", 1)):
            with pytest.raises(errors.StoreUnavailable, match="cannot be used"):
                await work
        assert await client.counts() == (0, 0, 1)
    await client.finish("x", result("a", "u"))
    assert await client.counts() == (1, 0, 0)
    assert await client.stored("a")


async def test_write_ahead_log_is_moved_to_the_file_and_does_not_grow(
    client: Client, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()

    def at_once(_: object, move_pages: Callable[[str], None], name: str) -> asyncio.Future[None]:
        move_pages(name)
        moved = loop.create_future()
        moved.set_result(None)
        return moved

    monkeypatch.setattr(loop, "run_in_executor", at_once)
    for number in range(90):  # 30 MB
        await client.fetch(result(str(number), "u", body=random.randbytes(300_000)))
    size = file.with_name(f"{file.name}-wal").stat().st_size
    assert sqlite.CHECKPOINT_BYTES < size < 2 * sqlite.CHECKPOINT_BYTES
    assert await client.counts() == (90, 0, 0)


@pytest.mark.parametrize("is_there", [False, True])
async def test_files_are_readable_by_their_owner_only(file: Path, open_client: Opens, is_there: bool) -> None:
    if is_there:
        file.touch(0o644)
    before = os.umask(0)
    try:
        await open_client()
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {
        f"store.sqlite{ending}": 0o600 for ending in ("", ".lock", "-wal", "-shm")
    }


async def test_file_of_another_version_keeps_usage_and_what_was_reserved(
    client: Client, file: Path, open_client: Opens
) -> None:
    await client.fetch(result("a", "u"))
    await client.begin("x", "b")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute(f"PRAGMA user_version = {sqlite.VERSION + 1}")
        other.execute("CREATE TABLE later (column)")
        assert other.execute("PRAGMA application_id").fetchone() == (0x76334272,)  # of all versions
    with pytest.raises(errors.StoreUnavailable, match="is used by another version of v3bridge; stop that first"):
        await open_client()
    await client.store.aclose()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("UPDATE usage SET reserved = 1, uncertain = 0")  # as of a process that was killed
    second = await open_client()
    assert await second.counts() == (1, 1, 0)
    assert await second.begin("y", "a", "b") == [Reserved(None)] * 2


@pytest.mark.parametrize("content", [b"no database at all" * 100, None])
async def test_other_files_are_refused_and_stay_as_they_are(
    file: Path, open_client: Opens, content: bytes | None
) -> None:
    if content is not None:
        file.write_bytes(content)
    else:
        with contextlib.closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE ledger (column)")
    before = file.read_bytes()
    with pytest.raises(errors.StoreUnavailable, match=r"not a database|other tables than the store's"):
        await open_client()
    assert file.read_bytes() == before


async def test_new_file_can_be_opened_at_once(open_client: Opens) -> None:
    clients = await asyncio.gather(*(open_client(str(number)) for number in range(8)))
    await asyncio.gather(*(client.begin(f"id {number}", f"key {number}") for number, client in enumerate(clients)))
    assert await clients[0].counts() == (0, 0, 8)


async def test_closed_store_is_unavailable(client: Client) -> None:
    await client.begin("x", "a")
    await client.store.aclose()
    with pytest.raises(errors.StoreUnavailable):
        await client.begin("y", "b")


async def test_file_with_one_damaged_page_is_not_used_at_all(file: Path, open_client: Opens) -> None:
    first = await open_client()
    await first.fetch(result("a", "u"))
    await first.store.aclose()
    with contextlib.closing(sqlite3.connect(file)) as other:
        (page,) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'part_fetched'").fetchone()
    client = await open_client()
    content = bytearray(file.read_bytes())
    content[(page - 1) * PAGE_BYTES : page * PAGE_BYTES] = b"x" * PAGE_BYTES
    file.write_bytes(content)
    for work in (client.store.parts(), client.begin("x", "b"), client.store.usage()):
        with pytest.raises(errors.StoreUnavailable, match=r"is damaged .*restore the file from a backup"):
            await work


@pytest.mark.parametrize("damaged", [b"damaged", b"\xff\xff\xff\xffx", b"\xff\xff\xff\x7fx", b"x", b""])
@pytest.mark.parametrize("name", ["u", "=a"])
async def test_damaged_part_or_result_is_fetched_anew(client: Client, file: Path, name: str, damaged: bytes) -> None:
    await client.fetch(result("a", "u"))
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("UPDATE part SET body = ? WHERE name = ?", (damaged, name))
    assert await client.stored("a") is None
    await client.fetch(result("a", "u"), features=0b01)  # it would not replace a part that is whole
    assert await client.stored("a", features=0b01)
